// The page of the server: the same workbench that a notebook shows, over HTTP.
import { door, httpTransport, mount } from "./workbench.js";

const root = document.getElementById("workbench");
const transport = await httpTransport();
if (transport) mount(root, transport, { page: true });
else door(root);
