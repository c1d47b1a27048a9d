// Light, dark, or as the system has it; remembered by the browser.
import { icon } from "./icons.js";

const ORDER = ["auto", "light", "dark"];
const KEY = "ciplearn-theme";

function remembered() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto";
  }
}

export function applyTheme(app, theme = remembered()) {
  app.theme = ORDER.includes(theme) ? theme : "auto";
  app.root.dataset.theme = app.theme;
  app.themeButton.setAttribute("aria-label", `Colours: ${app.theme}. Change`);
  app.themeButton.title = `Colours: ${app.theme}`;
  app.themeButton.replaceChildren(icon(app.theme));
  app.canvas.repaint();
  if (!app.watchesTheme) {
    app.watchesTheme = matchMedia("(prefers-color-scheme: dark)");
    app.watchesTheme.addEventListener("change", () => app.canvas.repaint());
  }
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
