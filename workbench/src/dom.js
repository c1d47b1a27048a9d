// Elements from data. Text is always a text node: no name from a file can become markup.

// What is not there is left out; a number and its % stay on one line.
const present = (children) =>
  children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined)
    .map((child) => (typeof child === "string" ? child.replace(/(\d) %/g, "$1\u00a0%") : child));

/** Make an element: el("button.primary", { onclick }, "Save"). */
export function el(what, properties = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const made = document.createElement(tag || "div");
  if (classes.length) made.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) set(made, name, value);
  made.append(...present(children));
  return made;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "style") for (const [key, rule] of Object.entries(value)) element.style.setProperty(key, rule);
  else if (["value", "checked", "disabled", "selected", "hidden", "open", "htmlFor"].includes(name))
    element[name] = value;
  else element.setAttribute(name, value === true ? "" : value);
}

const SVG = "http://www.w3.org/2000/svg";

/** Make an element of a drawing: svg("circle", { r: 4 }). */
export function svg(what, properties = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const made = document.createElementNS(SVG, tag);
  if (classes.length) made.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...present(children));
  return made;
}

/** Make a table of titles and rows; the first cell of a row names it, `rowKind(place)` is its class. */
export const tableOf = (kind, titles, rows, caption, rowKind = () => "") =>
  el(
    "div.scroll",
    {},
    el(
      `table.${kind}`,
      {},
      caption ? el("caption", {}, caption) : null,
      titles.some(Boolean) ? el("thead", {}, el("tr", {}, titles.map((title) => el("th", { scope: "col" }, title)))) : null,
      el(
        "tbody",
        {},
        rows.map(([name, ...cells], place) =>
          el("tr", { class: rowKind(place) || null }, el("th", { scope: "row" }, name), cells.map((cell) => el("td", {}, cell))),
        ),
      ),
    ),
  );

/** Replace what an element holds, and give the focus back to the control that had it. */
export function fill(parent, ...children) {
  const focused = parent.getRootNode().activeElement;
  const key = parent.contains(focused) ? focused.dataset.key : undefined;
  parent.replaceChildren(...present(children));
  if (key !== undefined) parent.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

/** Offer a file for download. */
export function download(name, content, type = "text/plain") {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = el("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Wait until calls stop coming. */
export function debounced(call, milliseconds) {
  let waiting;
  return (...values) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => call(...values), milliseconds);
  };
}
