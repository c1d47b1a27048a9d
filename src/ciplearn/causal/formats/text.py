"""Reader and writer of graph text: DAGitty models, and edge lists, which are the same without the frame.

    dag { S -> {A L}; A -> L -> Y; S -> Y; A <-> Y; U [latent, pos="0,1"] }
    S -> A, A -> Y

Statements are separated by ``;``, ``,`` or a line break, in a frame by any white space, as DAGitty has it. In an edge
list words side by side on one line are refused: they may be one name that holds spaces. What is not understood is an
error with its place; the only things read and not kept are drawing hints without a place in a graph value: the frame
``bb`` and ``pos`` of an edge.
"""

from __future__ import annotations

import re

from ciplearn._core.errors import GraphError, GraphSyntaxError
from ciplearn.causal.formats.lexer import Token, quoted, syntax_error, tokens
from ciplearn.causal.formats.parts import GraphParts
from ciplearn.causal.names import checked_name, nearest

_FILE = re.compile(r"\S+\.(?:txt|dot|gv|gml|json|dagitty|dag)", re.IGNORECASE)
_KINDS = ("dag", "pdag", "mag", "pag", "graph", "digraph")
_ROLES = {
    **dict.fromkeys(("latent", "l", "unobserved", "u"), "latent"),
    **dict.fromkeys(("exposure", "e", "source"), "exposure"),
    **dict.fromkeys(("outcome", "o", "target"), "outcome"),
    **dict.fromkeys(("adjusted", "a"), "adjusted"),
}


def read_dagitty(text: str) -> GraphParts:
    """Read a DAGitty model; the frame ``dag { ... }`` may be left out."""
    return _Reader(text).model()


def read_edge_text(text: str) -> GraphParts:
    """Read an edge list such as ``"S -> A, A -> Y"``."""
    if _FILE.fullmatch(text.strip()):
        # Else a path becomes a graph with one node, without a word.
        raise GraphError(f"{text.strip()!r} is the name of a file; read it with CausalGraph.from_file.")
    return _Reader(text).bare()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.next = 0
        self.parts = GraphParts()
        self.framed = False
        self.directions_known = False

    # ------------------------------------------------------------ the two notations

    def model(self) -> GraphParts:
        kind = self.frame()
        if kind is None:
            return self.bare()
        if kind.text not in ("dag", "pdag"):
            raise self.error(kind, f"A {kind.text!r} is not read here; write dag, or pdag for undirected edges")
        self.framed = True
        self.directions_known = kind.text == "dag"
        while self.take().text != "{":
            pass
        self.statements(closing="}")
        if self.peek().kind != "end":
            raise self.error(self.peek(), f"{self.peek().text!r} stands after the closing brace; remove it")
        return self.parts

    def bare(self) -> GraphParts:
        self.statements(closing=None)
        return self.parts

    def frame(self) -> Token | None:
        """Return the opening keyword if the text is framed: ``dag {`` or ``dag name {``."""
        first = self.tokens[0]
        opens = [token.kind == "sign" and token.text == "{" for token in self.tokens[1:3]]
        named = len(opens) == 2 and opens[1] and self.tokens[1].kind == "name"
        framed = (bool(opens) and opens[0]) or named
        return first if framed and not first.quoted and first.text in _KINDS else None

    # ------------------------------------------------------------ grammar

    def statements(self, closing: str | None) -> None:
        while True:
            token = self.peek()
            if token.kind == "end":
                if closing:
                    raise self.error(token, f"The model is not closed; end it with {closing!r}")
                return
            if token.kind == "sign" and token.text in ";,":
                self.take()
            elif token.kind == "sign" and token.text == closing:
                self.take()
                return
            else:
                self.statement()

    def statement(self) -> None:
        first = self.peek()
        if first.kind == "name" and self.tokens[self.next + 1].text == "=" and not self.tokens[self.next + 1].quoted:
            self.frame_attribute()
            return
        left = self.endpoint()
        is_edge = False
        while self.peek().kind == "arrow":
            is_edge = True
            arrow = self.take()
            if arrow.text == "--" and self.directions_known:
                raise self.error(
                    arrow, "A dag has no undirected edge; write pdag { ... } if the direction is not known"
                )
            right = self.endpoint()
            self.join(left, arrow, right)
            left = right
        if self.peek().kind == "sign" and self.peek().text == "[":
            self.take()
            self.attributes(() if is_edge else left)

    def endpoint(self) -> tuple[Token, ...]:
        token = self.take()
        if token.kind == "sign" and token.text == "{":
            return self.group(token)
        if token.kind != "name":
            raise self.error(token, f"A node name is missing before {token.text!r}")
        self.declare(token)
        self.refuse_loose_words(self.next - 1)
        return (token,)

    def group(self, opening: Token) -> tuple[Token, ...]:
        start, inside, separated = self.next, [], False
        while True:
            token = self.take()
            if token.kind == "sign" and token.text == "}":
                break
            if token.kind == "sign" and token.text in ";,":
                separated = True
                continue
            if token.kind != "name":
                raise self.error(token, f"A group {{A B}} holds names only, but {token.text!r} was found; remove it")
            self.declare(token)
            inside.append(token)
        if not inside:
            raise self.error(opening, "A group is empty; name at least one node")
        if separated:
            # {A B} are two nodes, but next to a comma, {years at school, B}, words without one are likely one name.
            for place in range(start, self.next):
                self.refuse_loose_words(place)
        return tuple(inside)

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

    def join(self, left: tuple[Token, ...], arrow: Token, right: tuple[Token, ...]) -> None:
        for a in left:
            for b in right:
                if a.text == b.text:
                    edge = f"{a.text!r} {arrow.text} {b.text!r}"
                    raise self.error(b, f"No node causes itself, but {edge} was found; remove it")
                self.parts.add_edge(a.text, arrow.text, b.text)

    def declare(self, token: Token) -> None:
        try:
            self.parts.nodes.append(checked_name(token.text))
        except GraphError as problem:
            raise self.error(token, str(problem).rstrip(".")) from None

    # ------------------------------------------------------------ attributes

    def attributes(self, nodes: tuple[Token, ...]) -> None:
        """Read ``[role, pos="x,y"]``; `nodes` is empty for the attributes of an edge."""
        while True:
            token = self.take()
            if token.kind == "sign" and token.text == "]":
                return
            if token.kind == "sign" and token.text in ";,":
                continue
            if token.kind != "name":
                raise self.error(token, f"An attribute is expected, but {token.text!r} was found; close it with ']'")
            value = self.value() if self.peek().text == "=" else None
            if token.text == "pos" and value is not None:
                spot = self.position(value)
                self.parts.positions.update({node.text: spot for node in nodes})
            elif nodes and value is None and token.text in _ROLES:
                self.parts.list_for(_ROLES[token.text]).extend(node.text for node in nodes)
            else:
                self.refuse_attribute(token, of_node=bool(nodes))

    def refuse_attribute(self, token: Token, *, of_node: bool) -> None:
        if not of_node:
            raise self.error(token, f"The edge attribute {token.text!r} is not known; only pos is")
        known = ("latent", "exposure", "outcome", "adjusted", "pos")
        raise self.error(
            token,
            f"The node attribute {token.text!r} is not known; {nearest(token.text, known, 'attributes').rstrip('.')}",
        )

    def frame_attribute(self) -> None:
        token = self.take()
        self.value()
        if token.text != "bb":
            raise self.error(token, f"The attribute {token.text!r} of the graph is not known; only bb is")

    def value(self) -> Token:
        self.take()
        token = self.take()
        if token.kind != "name":
            raise self.error(token, f"A value is missing before {token.text!r}")
        return token

    def position(self, value: Token) -> tuple[float, float]:
        try:
            x, y = (float(number) for number in value.text.split(","))
        except ValueError:
            x = y = float("nan")
        if not (abs(x) < float("inf") and abs(y) < float("inf")):
            raise self.error(value, f'A position is two numbers, pos="0.5,1", but {value.text!r} was found')
        return x, y

    # ------------------------------------------------------------ tokens

    def peek(self) -> Token:
        return self.tokens[self.next]

    def take(self) -> Token:
        token = self.tokens[self.next]
        if token.kind == "end":
            raise self.error(token, "The text ends in the middle of a statement")
        self.next += 1
        return token

    def error(self, token: Token, message: str) -> GraphSyntaxError:
        return syntax_error(self.text, token.offset, message)


# -------------------------------------------------------------------------------- writing


def write_dagitty(parts: GraphParts) -> str:
    """Write a DAGitty model: ``dag``, or ``pdag`` where an edge has no direction."""
    kind = "pdag" if parts.undirected else "dag"
    lines = [f"  {line}" for line in _statements(parts)]
    return "\n".join([f"{kind} {{", *lines, "}", ""])


def write_edge_text(parts: GraphParts) -> str:
    """Write an edge list on one line."""
    return ", ".join(_statements(parts))


def _statements(parts: GraphParts) -> list[str]:
    edges = [
        *((a, "->", b) for a, b in parts.directed),
        *((a, "<->", b) for a, b in parts.bidirected),
        *((a, "--", b) for a, b in parts.undirected),
    ]
    drawn = {name for a, _, b in edges for name in (a, b)}
    lines = []
    for name in parts.nodes:
        marks = [role for role in ("latent", "exposure", "outcome", "adjusted") if name in parts.list_for(role)]
        if name in parts.positions:
            x, y = parts.positions[name]
            marks.append(f'pos="{x!r},{y!r}"')
        if marks:
            lines.append(f"{quoted(name)} [{', '.join(marks)}]")
        elif name not in drawn:
            lines.append(quoted(name))
    return lines + [f"{quoted(a)} {arrow} {quoted(b)}" for a, arrow, b in edges]
