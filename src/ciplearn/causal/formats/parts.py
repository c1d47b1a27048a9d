"""What readers share: the pieces of a graph before they are put together, tokens of text, and a cursor over them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from ciplearn._core.errors import GraphError, GraphSyntaxError
from ciplearn.causal.names import checked_name

ROLES = ("exposure", "outcome", "adjusted")

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

    def add_edge(self, a: str, arrow: str, b: str) -> None:
        """File the edge that ``a arrow b`` draws."""
        edges = {"<->": self.bidirected, "--": self.undirected}.get(arrow, self.directed)
        edges.append((b, a) if arrow == "<-" else (a, b))

    def list_for(self, role: str) -> list[str]:
        """Return the list that a role such as ``"exposure"`` fills."""
        filled: list[str] = getattr(self, {"exposure": "exposures", "outcome": "outcomes"}.get(role, role))
        return filled

    def roles_of(self, name: str) -> list[str]:
        """Return the roles of a node, other than latent."""
        return [role for role in ROLES if name in self.list_for(role)]

    def extend(self, other: GraphParts) -> None:
        """Add all pieces of another graph."""
        for name, pieces in vars(other).items():
            if name == "positions":
                self.positions.update(pieces)
            else:
                getattr(self, name).extend(pieces)


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

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens()
        self.next = 0
        self.parts = GraphParts()
        self.edges = 0

    def _tokens(self) -> list[Token]:
        found, offset = [], 0
        while offset < len(self.text):
            match = self.pattern.match(self.text, offset)
            if match is None:
                raise syntax_error(self.text, offset, self.unreadable(offset))
            kind, piece = match.lastgroup or "", match.group()
            if kind == "quoted":
                found.append(Token("name", re.sub(r'\\(["\\])', r"\1", piece[1:-1]), offset, quoted=True))
            elif kind == "word":
                found.append(Token("name", piece, offset))
            elif kind in ("arrow", "sign", "html"):
                found.append(Token(kind, _PLAIN.get(piece, piece), offset))
            offset = match.end()
        return [*found, Token("end", "the end of the text", len(self.text))]

    def unreadable(self, offset: int) -> str:
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
            raise self.error(token, "The text ends in the middle of a statement")
        self.next += 1
        return token

    def comes(self, signs: str) -> bool:
        """Tell whether one of these signs comes next."""
        return self.peek().kind == "sign" and self.peek().text in signs

    def passes(self, signs: str) -> bool:
        """Pass one of these signs if it comes next."""
        comes = self.comes(signs)
        self.next += comes
        return comes

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
        for a in left:
            for b in right:
                if a.text == b.text:
                    edge = f"{a.text!r} {arrow} {b.text!r}"
                    raise self.error(b, f"No node causes itself, but {edge} was found; remove it")
                self.parts.add_edge(a.text, arrow, b.text)

    def error(self, token: Token, message: str) -> GraphSyntaxError:
        """Make the error for the place of a token."""
        return syntax_error(self.text, token.offset, message)
