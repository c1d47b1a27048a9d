"""What readers share: the pieces of a graph before they are put together, tokens of text, and a cursor over them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from ciplearn._core.errors import GraphError, GraphSyntaxError
from ciplearn.causal.names import checked_name

if TYPE_CHECKING:
    from ciplearn.causal.drawn_graph import DrawnGraph

# Marks of a node, and kinds of edges as they are written -> the fields of a graph that hold them.
ROLES = {"exposure": "exposures", "outcome": "outcomes", "adjusted": "adjusted"}
EDGES = {"->": "directed", "<->": "bidirected", "--": "undirected"}

_PLAIN = {"↔": "<->", "→": "->", "←": "<-"}
# A keyword at the beginning of a text would make it one of another notation.
_KEYWORD = r"(?:strict|graph|digraph|subgraph|node|edge|dag|pdag|mag|pag|creator|version|comment)\Z"
_BARE = re.compile(rf"(?!{_KEYWORD})[a-z_][a-z0-9_.]*\Z", re.IGNORECASE)

# Two groups of a thousand names draw a million edges in one line.
_MOST_EDGES = 1_000_000


@dataclass
class GraphParts:
    """The fields of a `CausalGraph` in the making."""

    nodes: list[str] = field(default_factory=list)
    directed: list[tuple[str, str]] = field(default_factory=list)
    bidirected: list[tuple[str, str]] = field(default_factory=list)
    undirected: list[tuple[str, str]] = field(default_factory=list)
    latent: list[str] = field(default_factory=list)
    exposures: list[str] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    adjusted: list[str] = field(default_factory=list)
    positions: dict[str, tuple[float, float]] = field(default_factory=dict)

    def extend(self, other: GraphParts) -> None:
        """Add all pieces of another graph."""
        for name, pieces in vars(other).items():
            add = self.positions.update if name == "positions" else getattr(self, name).extend
            add(pieces)


def marks_of(graph: DrawnGraph, name: str) -> tuple[list[str], str]:
    """Return the roles of a node, latent first, and its position as text."""
    held = {"latent": "latent", **ROLES}
    roles = [role for role, names in held.items() if name in getattr(graph, names)]
    return roles, ",".join(map(repr, graph.positions.get(name, ())))


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text; `kind` is ``"arrow"``, ``"sign"``, ``"name"``, ``"html"``, or ``"end"`` after the last one."""

    kind: str
    text: str
    offset: int
    quoted: bool = False


def syntax_error(text: str, offset: int, message: str) -> GraphSyntaxError:
    """Make the error for a place in the text, given by line and column from 1."""
    before = text[:offset]
    return GraphSyntaxError(message, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def quoted(name: str) -> str:
    """Write a name so that it is read back as one word: bare where every reader agrees, else in quotes."""
    return name if _BARE.match(name) else in_quotes(name)


def in_quotes(name: str) -> str:
    """Write a name in quotes."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Cursor:
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

    def end(self) -> Collection[Token]:
        """Read one end of an edge."""
        raise NotImplementedError

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
