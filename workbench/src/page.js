// The page of the server: the same workbench that a notebook shows, over HTTP.
import { httpTransport, mount } from "./workbench.js";

mount(document.getElementById("workbench"), httpTransport(), { page: true });
