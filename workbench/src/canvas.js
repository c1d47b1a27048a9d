// The drawing on screen: shows a document, and turns what hands do into edits.
import cytoscape from "cytoscape";
import edgehandles from "cytoscape-edgehandles";
import { isDense } from "./columns.js";
import { detour } from "./detour.js";
import { addEdge, ARROWS, edgesOf, moveNodes, rolesOf, sameEdge } from "./document.js";
import { labelOf, layered, widthOf } from "./layout.js";
import { look, palette } from "./look.js";
import { boxesOf, tiersOf } from "./tiers.js";

cytoscape.use(edgehandles);

const CLASSES = ["latent", "exposures", "outcomes", "adjusted"];
const LOW = { left: 14, top: 56, right: 14, bottom: 14 };
// Room below for the roles of what is selected.
const NARROW = { ...LOW, bottom: 112 };
const kindOf = (arrow) => Object.keys(ARROWS).find((key) => ARROWS[key] === arrow) ?? "directed";
const boxAt = (node) => ({ ...node.position(), width: node.width(), height: node.height() });

export class Canvas {
  /**
   * @param holder the element to draw in
   * @param editor holds the document
   * @param calls { selected(), addAt(position), rename(name) }
   */
  constructor(holder, editor, calls) {
    this.holder = holder;
    this.editor = editor;
    this.mode = "select";
    this.ids = new Map();
    this.count = 0;
    this.cy = cytoscape({
      container: holder,
      style: look(palette(holder)),
      minZoom: 0.15,
      maxZoom: 3,
      boxSelectionEnabled: true,
      selectionType: "single",
    });
    this.handles = this.cy.edgehandles({
      canConnect: (from, to) => !from.same(to) && !to.is(".ghost, .mark"),
      edgeParams: () => ({ classes: this.mode === "bidirected" ? "bidirected" : "" }),
      hoverDelay: 0,
      snap: true,
      snapThreshold: 30,
      noEdgeEventsInDraw: true,
    });
    this.#watch(calls);
    // After the drawing's own listeners, which take the focus away from everything.
    for (const kind of ["mousedown", "touchstart"])
      holder.addEventListener(kind, () => holder.focus({ preventScroll: true }));
    editor.listen(({ origin }) => this.show(origin));
  }

  #watch(calls) {
    const { cy } = this;
    let last = null;
    cy.on("select unselect", () => calls.selected());
    cy.on("ehcomplete", (event, from, to, edge) => {
      edge.remove();
      this.connect(this.mode === "bidirected" ? "bidirected" : "directed", from.data("name"), to.data("name"));
    });
    cy.on("dragfree", "node", () => this.#moved());
    cy.on("tap", (event) => {
      const { x, y } = event.renderedPosition;
      // Two quick taps at two places are no double click.
      const twice = last && event.timeStamp - last.time < 350 && Math.hypot(x - last.x, y - last.y) < 12;
      last = twice ? null : { time: event.timeStamp, x, y };
      if (!twice || this.mode !== "select") return;
      if (event.target === cy) calls.addAt(this.#unscaled(event.position));
      else if (event.target.isNode()) calls.rename(event.target.data("name"));
    });
  }

  /** The nodes of the document: neither Ŷ nor the boxes of tiers. */
  get #drawn() {
    return this.cy.nodes().not(".ghost, .mark");
  }

  #moved() {
    const { doc } = this.editor;
    const places = new Map();
    for (const node of this.#drawn) {
      const [x, y] = this.#unscaled(node.position());
      const [a, b] = doc.positions.get(node.data("name")) ?? [];
      if (Math.abs(x - a) * doc.unit > 0.5 || Math.abs(y - b) * doc.unit > 0.5 || a === undefined)
        places.set(node.data("name"), [x, y]);
    }
    if (places.size)
      this.editor.apply(
        moveNodes(doc, places),
        places.size === 1 ? `moved ${[...places.keys()][0]}` : `moved ${places.size} nodes`,
        "move",
      );
  }

  #unscaled({ x, y }) {
    const { unit } = this.editor.doc;
    return [x, y].map((value) => Number((value / unit).toPrecision(6)));
  }

  connect(kind, from, to) {
    this.editor.apply(addEdge(this.editor.doc, kind, from, to), `connected ${from} ${ARROWS[kind]} ${to}`);
  }

  /** Draw the document as it is now. */
  show(origin = "edit") {
    const { cy } = this;
    if (origin !== "move") this.unlight();
    const anew = this.#place();
    const { doc } = this.editor;
    cy.batch(() => {
      this.#showNodes(doc);
      this.#showEdges(doc);
    });
    this.#bend();
    this.#frame(doc);
    if (anew || origin === "begin" || origin === "load") this.fit();
  }

  #bend() {
    const boxes = new Map(this.#drawn.map((node) => [node.id(), boxAt(node)]));
    this.cy.batch(() => {
      for (const edge of this.cy.edges(".directed").not(".ghost, .mark")) {
        const [from, to] = [edge.data("source"), edge.data("target")];
        const others = [...boxes].filter(([id]) => id !== from && id !== to).map(([, box]) => box);
        const bend = detour(boxes.get(from), boxes.get(to), others);
        edge.data("bend", bend).toggleClass("bent", bend !== 0);
      }
    });
  }

  /** Put boxes around the tiers of a dense drawing, with an arrow from each to the next: the edges stand behind, faint. */
  #frame(doc) {
    const { cy } = this;
    const tiers = isDense(doc) ? tiersOf(doc) : null;
    const boxes = tiers && boxesOf(tiers, (name) => boxAt(cy.getElementById(this.ids.get(name))));
    this.holder.toggleAttribute("data-tiers", Boolean(boxes));
    cy.batch(() => {
      cy.elements(".tier").remove();
      cy.edges(".directed").toggleClass("faint", Boolean(boxes));
      boxes?.forEach(({ x, y, width, height }, place) => {
        const id = (number) => `tier${number}`;
        const box = { data: { id: id(place), width, height }, position: { x, y }, grabbable: false, selectable: false };
        cy.add({ ...box, classes: "mark tier" });
        if (place) cy.add({ data: { source: id(place - 1), target: id(place) }, classes: "mark tier", selectable: false });
      });
    });
  }

  #showNodes(doc) {
    const { cy } = this;
    for (const [name, id] of this.ids) {
      if (doc.nodes.includes(name)) continue;
      cy.getElementById(id).remove();
      this.ids.delete(name);
    }
    for (const name of doc.nodes) {
      if (!this.ids.has(name)) {
        // An id of our own: a name can be anything.
        const id = `n${(this.count += 1)}`;
        this.ids.set(name, id);
        cy.add({ data: { id, name, label: labelOf(name), width: widthOf(name) } });
      }
      const node = cy.getElementById(this.ids.get(name));
      const [x, y] = doc.positions.get(name);
      node.position({ x: x * doc.unit, y: y * doc.unit });
      for (const role of CLASSES) node.toggleClass(role, doc[role].includes(name));
    }
  }

  #showEdges(doc) {
    const { cy } = this;
    const wanted = new Map(edgesOf(doc).map((edge) => [JSON.stringify([edge.kind, edge.from, edge.to]), edge]));
    for (const shown of cy.edges().not(".ghost, .mark")) if (!wanted.delete(shown.data("key"))) shown.remove();
    for (const [key, { kind, from, to }] of wanted) {
      cy.add({
        data: {
          id: `e${(this.count += 1)}`,
          key,
          kind,
          from,
          to,
          source: this.ids.get(from),
          target: this.ids.get(to),
        },
        classes: kind,
      });
    }
  }

  /** Give every node without a place one: all by layout where none has any, which is returned, else in a row below. */
  #place() {
    const { doc } = this.editor;
    const missing = doc.nodes.filter((name) => !doc.positions.has(name));
    if (!missing.length) return false;
    if (missing.length === doc.nodes.length) {
      this.editor.settle({ ...doc, positions: layered(doc, this.#room.size), unit: 1 });
      return true;
    }
    const spots = [...doc.positions.values()];
    const left = Math.min(...spots.map(([x]) => x));
    const below = Math.max(...spots.map(([, y]) => y)) + 110 / doc.unit;
    const row = missing.map((name, place) => [name, [left + (place * 130) / doc.unit, below]]);
    this.editor.settle({ ...doc, positions: new Map([...doc.positions, ...row]) });
    return false;
  }

  layout() {
    const { doc } = this.editor;
    this.editor.apply({ ...doc, positions: layered(doc, this.#room.size), unit: 1 }, "laid out the graph", "load");
  }

  /** The part of the canvas that is clear of the tools: those are at the left of a wide one and above a narrow one. */
  get #room() {
    const { cy } = this;
    cy.resize();
    const above = matchMedia("(max-width: 860px)").matches || cy.width() <= 500;
    const edge = above ? (cy.height() > 300 ? NARROW : LOW) : { left: 80, top: 44, right: 44, bottom: 128 };
    return { edge, size: [cy.width() - edge.left - edge.right, cy.height() - edge.top - edge.bottom] };
  }

  /** Show all. */
  fit() {
    const { cy } = this;
    if (cy.elements().empty()) return;
    const { edge, size } = this.#room;
    const [wide, high] = size;
    const { x1, y1, w, h } = cy.elements().boundingBox();
    const zoom = Math.max(cy.minZoom(), Math.min(wide / w, high / h, 1.4));
    cy.viewport({
      zoom,
      pan: { x: edge.left + (wide - w * zoom) / 2 - x1 * zoom, y: edge.top + (high - h * zoom) / 2 - y1 * zoom },
    });
  }

  zoom(factor) {
    const middle = { x: this.cy.width() / 2, y: this.cy.height() / 2 };
    this.cy.zoom({ level: this.cy.zoom() * factor, renderedPosition: middle });
  }

  pan(x, y) {
    this.cy.panBy({ x, y });
  }

  setMode(mode) {
    this.mode = mode;
    // Off before on: switched on twice, it would forget that nodes can be moved.
    this.handles.disableDrawMode();
    if (mode !== "select") this.handles.enableDrawMode();
    this.cy.elements().unselect();
  }

  /** What is selected: names of nodes and edges as data. */
  get selection() {
    return {
      nodes: this.cy
        .nodes(":selected")
        .not(".ghost, .mark")
        .map((node) => node.data("name")),
      edges: this.cy
        .edges(":selected")
        .not(".ghost, .mark")
        .map((edge) => edge.data()),
    };
  }

  select(name) {
    this.cy.elements().unselect();
    const id = this.ids.get(name);
    if (id) this.cy.getElementById(id).select();
  }

  selectEdge({ kind, from, to }) {
    this.cy.elements().unselect();
    this.cy
      .edges()
      .filter(
        (edge) => edge.data("kind") === kind && sameEdge(kind, [edge.data("from"), edge.data("to")], from, to),
      )
      .select();
  }

  /** Where a node is on the screen, for an input that covers it. */
  boxOf(name) {
    return this.cy.getElementById(this.ids.get(name)).renderedBoundingBox();
  }

  /** The middle of what is seen, where a node from the keyboard goes; moved aside where one stands already. */
  freeSpot() {
    const { x1, x2, y1, y2 } = this.cy.extent();
    const spot = { x: (x1 + x2) / 2, y: (y1 + y2) / 2 };
    while (
      this.#drawn
        .some((node) => Math.abs(node.position("x") - spot.x) < 60 && Math.abs(node.position("y") - spot.y) < 50)
    )
      spot.y += 70;
    return this.#unscaled(spot);
  }

  /** Light up paths: [{ edges: [[from, arrow, to]], nodes }]; Ŷ and its edges are drawn for the while. */
  light(paths) {
    const { cy } = this;
    this.unlight();
    const names = new Set(paths.flatMap((path) => path.nodes));
    cy.elements().addClass("dim");
    for (const name of names) if (!this.ids.has(name)) this.#ghost(name);
    for (const name of names)
      cy.getElementById(this.ids.get(name) ?? `ghost-${name}`)
        .removeClass("dim")
        .addClass("lit");
    for (const [from, arrow, to] of paths.flatMap((path) => path.edges)) this.#lightEdge(from, arrow, to);
  }

  #ghost(name) {
    const { x1, x2, y2 } = this.cy.nodes().boundingBox();
    const position = { x: (x1 + x2) / 2, y: y2 + 70 };
    this.cy.add({ data: { id: `ghost-${name}`, label: name, width: 46 }, position, classes: "ghost" });
    const seen = this.cy.extent();
    if (position.y + 30 > seen.y2 || position.x < seen.x1 || position.x > seen.x2) this.fit();
  }

  /** The drawn edge of a path; none where it leads to Ŷ, which is drawn only while a path is lit. */
  #between(from, arrow, to) {
    const kind = kindOf(arrow);
    const [a, b] = arrow === "←" ? [to, from] : [from, to];
    return this.cy.edges(`.${kind}`).filter((edge) => sameEdge(kind, [edge.data("from"), edge.data("to")], a, b));
  }

  #lightEdge(from, arrow, to) {
    let found = this.#between(from, arrow, to);
    if (found.empty()) {
      const [source, target] = (arrow === "←" ? [to, from] : [from, to]).map((name) => this.ids.get(name) ?? `ghost-${name}`);
      found = this.cy.add({ data: { source, target }, classes: `ghost ${kindOf(arrow)}` });
    }
    found.removeClass("dim").addClass("lit");
  }

  unlight() {
    this.cy.elements(".ghost").remove();
    this.cy.elements().removeClass("dim lit");
  }

  /** Colour what a verdict says: the set that is held fixed, causal paths, and open ones that are not. */
  colour({ adjustment = [], causal = [], biasing = [] }) {
    const { cy } = this;
    cy.batch(() => {
      cy.elements().removeClass("given causal biasing");
      for (const name of adjustment) cy.getElementById(this.ids.get(name)).addClass("given");
      for (const edge of causal) this.#between(...edge).addClass("causal");
      for (const edge of biasing) this.#between(...edge).removeClass("causal").addClass("biasing");
    });
  }

  /** Mark pairs whose implied independence data refutes. */
  markRefuted(pairs) {
    const { cy } = this;
    cy.edges(".ghost-refuted").remove();
    cy.elements().removeClass("refuted");
    for (const [a, b] of pairs) {
      const ends = [this.ids.get(a), this.ids.get(b)];
      if (!ends[0] || !ends[1]) continue;
      cy.add({ data: { source: ends[0], target: ends[1] }, classes: "mark ghost-refuted" });
      for (const id of ends) cy.getElementById(id).addClass("refuted");
    }
  }

  /** The whole drawing as a picture. */
  picture() {
    return this.cy.png({ output: "blob", full: true, scale: 2, bg: palette(this.holder).paper });
  }

  /** Take the colours of the theme anew. */
  repaint() {
    this.cy.style(look(palette(this.holder)));
  }

  describe() {
    const { doc } = this.editor;
    if (!doc.nodes.length) return "An empty drawing.";
    const roles = doc.nodes.map((name) => [name, rolesOf(doc, name)]).filter(([, said]) => said.length);
    return `A causal graph of ${doc.nodes.length} nodes and ${edgesOf(doc).length} edges. ${roles.map(([name, said]) => `${name}: ${said.join(", ")}`).join("; ")}. The tab Outline lists everything.`;
  }
}
