// Builds the page into the Python package: one module for server and notebook, one small entry for the server.
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { build } from "esbuild";

const out = new URL("../src/ciplearn/workbench/page/", import.meta.url).pathname;
const source = new URL("src/", import.meta.url).pathname;
/** The glossary of the documentation: { term: what it means }. */
async function glossary() {
  const text = await readFile(new URL("../docs/glossary.md", import.meta.url), "utf8");
  const entries = text.split("```{glossary}")[1].split("```")[0].trim().split(/\n{2,}/);
  const plain = (words) => words.replace(/\{term\}`([^`<]+?)(?: <[^`]*)?`/g, "$1").replace(/`/g, "");
  const pairs = entries.map((entry) => [entry.split("\n")[0], plain(entry.split("\n").slice(1).join(" ")).replace(/\s+/g, " ").trim()]);
  return Object.fromEntries(pairs);
}

const shared = { bundle: true, minify: true, format: "esm", target: "es2022", outdir: out, logLevel: "warning" };

await mkdir(out, { recursive: true });
await build({ ...shared, entryPoints: [source + "workbench.js", source + "workbench.css"], legalComments: "inline", define: { GLOSSARY: JSON.stringify(await glossary()) } });
await build({ ...shared, entryPoints: [source + "page.js"], external: ["./workbench.js"] });
for (const name of ["index.html", "icon.svg"]) await copyFile(source + name, out + name);
