// A drawing as a value: every edit returns a new one. Names are data, "__proto__" included, so keyed parts are Maps.

const LISTS = ["nodes", "directed", "bidirected", "undirected", "latent", "exposures", "outcomes", "adjusted"];
const ROLES = ["latent", "exposures", "outcomes", "adjusted"];
export const EDGE_KINDS = ["directed", "bidirected", "undirected"];
export const ARROWS = { directed: "→", bidirected: "↔", undirected: "−" };

/** Read what Python writes. */
export function fromJson(content) {
  const graph = Object.fromEntries(LISTS.map((key) => [key, [...(content.graph[key] ?? [])]]));
  return {
    ...graph,
    positions: new Map(Object.entries(content.graph.positions ?? {})),
    context: content.context ?? null,
    inputs: content.inputs ?? null,
    kinds: new Map(Object.entries(content.kinds ?? {})),
    unit: unitOf(Object.values(content.graph.positions ?? {})),
  };
}

/** Pixels per unit of the positions: some files count in pixels, others in fractions of the drawing. */
function unitOf(points) {
  const nearest = points.map(([x, y]) =>
    Math.min(...points.map(([a, b]) => Math.hypot(a - x, b - y)).filter((far) => far > 0)),
  );
  const middle = nearest.filter(Number.isFinite).sort((a, b) => a - b)[Math.floor(nearest.length / 2)];
  return middle === undefined || middle >= 40 ? 1 : 120 / middle;
}

/** Write what Python reads. */
export function toJson(doc) {
  const graph = Object.fromEntries(
    LISTS.map((key) => [key, doc[key]]).filter(([key, list]) => list.length || key === "nodes" || key === "directed"),
  );
  const known = [...doc.positions].filter(([name]) => doc.nodes.includes(name));
  if (known.length) graph.positions = Object.fromEntries(known);
  return { graph, context: doc.context, inputs: doc.inputs, kinds: Object.fromEntries(doc.kinds) };
}

export const observed = (doc) => doc.nodes.filter((name) => !doc.latent.includes(name));

/** Every role a node has, in words. */
export function rolesOf(doc, name) {
  const said = [];
  if (doc.outcomes.includes(name)) said.push("outcome");
  if (doc.exposures.includes(name)) said.push("protected");
  if (doc.adjusted.includes(name)) said.push("adjusted");
  if (doc.latent.includes(name)) said.push("latent");
  return said;
}

/** Every edge as { kind, from, to }. */
export const edgesOf = (doc) => EDGE_KINDS.flatMap((kind) => doc[kind].map(([from, to]) => ({ kind, from, to })));

/** A name that is not taken yet. */
export function freshName(doc) {
  for (let number = 1; ; number += 1) if (!doc.nodes.includes(`V${number}`)) return `V${number}`;
}

/** Say why a text cannot name a node, or return null. */
export function nameProblem(doc, name, self = null) {
  if (!name.trim()) return "A node needs a name.";
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff\ufffe\uffff]/u.test(name))
    return "A name is one printable line.";
  if (name !== self && doc.nodes.includes(name)) return `There is already a node ${name}.`;
  return null;
}

export function addNode(doc, name, position) {
  const positions = new Map(doc.positions);
  if (position) positions.set(name, position);
  return { ...doc, nodes: [...doc.nodes, name], positions };
}

export function renameNode(doc, old, name) {
  const swap = (one) => (one === old ? name : one);
  const renamed = { ...doc };
  for (const key of ["nodes", ...ROLES]) renamed[key] = doc[key].map(swap);
  for (const kind of EDGE_KINDS) renamed[kind] = doc[kind].map((edge) => edge.map(swap));
  for (const key of ["positions", "kinds"])
    renamed[key] = new Map([...doc[key]].map(([node, value]) => [swap(node), value]));
  for (const key of ["context", "inputs"]) renamed[key] = doc[key]?.map(swap) ?? null;
  return renamed;
}

export function removeNodes(doc, names) {
  const gone = new Set(names);
  const kept = { ...doc };
  for (const key of ["nodes", ...ROLES]) kept[key] = doc[key].filter((name) => !gone.has(name));
  for (const kind of EDGE_KINDS) kept[kind] = doc[kind].filter(([from, to]) => !gone.has(from) && !gone.has(to));
  for (const key of ["positions", "kinds"]) kept[key] = new Map([...doc[key]].filter(([name]) => !gone.has(name)));
  for (const key of ["context", "inputs"]) kept[key] = doc[key]?.filter((name) => !gone.has(name)) ?? null;
  return kept;
}

/** Whether an edge is the one between these nodes; only a directed one has a direction. */
export const sameEdge = (kind, edge, from, to) =>
  (edge[0] === from && edge[1] === to) || (kind !== "directed" && edge[0] === to && edge[1] === from);

export const hasEdge = (doc, kind, from, to) => doc[kind].some((edge) => sameEdge(kind, edge, from, to));

export function addEdge(doc, kind, from, to) {
  if (from === to || hasEdge(doc, kind, from, to)) return doc;
  return { ...doc, [kind]: [...doc[kind], [from, to]] };
}

export function removeEdge(doc, { kind, from, to }) {
  return { ...doc, [kind]: doc[kind].filter((edge) => !sameEdge(kind, edge, from, to)) };
}

/** Turn an edge into another kind, or around. */
export const changeEdge = (doc, edge, kind, from = edge.from, to = edge.to) =>
  addEdge(removeEdge(doc, edge), kind, from, to);

/** Give or take a role; a predictor has one outcome, and a latent node has none of the others. */
export function toggleRole(doc, name, role) {
  const has = doc[role].includes(name);
  const changed = { ...doc, [role]: has ? doc[role].filter((other) => other !== name) : [...doc[role], name] };
  if (has) return changed;
  if (role === "outcomes") changed.outcomes = [name];
  const clash = {
    latent: ["exposures", "outcomes", "adjusted"],
    outcomes: ["exposures", "adjusted", "latent"],
    exposures: ["outcomes", "adjusted", "latent"],
    adjusted: ["outcomes", "exposures", "latent"],
  };
  for (const other of clash[role]) changed[other] = changed[other].filter((one) => one !== name);
  if (role === "latent" || role === "outcomes") {
    for (const key of ["context", "inputs"]) changed[key] = changed[key]?.filter((one) => one !== name) ?? null;
  }
  return changed;
}

/** Whether a node is in the context or among the inputs; null in the document means every observed node but the outcome. */
export function isIn(doc, key, name) {
  if (doc[key] !== null) return doc[key].includes(name);
  return !doc.latent.includes(name) && !doc.outcomes.includes(name);
}

export function toggleIn(doc, key, name) {
  const all = observed(doc).filter((one) => !doc.outcomes.includes(one));
  const now = doc[key] ?? all;
  const next = now.includes(name) ? now.filter((one) => one !== name) : [...now, name];
  return { ...doc, [key]: all.every((one) => next.includes(one)) ? null : next };
}

export function moveNodes(doc, places) {
  return { ...doc, positions: new Map([...doc.positions, ...places]) };
}

export const EMPTY = fromJson({ graph: { nodes: [], directed: [] } });
