// How the drawing looks. Colours come from the page's own rules, so that light and dark are decided in one place.

/** Read the colours as they are now. */
export function palette(root) {
  const probe = document.createElement("i");
  root.append(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const names = [
    "paper",
    "raised",
    "ink",
    "soft",
    "border",
    "node",
    "protected",
    "protected-fill",
    "outcome",
    "outcome-fill",
    "adjusted",
    "adjusted-fill",
    "alarm",
    "good",
    "accent",
  ];
  const found = Object.fromEntries(names.map((name) => [name, colour(name)]));
  probe.remove();
  return found;
}

/** The stylesheet of the drawing; roles differ by shape as well as by colour. */
export function look(colours) {
  const role = (name, shape) => ({
    shape,
    "background-color": colours[`${name}-fill`],
    "border-color": colours[name],
    "border-width": 2.5,
  });
  const line = (name, width) => ({
    width,
    "line-color": colours[name],
    "target-arrow-color": colours[name],
    "source-arrow-color": colours[name],
  });
  return [
    {
      selector: "node",
      style: {
        height: 38,
        shape: "round-rectangle",
        "font-family": "system-ui, sans-serif",
        "font-size": 15,
        "text-valign": "center",
        color: colours.ink,
        "background-color": colours.node,
        "border-color": colours.border,
        "border-width": 1.5,
        "overlay-opacity": 0,
      },
    },
    { selector: "node[label]", style: { label: "data(label)", width: "data(width)" } },
    {
      selector: "node.tier",
      style: {
        width: "data(width)",
        height: "data(height)",
        "background-color": colours.raised,
        "border-color": colours.border,
        "z-compound-depth": "bottom",
        events: "no",
      },
    },
    { selector: "node.given", style: role("adjusted", "rectangle") },
    {
      selector: "node.outcomes",
      style: { ...role("outcome", "ellipse"), "border-style": "double", "border-width": 5 },
    },
    { selector: "node.exposures", style: role("protected", "hexagon") },
    { selector: "node.adjusted", style: role("adjusted", "rectangle") },
    {
      selector: "node.latent",
      style: { shape: "ellipse", "border-style": "dashed", "background-opacity": 0.15, "font-style": "italic" },
    },
    {
      selector: "node.ghost",
      style: { shape: "ellipse", "border-style": "dotted", "border-color": colours.alarm, "background-opacity": 0 },
    },
    {
      selector: "edge",
      style: {
        width: 1.8,
        "curve-style": "bezier",
        "line-color": colours.soft,
        "target-arrow-color": colours.soft,
        "source-arrow-color": colours.soft,
        "target-arrow-shape": "triangle",
        "arrow-scale": 1.15,
        "overlay-opacity": 0,
      },
    },
    {
      selector: "edge.bent",
      style: {
        "curve-style": "unbundled-bezier",
        "control-point-distances": "data(bend)",
        "control-point-weights": 0.5,
      },
    },
    {
      selector: "edge.bidirected",
      style: {
        "line-style": "dashed",
        "source-arrow-shape": "triangle",
        "curve-style": "unbundled-bezier",
        "control-point-distances": 36,
        "control-point-weights": 0.5,
      },
    },
    { selector: "edge.faint", style: { opacity: 0.12, "curve-style": "straight" } },
    {
      selector: "edge.tier",
      style: { width: 3.5, "arrow-scale": 1.5, "curve-style": "straight", "line-color": colours.ink, "target-arrow-color": colours.ink, events: "no" },
    },
    { selector: "edge.undirected", style: { "target-arrow-shape": "none" } },
    { selector: "edge.causal", style: line("good", 2.2) },
    { selector: "edge.biasing", style: { ...line("alarm", 3), opacity: 1 } },
    {
      selector: ".refuted",
      style: { "line-color": colours.alarm, "target-arrow-color": colours.alarm, "border-color": colours.alarm },
    },
    {
      selector: ".ghost-refuted",
      style: { "line-color": colours.alarm, "line-style": "dotted", width: 2.5, "target-arrow-shape": "none" },
    },
    { selector: ".dim", style: { opacity: 0.28 } },
    {
      selector: "edge.lit",
      style: { ...line("alarm", 4), opacity: 1, "z-index": 9 },
    },
    { selector: "node.lit", style: { "border-color": colours.alarm, "border-width": 3.5, opacity: 1 } },
    { selector: "edge.ghost", style: { "line-style": "dotted" } },
    {
      selector: ":selected",
      style: { "underlay-color": colours.accent, "underlay-opacity": 0.3, "underlay-padding": 7 },
    },
    { selector: "edge:selected", style: { width: 3, opacity: 1 } },
    {
      selector: ".eh-preview, .eh-ghost-edge",
      style: { "line-color": colours.accent, "target-arrow-color": colours.accent },
    },
    { selector: ".eh-target, .eh-source", style: { "border-color": colours.accent, "border-width": 3 } },
  ];
}
