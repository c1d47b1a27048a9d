// In the place of the workbench where its secret is missing: what to do, and a field that takes the whole address.
import { el } from "./dom.js";

export function door(root) {
  root.classList.add("cw");
  const drawn = /[#&]g=/.test(location.hash);
  const problem = el("p.problem", { role: "alert" });
  const typed = el("input", {
    "aria-label": "Address of your workbench",
    "data-key": "address",
    autofocus: true,
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "http://127.0.0.1/?token=…",
  });
  const open = (event) => {
    event.preventDefault();
    const address = URL.canParse(typed.value.trim()) ? new URL(typed.value.trim()) : null;
    if (!/^https?:$/.test(address?.protocol) || !address.searchParams.has("token")) {
      problem.textContent = "This is not the whole address: it has ?token= in it.";
      return;
    }
    if (drawn) address.hash = location.hash;
    location.assign(address);
  };
  root.replaceChildren(
    el("header", {}, el("h1", {}, "ciplearn", el("span", {}, " workbench"))),
    el(
      "div.door",
      {},
      el("h2", {}, drawn ? "A drawing for your workbench" : "This page opens with its whole address"),
      el(
        "p",
        {},
        drawn
          ? "This link holds a drawing. It opens in a workbench of your own, and in any browser that has opened this one."
          : "A workbench opens only to whoever has the address that it printed, secret included. Each start has a new one.",
      ),
      el("p", {}, "Look at the terminal in which it runs, or start one: ", el("code", {}, "ciplearn workbench"), "."),
      el(
        "form.inline",
        { onsubmit: open },
        el("label.field", {}, "Paste the address that it printed", typed),
        el("button.primary", { type: "submit", "data-key": "open-address" }, "Open"),
      ),
      problem,
    ),
  );
  typed.focus();
}
