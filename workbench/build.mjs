// Builds the page into the Python package: one module for server and notebook, one small entry for the server.
import { copyFile, mkdir } from "node:fs/promises";
import { build } from "esbuild";

const out = new URL("../src/ciplearn/workbench/page/", import.meta.url).pathname;
const source = new URL("src/", import.meta.url).pathname;
const shared = { bundle: true, minify: true, format: "esm", target: "es2022", outdir: out, logLevel: "warning" };

await mkdir(out, { recursive: true });
await build({ ...shared, entryPoints: [source + "workbench.js", source + "workbench.css"], legalComments: "inline" });
await build({ ...shared, entryPoints: [source + "page.js"], external: ["./workbench.js"] });
for (const name of ["index.html", "icon.svg"]) await copyFile(source + name, out + name);
