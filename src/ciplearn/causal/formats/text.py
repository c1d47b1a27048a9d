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
from collections.abc import Collection
from dataclasses import replace

from ciplearn._core.errors import GraphError
from ciplearn.causal.formats.parts import Cursor, GraphParts, Token, quoted
from ciplearn.causal.names import nearest, tiers_of

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
    return _TextReader(text).model()


def read_edge_text(text: str) -> GraphParts:
    """Read an edge list such as ``"S -> A, A -> Y"``."""
    if _FILE.fullmatch(text.strip()):
        # Else a path becomes a graph with one node, without a word.
        raise GraphError(f"{text.strip()!r} is the name of a file; read it with CausalGraph.from_file.")
    return _TextReader(text).statements(closing=None)


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

    # ------------------------------------------------------------ the two notations

    def model(self) -> GraphParts:
        kind = self.frame()
        if kind is None:
            return self.statements(closing=None)
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

    def frame(self) -> Token | None:
        """Return the opening keyword if the text is framed: ``dag {`` or ``dag name {``."""
        first = self.tokens[0]
        kinds = [token.text if token.kind == "sign" else token.kind for token in self.tokens[1:3]]
        framed = kinds[:1] == ["{"] or kinds == ["name", "{"]
        return first if framed and not first.quoted and first.text in _KINDS else None

    # ------------------------------------------------------------ grammar

    def statements(self, closing: str | None) -> GraphParts:
        while self.peek().kind != "end":
            if closing and self.passes(closing):
                return self.parts
            if not self.passes(";,"):
                self.statement()
        if closing:
            raise self.error(self.peek(), f"The model is not closed; end it with {closing!r}")
        return self.parts

    def statement(self) -> None:
        first, after = self.peek(), self.tokens[min(self.next + 1, len(self.tokens) - 1)]
        if first.kind == "name" and after.kind == "sign" and after.text == "=":
            self.next += 2
            self.value()
            if first.text != "bb":
                raise self.error(first, f"The attribute {first.text!r} of the graph is not known; only bb is")
            return
        if self.tier_line():
            return
        nodes = left = self.endpoint()
        while self.peek().kind == "arrow":
            nodes, arrow = (), self.take()
            if arrow.text == "--" and self.directions_known:
                raise self.error(
                    arrow, "A dag has no undirected edge; write pdag { ... } if the direction is not known"
                )
            right = self.endpoint()
            self.join(left, arrow.text, right)
            left = right
        if self.passes("["):
            self.attributes(nodes)

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
            raise self.error(
                token, f"{token.text!r} stands in a line of tiers; begin a new line, or write ';' before it"
            )
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
        while not self.passes("}"):
            token = self.take()
            if token.kind == "sign" and token.text in ";,":
                separated = True
                continue
            if token.kind != "name":
                raise self.error(token, f"A group {{A B}} holds names only, but {token.text!r} was found; remove it")
            inside.append(self.declare(token))
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

    # ------------------------------------------------------------ attributes

    def attributes(self, nodes: tuple[Token, ...]) -> None:
        """Read ``[role, pos="x,y"]``; `nodes` is empty for the attributes of an edge."""
        while not self.passes("]"):
            if self.passes(";,"):
                continue
            token = self.take()
            if token.kind != "name":
                raise self.error(token, f"An attribute is expected, but {token.text!r} was found; close it with ']'")
            value = self.value() if self.passes("=") else None
            if token.text == "pos" and value is not None:
                spot = self.position(value)
                self.parts.positions.update({node.text: spot for node in nodes})
            elif nodes and value is None and token.text in _ROLES:
                self.parts.list_for(_ROLES[token.text]).extend(node.text for node in nodes)
            elif nodes:
                meant = nearest(token.text, ("latent", "exposure", "outcome", "adjusted", "pos"), "attributes")
                raise self.error(token, f"The node attribute {token.text!r} is not known; {meant.rstrip('.')}")
            else:
                raise self.error(token, f"The edge attribute {token.text!r} is not known; only pos is")

    def value(self) -> Token:
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


# -------------------------------------------------------------------------------- writing


def write_dagitty(parts: GraphParts) -> str:
    """Write a DAGitty model: ``dag``, or ``pdag`` where an edge has no direction."""
    kind = "pdag" if parts.undirected else "dag"
    lines = [f"  {line}" for line in _statements(parts)]
    return "\n".join([f"{kind} {{", *lines, "}", ""])


def write_edge_text(parts: GraphParts) -> str:
    """Write an edge list on one line."""
    return ", ".join(_statements(parts))


def write_tiers(parts: GraphParts) -> str:
    """Write the arrows as one line of tiers, and after it what else the graph has."""
    tiers = tiers_of(parts.directed)
    if not tiers:
        raise GraphError(
            "The arrows of this graph are not those of tiers, each acting on all later ones; use to_edges."
        )
    line = " | ".join(", ".join(quoted(name) for name in tier) for tier in tiers)
    drawn = {name for tier in tiers for name in tier}
    return "; ".join([line, *_statements(replace(parts, directed=[]), drawn)])


def _statements(parts: GraphParts, written: Collection[str] = ()) -> list[str]:
    edges = [
        *((a, "->", b) for a, b in parts.directed),
        *((a, "<->", b) for a, b in parts.bidirected),
        *((a, "--", b) for a, b in parts.undirected),
    ]
    drawn = {name for a, _, b in edges for name in (a, b)}.union(written)
    lines = []
    for name in parts.nodes:
        marks = [*(["latent"] if name in parts.latent else []), *parts.roles_of(name)]
        if name in parts.positions:
            x, y = parts.positions[name]
            marks.append(f'pos="{x!r},{y!r}"')
        if marks:
            lines.append(f"{quoted(name)} [{', '.join(marks)}]")
        elif name not in drawn:
            lines.append(quoted(name))
    return lines + [f"{quoted(a)} {arrow} {quoted(b)}" for a, arrow, b in edges]
