// Light, dark, or as the surroundings have it: the system on a page, the notebook in a cell. Remembered by the browser.
import { icon } from "./icons.js";

const ORDER = ["auto", "light", "dark"];
const KEY = "ciplearn-theme";
const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

function remembered() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto";
  }
}

/** The theme of a notebook, read from what lies behind its cell: each kind of notebook names its themes differently. */
function surroundings(root) {
  for (let at = root.parentNode; at; at = at.parentNode ?? at.host) {
    if (!(at instanceof Element)) continue;
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = getComputedStyle(at).backgroundColor;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, cover] = pen.getImageData(0, 0, 1, 1).data;
    if (cover > 127) return 0.3 * red + 0.59 * green + 0.11 * blue < 128 ? "dark" : "light";
  }
  return "auto";
}

export function applyTheme(app, theme = remembered()) {
  app.theme = ORDER.includes(theme) ? theme : "auto";
  app.root.dataset.theme = app.theme === "auto" && !app.page ? surroundings(app.root) : app.theme;
  app.themeButton.setAttribute("aria-label", `Colours: ${app.theme}. Change`);
  app.themeButton.title = `Colours: ${app.theme}`;
  app.themeButton.replaceChildren(icon(app.theme));
  app.canvas.repaint();
}

/** Follow the surroundings when they change; returns how to stop. */
export function watchTheme(app) {
  const changed = () => applyTheme(app, app.theme);
  const system = matchMedia("(prefers-color-scheme: dark)");
  const notebook = new MutationObserver(changed);
  // A notebook may put the cell into its page only after this: the first size says that it is there.
  const placed = new ResizeObserver(() => {
    placed.disconnect();
    changed();
  });
  system.addEventListener("change", changed);
  if (!app.page) {
    placed.observe(app.root);
    for (const part of [document.documentElement, document.body]) notebook.observe(part, { attributes: true });
  }
  return () => {
    system.removeEventListener("change", changed);
    placed.disconnect();
    notebook.disconnect();
  };
}

export function nextTheme(app) {
  const theme = ORDER[(ORDER.indexOf(app.theme) + 1) % ORDER.length];
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A browser that keeps nothing shows the theme all the same.
  }
  applyTheme(app, theme);
}
