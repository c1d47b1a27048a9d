"""A script for the page that writes down what was seen and what was used."""

# Writes down which controls could be seen and which were used by a real hand: events that a script makes do not count.
RECORDER = """
const HANDLES = ['key', 'tool', 'opens', 'do', 'format', 'example', 'stop'];
const CONTROLS = 'button, select, input, textarea:not([readonly]), summary, [role=button]';
const PLACES = 'dialog, .notice, .selection, .tools, .rename, .empty, header, [role=tabpanel], .tabs';
const known = (which) => new Set(JSON.parse(localStorage.getItem(which) ?? '[]'));
const add = (which, name) => {
  const names = known(which);
  if (!names.has(name)) localStorage.setItem(which, JSON.stringify([...names.add(name)]));
};
const named = (one) => {
  const place = one.closest(PLACES);
  const where = place.getAttribute('aria-label')?.split(' ')[0] ?? (place.id || place.className || place.tagName);
  const handle = HANDLES.find((name) => name in one.dataset);
  // Names of nodes and columns stand behind a bar; titles of sections and names of routes are the page's own.
  const [kind, ...rest] = (handle ? one.dataset[handle] : one.id || `?${one.outerHTML}`).split('|');
  const own = ['section', 'route', 'get'].includes(kind) ? `|${rest.join('|')}` : '';
  const what = ['stop', 'example'].includes(handle) ? handle : kind + own;
  return `${where.split(' ')[0]} ${one.type === 'range' || one.tagName === 'SELECT' ? `${one.type} ` : ''}${what}`;
};
const look = () => {
  for (const one of document.querySelectorAll(`.cw :is(${CONTROLS})`))
    if (one.checkVisibility() && !one.disabled) add('seen', named(one));
};
const use = (event) => {
  const one = event.target.closest?.(CONTROLS);
  if (event.isTrusted && one?.closest('.cw') && one.closest(PLACES)) add('used', named(one));
};
const clicked = (event) => !event.target.closest?.('select, textarea, input:not([type=checkbox])') && use(event);
document.addEventListener('click', clicked, true);
for (const kind of ['change', 'input']) document.addEventListener(kind, use, true);
document.addEventListener('DOMContentLoaded', () => {
  let waiting = false;
  const soon = () => {
    if (!waiting) requestAnimationFrame(() => { waiting = false; look(); });
    waiting = true;
  };
  new MutationObserver(soon).observe(document.body, { childList: true, subtree: true, attributes: true });
});
"""
