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
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING

from ciplearn._core.arguments import entries
from ciplearn._core.errors import GraphError, GraphSyntaxError
from ciplearn.causal.formats.json_format import EDGES, ROLES, GraphParts, syntax_error
from ciplearn.causal.names import Edge, checked_name, checked_point, nearest, quoted, tiers_of

if TYPE_CHECKING:
    from ciplearn.causal.drawn_graph import DrawnGraph

_PLAIN = {"↔": "<->", "→": "->", "←": "<-"}
_MOST_EDGES = 1_000_000  # two groups of a thousand names draw as many in one line

_FILE = re.compile(r"\S+\.(?:txt|dot|gv|gml|json|dagitty|dag)", re.IGNORECASE)
_KINDS = ("dag", "pdag", "mag", "pag", "graph", "digraph")
# What may stand in brackets -> the field of a graph that holds it.
_MARKS = {
    **dict.fromkeys(("latent", "l", "unobserved", "u"), "latent"),
    **dict.fromkeys(("exposure", "e", "source"), "exposures"),
    **dict.fromkeys(("outcome", "o", "target"), "outcomes"),
    **dict.fromkeys(("adjusted", "a"), "adjusted"),
}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text; `kind` is ``"arrow"``, ``"sign"``, ``"name"``, ``"html"``, or ``"end"`` after the last one."""

    kind: str
    text: str
    offset: int
    quoted: bool = False


class Cursor(ABC):
    """Graph text as tokens, read one after the other into `parts`."""

    # What a token looks like: named groups space, comment, arrow, sign, quoted, word and html.
    pattern: re.Pattern[str]
    refusal = ""  # how a message begins

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*self._tokens(), Token("end", "the end of the text", len(text))]
        self.next = self.edges = 0
        self.parts = GraphParts()

    def _tokens(self) -> Iterator[Token]:
        offset = 0
        while offset < len(self.text):
            match = self.pattern.match(self.text, offset)
            if match is None:
                raise syntax_error(self.text, offset, self._unreadable(offset))
            kind, piece = match.lastgroup or "", match.group()
            if kind == "quoted":
                yield Token("name", re.sub(r'\\(["\\])', r"\1", piece[1:-1]), offset, quoted=True)
            elif kind not in ("space", "comment"):
                yield Token("name" if kind == "word" else kind, _PLAIN.get(piece, piece), offset)
            offset = match.end()

    def _unreadable(self, offset: int) -> str:
        """Say why no token starts here."""
        here = self.text[offset]
        if here == '"':
            return 'A quoted name is not closed; close it, and write \\" and \\\\ for a quote and a backslash'
        if self.text.startswith("/*", offset):
            return "A comment is not closed; end it with */"
        if here in "-<>=~@":
            signs = self.text[offset : offset + 3].strip()
            return f"{signs!r} is not an edge; write ->, <-, <-> or --, and quote names that hold {here!r}"
        return f"{here!r} cannot start a name; put the name in double quotes"

    def peek(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.next]

    def take(self) -> Token:
        """Pass the next token, which must not be the end."""
        token = self.peek()
        if token.kind == "end":
            raise self.error(token, f"{self.refusal}The text ends in the middle of a statement")
        self.next += 1
        return token

    def name(self, what: str) -> Token:
        """Pass the next token, which must be a name."""
        token = self.take()
        if token.kind != "name":
            raise self.error(token, f"{self.refusal}{what} is missing before {token.text!r}")
        return token

    def passes(self, signs: str) -> bool:
        """Pass one of these signs if it comes next."""
        comes = self.peek().kind == "sign" and self.peek().text in signs
        self.next += comes
        return comes

    def value(self) -> Token:
        """Read what stands behind an equals sign."""
        return self.take() if self.peek().kind == "html" else self.name("A value")

    def attributes(self) -> Iterator[tuple[Token, Token | None]]:
        """Read ``[key=value, key, ...]``, as often as it stands there."""
        while self.passes("["):
            while not self.passes("]"):
                if not self.passes(";,"):
                    key = self.name("An attribute")
                    yield key, self.value() if self.passes("=") else None

    def chain(self) -> tuple[list[Collection[Token]], list[Token]]:
        """Read nodes, or groups of nodes, and the arrows between them."""
        ends, arrows = [self.end()], list[Token]()
        while self.peek().kind == "arrow":
            arrows.append(self.take())
            ends.append(self.end())
        return ends, arrows

    @abstractmethod
    def end(self) -> Collection[Token]:
        """Read one end of an edge."""

    def declare(self, token: Token) -> Token:
        """Note a node."""
        try:
            self.parts.nodes.append(checked_name(token.text))
        except GraphError as problem:
            raise self.error(token, str(problem).rstrip(".")) from None
        return token

    def join(self, left: Collection[Token], arrow: str, right: Collection[Token]) -> None:
        """Draw an edge from each node on the left to each on the right."""
        self.edges += len(left) * len(right)
        if self.edges > _MOST_EDGES:
            raise self.error(self.peek(), f"The text draws more than {_MOST_EDGES} edges; draw fewer")
        edges = getattr(self.parts, EDGES.get(arrow, "directed"))
        for a, b in product(left, right):
            if a.text == b.text:
                edge = f"{a.text!r} {arrow} {b.text!r}"
                raise self.error(b, f"No node causes itself, but {edge} was found; remove it")
            edges.append((b.text, a.text) if arrow == "<-" else (a.text, b.text))

    def finished(self) -> GraphParts:
        """Return what was read, if nothing stands behind it."""
        if self.peek().kind != "end":
            wrong = f"One graph is expected, but {self.peek().text!r} stands after its closing brace; remove it"
            raise self.error(self.peek(), wrong)
        return self.parts

    def error(self, token: Token, message: str) -> GraphSyntaxError:
        """Make the error for the place of a token."""
        return syntax_error(self.text, token.offset, message)


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
    directed: str | Iterable[Edge | str], bidirected: str | Iterable[Edge | str], undirected: str | Iterable[Edge | str]
) -> GraphParts:
    """Collect edges; text among the directed ones may draw any edge, elsewhere edges of that kind only."""
    parts = GraphParts()
    for kind, edges in (("directed", directed), ("bidirected", bidirected), ("undirected", undirected)):
        listed = [edges] if isinstance(edges, str) else None if isinstance(edges, Mapping) else entries(edges)
        if listed is None:
            raise GraphError(f"{kind} must be text or pairs of names, but {type(edges).__name__} was received.")
        for edge in listed:
            if not isinstance(edge, str):
                getattr(parts, kind).append(edge)
                continue
            read = vars(read_edge_text(edge))
            drawn = {name for name in EDGES.values() if read[name]}
            if kind != "directed" and drawn - {kind}:
                sample = "A <-> B" if kind == "bidirected" else "A -- B"
                raise GraphError(f"{edge!r} is not a {kind} edge; write {sample!r}.")
            if not drawn and edge is not edges:
                # ("A", "B") where [("A", "B")] was meant must not become two lonely nodes.
                raise GraphError(f"{edge!r} in {kind} draws no edge; write pairs [('A', 'B')] or text 'A -> B'.")
            parts.positions.update(read.pop("positions"))
            for name, pieces in read.items():
                getattr(parts, name).extend(pieces)
    return parts


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
            self.parts.nodes.pop()  # an attribute of the graph: no node after all
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
        ahead = self.next
        while True:
            token, before = self.tokens[ahead], self.tokens[ahead - 1]
            goes_on = ahead == self.next or before.kind == "sign"
            if token.kind == "name" and (goes_on or self.beside(before, token)):
                tiers[-1].append(token)
            elif token.kind == "sign" and token.text == "|":
                tiers.append([])
            elif token.kind != "sign" or token.text != ",":
                break
            ahead += 1
        if len(tiers) == 1:
            self.no_bar_before = ahead
            return False
        if token.kind == "arrow" or (token.kind == "sign" and token.text in "[{="):
            wrong = f"{token.text!r} stands in a line of tiers; begin a new line, or write ';' before it"
            raise self.error(token, wrong)
        if not all(tiers):
            raise self.error(self.peek(), "A tier is empty; name at least one node on each side of a bar")
        for number in range(self.next, ahead):
            if self.tokens[number].kind == "name":
                self.declare(self.tokens[number])
                self.refuse_loose_words(number)
        self.next = ahead
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
            for number in range(start, self.next):
                self.refuse_loose_words(number)
        return inside

    def refuse_loose_words(self, start: int) -> None:
        """Refuse words that stand beside the name at `start`, where an edge list would make several nodes of them."""
        if self.framed:
            return
        words = [self.tokens[start]]
        while self.beside(words[-1], beside := self.tokens[start + len(words)]):
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
    kind, lines = "pdag" if graph.undirected else "dag", [f"  {line}" for line in _statements(graph)]
    return "\n".join([f"{kind} {{", *lines, "}", ""])


def write_edge_text(graph: DrawnGraph) -> str:
    """Write an edge list on one line, which `from_edges` reads back."""
    return ", ".join(_statements(graph))


def write_tiers(graph: DrawnGraph) -> str:
    """Write tiers, as in ``"sex, age | job"``, and then the rest; `GraphError` if the arrows are not those of tiers."""
    tiers = tiers_of(graph.directed)
    if not tiers:
        why = "The arrows of this graph are not those of tiers, each acting on all later ones"
        raise GraphError(f"{why}; use to_edges.")
    line = " | ".join(", ".join(map(quoted, tier)) for tier in tiers)
    return "; ".join([line, *_statements(replace(graph, directed=()), {name for tier in tiers for name in tier})])


def _statements(graph: DrawnGraph, written: Collection[str] = ()) -> list[str]:
    edges = [(a, arrow, b) for arrow, kind in EDGES.items() for a, b in getattr(graph, kind)]
    drawn = {name for a, _, b in edges for name in (a, b)}.union(written)
    lines = []
    for name in graph.nodes:
        marks, position = graph._marks(name)
        marks += [f'pos="{position}"'] if position else []
        if marks:
            lines.append(f"{quoted(name)} [{', '.join(marks)}]")
        elif name not in drawn:
            lines.append(quoted(name))
    return lines + [f"{quoted(a)} {arrow} {quoted(b)}" for a, arrow, b in edges]
