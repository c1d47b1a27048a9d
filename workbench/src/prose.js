// Sentences as people read them: words of the glossary explain themselves, long sets are folded.
import { el } from "./dom.js";

// GLOSSARY is that of the documentation, put here when the page is built.
const WORDS = ["adjustment set", "collider", "confounder", "context", "counterfactual", "inputs", "intervention", "latent", "noise", "overlap", "penalty"];
const PARTS = new RegExp(`\\b(${WORDS.join("|")})\\b|(\\{[^{}]{50,}\\})`, "gi");
const MOST = 6;

/** A word that says what it means when it is asked. */
export const term = (app, word, shown = word) =>
  el(
    "button.term",
    { "data-key": `term|${word}`, title: GLOSSARY[word], onclick: () => app.notices.show("term", `${word}: ${GLOSSARY[word]}`) },
    shown,
  );

/** What a button says and the sign behind it, on one line. */
export const held = (button, sign) => el("span.held", {}, button, sign);

/** Something long: the beginning, and the rest at a click. */
function folded(start, rest, label) {
  const more = el("button.term", { "data-key": "unfold", onclick: () => more.replaceWith(rest) }, label);
  return [start, more];
}

/** Names as a list in a sentence. */
export function names(list) {
  const said = (some) => (some.length > 1 ? `${some.slice(0, -1).join(", ")} and ${some.at(-1)}` : some[0]);
  if (list.length <= MOST + 1) return said(list);
  return folded(`${list.slice(0, MOST).join(", ")} and `, said(list.slice(MOST)), `${list.length - MOST} more`);
}

/** A sentence; each word of the glossary is explained where it first stands. */
export function prose(app, sentence) {
  const told = new Set();
  let end = 0;
  const parts = [];
  for (const found of sentence.matchAll(PARTS)) {
    const [text, word] = found;
    const known = word?.toLowerCase();
    if (known && told.has(known)) continue;
    parts.push(sentence.slice(end, found.index));
    end = found.index + text.length;
    const [sign] = /^[.,;:)]*/.exec(sentence.slice(end));
    parts.push(
      known
        ? held(term(app, known, text), sign)
        : folded("", `${text}${sign}`, `{${text.slice(1).split(", ").slice(0, 3).join(", ")}, …}${sign}`),
    );
    told.add(known);
    end += sign.length;
  }
  return [...parts, sentence.slice(end)];
}
