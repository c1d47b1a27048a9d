"""Reader and writer of graph text: DAGitty models, and edge lists, which are the same without the frame.

    dag { S -> {A L}; A -> L -> Y; S -> Y; A <-> Y; U [latent, pos="0,1"] }
    S -> A, A -> Y
    sex, age | job, employment | income

Statements are separated by ``;``, ``,`` or a line break, in a frame by any white space, as DAGitty has it. In an edge
list words side by side on one line are refused: they may be one name that holds spaces. A bar stands between tiers,
each of which acts on all later ones; a line of tiers ends with ``;`` or a line break. What is not understood is an
error with its place; the only things read and not kept are drawing hints without a place in a graph value: the frame
``bb`` and ``pos`` of an edge.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from ciplearn._core.arguments import entries
from ciplearn._core.errors import GraphError
from ciplearn.causal.formats.parts import EDGES, ROLES, Cursor, GraphParts, Token, marks_of, quoted
from ciplearn.causal.names import Edge, checked_point, nearest, tiers_of

if TYPE_CHECKING:
    from ciplearn.causal.drawn_graph import DrawnGraph

_FILE = re.compile(r"\S+\.(?:txt|dot|gv|gml|json|dagitty|dag)", re.IGNORECASE)
_KINDS = ("dag", "pdag", "mag", "pag", "graph", "digraph")
# What may stand in brackets -> the field of a graph that holds it.
_MARKS = {
    **dict.fromkeys(("latent", "l", "unobserved", "u"), "latent"),
    **dict.fromkeys(("exposure", "e", "source"), "exposures"),
    **dict.fromkeys(("outcome", "o", "target"), "outcomes"),
    **dict.fromkeys(("adjusted", "a"), "adjusted"),
}


def read_dagitty(text: str) -> GraphParts:
    """Read a DAGitty model; the frame ``dag { ... }`` may be left out."""
    return _TextReader(text).model()


def read_edge_text(text: str) -> GraphParts:
    """Read an edge list such as ``"S -> A, A -> Y"``."""
    if _FILE.fullmatch(text.strip()):
        # Else a path becomes a graph with one node, without a word.
        raise GraphError(f"{text.strip()!r} is the name of a file; read it with CausalGraph.from_file.")
    return _TextReader(text).statements(framed=False)


def edge_parts(
    directed: str | Iterable[Edge | str],
    bidirected: str | Iterable[Edge | str],
    undirected: str | Iterable[Edge | str],
) -> GraphParts:
    """Collect edges; text among the directed ones may draw any edge, elsewhere edges of that kind only."""
    parts = GraphParts()
    for kind, edges in (("directed", directed), ("bidirected", bidirected), ("undirected", undirected)):
        if isinstance(edges, str):
            parts.extend(_edge_text(edges, kind))
            continue
        listed = None if isinstance(edges, Mapping) else entries(edges)
        if listed is None:
            raise GraphError(f"{kind} must be text or pairs of names, but {type(edges).__name__} was received.")
        for edge in listed:
            if not isinstance(edge, str):
                getattr(parts, kind).append(edge)
                continue
            read = _edge_text(edge, kind)
            if not any(vars(read)[name] for name in EDGES.values()):
                # ("A", "B") where [("A", "B")] was meant must not become two lonely nodes.
                raise GraphError(f"{edge!r} in {kind} draws no edge; write pairs [('A', 'B')] or text 'A -> B'.")
            parts.extend(read)
    return parts


def _edge_text(text: str, kind: str) -> GraphParts:
    read = read_edge_text(text)
    kinds = {name for name in EDGES.values() if vars(read)[name]}
    if kind != "directed" and kinds - {kind}:
        sample = "A <-> B" if kind == "bidirected" else "A -- B"
        raise GraphError(f"{text!r} is not a {kind} edge; write {sample!r}.")
    return read


class _TextReader(Cursor):
    # The longest sign first: "<->" must not be read as "<-" and ">". A bare word starts with a letter, a digit or "_",
    # so that an arrow or operator of another notation is an error and never a node of that name.
    pattern = re.compile(
        r"""
        (?P<space>[\s\ufeff]+)
      | (?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/)
      | (?P<arrow><->|->|<-|--|[↔→←])
      | (?P<sign>[{}\[\];,|]|=(?!>))
      | (?P<quoted>"(?:[^"\\\n]|\\["\\])*")
      | (?P<word>\w[\w.\u0300-\u036f⊥∧∨′]*)
        """,
        re.VERBOSE | re.DOTALL,
    )
    framed = directions_known = False
    no_bar_before = 0

    def model(self) -> GraphParts:
        """Read ``dag { ... }`` or ``dag name { ... }``, or what would stand inside."""
        first = self.tokens[0]
        kinds = [token.text if token.kind == "sign" else token.kind for token in self.tokens[1:3]]
        framed = kinds[:1] == ["{"] or kinds == ["name", "{"]
        if not framed or first.quoted or first.text not in _KINDS:
            return self.statements(framed=False)
        if first.text not in ("dag", "pdag"):
            raise self.error(first, f"A {first.text!r} is not read here; write dag, or pdag for undirected edges")
        self.directions_known = first.text == "dag"
        self.next = kinds.index("{") + 2
        self.statements(framed=True)
        return self.finished()

    def statements(self, framed: bool) -> GraphParts:
        self.framed = framed
        while self.peek().kind != "end":
            if framed and self.passes("}"):
                return self.parts
            if not self.passes(";,") and not self.tier_line():
                self.statement()
        if framed:
            raise self.error(self.peek(), "The model is not closed; end it with '}'")
        return self.parts

    def statement(self) -> None:
        first = self.peek()
        ends, arrows = self.chain()
        if first.kind == "name" and not arrows and self.passes("="):
            # An attribute of the graph: no node after all.
            self.parts.nodes.pop()
            self.value()
            if first.text != "bb":
                raise self.error(first, f"The attribute {first.text!r} of the graph is not known; only bb is")
        for arrow, (left, right) in zip(arrows, pairwise(ends), strict=True):
            if arrow.text == "--" and self.directions_known:
                wrong = "A dag has no undirected edge; write pdag { ... } if the direction is not known"
                raise self.error(arrow, wrong)
            self.join(left, arrow.text, right)
        for key, value in self.attributes():
            self.mark(() if arrows else ends[0], key, value)

    def mark(self, nodes: Collection[Token], key: Token, value: Token | None) -> None:
        """Note an attribute of some nodes, or of an edge where there are none."""
        if key.text == "pos" and value is not None:
            try:
                spot = checked_point("", value.text.split(","))
            except GraphError:
                wrong = f'A position is two numbers, pos="0.5,1", but {value.text!r} was found'
                raise self.error(value, wrong) from None
            self.parts.positions.update({node.text: spot for node in nodes})
        elif nodes and value is None and key.text in _MARKS:
            getattr(self.parts, _MARKS[key.text]).extend(node.text for node in nodes)
        elif nodes:
            meant = nearest(key.text, ("latent", *ROLES, "pos"), "attributes")
            raise self.error(key, f"The node attribute {key.text!r} is not known; {meant.rstrip('.')}")
        else:
            raise self.error(key, f"The edge attribute {key.text!r} is not known; only pos is")

    def tier_line(self) -> bool:
        """Read names with bars between them, up to a semicolon or the end of the line, if they come next."""
        if self.next < self.no_bar_before:
            return False
        tiers: list[list[Token]] = [[]]
        place = self.next
        while True:
            token, before = self.tokens[place], self.tokens[place - 1]
            goes_on = place == self.next or before.kind == "sign"
            if token.kind == "name" and (goes_on or self.beside(before, token)):
                tiers[-1].append(token)
            elif token.kind == "sign" and token.text == "|":
                tiers.append([])
            elif token.kind != "sign" or token.text != ",":
                break
            place += 1
        if len(tiers) == 1:
            self.no_bar_before = place
            return False
        if token.kind == "arrow" or (token.kind == "sign" and token.text in "[{="):
            wrong = f"{token.text!r} stands in a line of tiers; begin a new line, or write ';' before it"
            raise self.error(token, wrong)
        if not all(tiers):
            raise self.error(self.peek(), "A tier is empty; name at least one node on each side of a bar")
        for number in range(self.next, place):
            if self.tokens[number].kind == "name":
                self.declare(self.tokens[number])
                self.refuse_loose_words(number)
        self.next = place
        for number, tier in enumerate(tiers):
            self.join([name for earlier in tiers[:number] for name in earlier], "->", tier)
        return True

    def end(self) -> Collection[Token]:
        start, group = self.next, self.passes("{")
        if not group:
            inside = [self.declare(self.name("A node name"))]
            self.refuse_loose_words(start)
            return inside
        inside, separated = [], False
        while not self.passes("}"):
            if self.passes(";,"):
                separated = True
            else:
                inside.append(self.declare(self.name("A name (a group {A B} holds names only)")))
        if not inside:
            raise self.error(self.tokens[start], "A group is empty; name at least one node")
        if separated:
            # {A B} are two nodes, but next to a comma, {years at school, B}, words without one are likely one name.
            for place in range(start, self.next):
                self.refuse_loose_words(place)
        return inside

    def refuse_loose_words(self, place: int) -> None:
        """Refuse words that stand beside the name at `place`, where an edge list would make several nodes of them."""
        if self.framed:
            return
        words = [self.tokens[place]]
        while self.beside(words[-1], beside := self.tokens[place + len(words)]):
            words.append(beside)
        if len(words) > 1 and not all(word.quoted for word in words):
            name = " ".join(word.text for word in words)
            advice = "quote names that hold spaces, or separate nodes by commas"
            raise self.error(words[1], f"Nothing stands between the words of {name!r}; {advice}")

    def beside(self, left: Token, right: Token) -> bool:
        """Tell whether two names stand side by side on one line."""
        return left.kind == right.kind == "name" and "\n" not in self.text[left.offset : right.offset]


def write_dagitty(graph: DrawnGraph) -> str:
    """Write a DAGitty model: ``dag``, or ``pdag`` where an edge has no direction."""
    lines = [f"  {line}" for line in _statements(graph)]
    return "\n".join(["pdag {" if graph.undirected else "dag {", *lines, "}", ""])


def write_edge_text(graph: DrawnGraph) -> str:
    """Write an edge list on one line."""
    return ", ".join(_statements(graph))


def write_tiers(graph: DrawnGraph) -> str:
    """Write the arrows as one line of tiers, and after it what else the graph has."""
    tiers = tiers_of(graph.directed)
    if not tiers:
        raise GraphError(
            "The arrows of this graph are not those of tiers, each acting on all later ones; use to_edges."
        )
    line = " | ".join(", ".join(map(quoted, tier)) for tier in tiers)
    return "; ".join([line, *_statements(replace(graph, directed=()), {name for tier in tiers for name in tier})])


def _statements(graph: DrawnGraph, written: Collection[str] = ()) -> list[str]:
    edges = [(a, arrow, b) for arrow, kind in EDGES.items() for a, b in getattr(graph, kind)]
    drawn = {name for a, _, b in edges for name in (a, b)}.union(written)
    lines = []
    for name in graph.nodes:
        marks, position = marks_of(graph, name)
        if position:
            marks.append(f'pos="{position}"')
        if marks:
            lines.append(f"{quoted(name)} [{', '.join(marks)}]")
        elif name not in drawn:
            lines.append(quoted(name))
    return lines + [f"{quoted(a)} {arrow} {quoted(b)}" for a, arrow, b in edges]
