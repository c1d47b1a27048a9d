"""DOT: ``a -> b`` is a cause, ``a -> b [dir=both]`` a bidirected edge, ``a -> b [dir=none]`` an undirected one.

A node may carry ``latent=true``, ``roles="exposure,outcome"`` and ``pos="x,y"``. Other attributes say how to draw, and
are not read.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ciplearn.causal.formats.networkx_format import read_marks
from ciplearn.causal.formats.parts import Cursor, GraphParts, Token, in_quotes, marks_of

if TYPE_CHECKING:
    from ciplearn.causal.drawn_graph import DrawnGraph

_ARROWS = {"forward": "->", "back": "<-", "both": "<->", "none": "--"}
_MEANT = ("dir", "latent", "observed", "roles")
_DEEPEST = 50


def read_dot(text: str) -> GraphParts:
    """Read the one graph of a DOT text."""
    return _DotReader(text).graph()


def write_dot(graph: DrawnGraph) -> str:
    """Write DOT text that Graphviz draws: latent nodes and bidirected edges dashed."""
    lines = ["digraph {"]
    for name in graph.nodes:
        roles, position = marks_of(graph, name)
        marks = ["latent=true", "style=dashed"] if roles[:1] == ["latent"] else []
        if roles := [role for role in roles if role != "latent"]:
            marks.append(f'roles="{",".join(roles)}"')
        if position:
            marks.append(f'pos="{position}"')
        attributes = f" [{', '.join(marks)}]" if marks else ""
        lines.append(f"  {in_quotes(name)}{attributes};")
    looks = {"directed": "", "bidirected": " [dir=both, style=dashed]", "undirected": " [dir=none]"}
    for kind, look in looks.items():
        lines += [f"  {in_quotes(a)} -> {in_quotes(b)}{look};" for a, b in getattr(graph, kind)]
    return "\n".join([*lines, "}", ""])


class _DotReader(Cursor):
    """A graph of statements, each a chain of nodes and subgraphs with attributes behind it."""

    pattern = re.compile(
        r"""
        (?P<space>[\s\ufeff]+)
      | (?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/)
      | (?P<arrow>->|--)
      | (?P<sign>[{}\[\];,=:+])
      | (?P<quoted>"(?:[^"\\]|\\.)*+")
      | (?P<word>[\w.]+|(?<!\w)-[\d.]+|[^\s\x00-\x7f]+)
      | (?P<html><(?:[^<>]|<[^<>]*+>)*+>)
        """,
        re.VERBOSE | re.DOTALL,
    )

    refusal = "This is not DOT: "
    directed = False
    depth = -1

    def graph(self) -> GraphParts:
        self.word("strict")
        self.directed = self.word("digraph")
        if not self.directed and not self.word("graph"):
            raise self.error(self.peek(), "This is not DOT: it begins with neither digraph nor graph")
        if self.peek().kind == "name":
            self.name("A name")
        if not self.passes("{"):
            raise self.error(self.peek(), f"This is not DOT: '{{' is missing before {self.peek().text!r}")
        self.block()
        return self.finished()

    def block(self) -> Collection[Token]:
        """Read on up to the closing brace and return the nodes, each once."""
        self.depth += 1
        if self.depth > _DEEPEST:
            wrong = f"Subgraphs stand more than {_DEEPEST} deep within each other; write them flat"
            raise self.error(self.peek(), wrong)
        inside: dict[str, Token] = {}
        while not self.passes("}"):
            if not self.passes(";,"):
                inside.update((node.text, node) for node in self.statement())
        self.depth -= 1
        return inside.values()

    def statement(self) -> list[Token]:
        first = self.peek()
        if any(self.word(default) for default in ("node", "edge", "graph")):
            for attribute in set(_MEANT) & {key.text for key, _ in self.attributes()}:
                wrong = f"{attribute} in the defaults of {first.text!r} is not read; write it at each node or edge"
                raise self.error(first, wrong)
            return []
        ends, arrows = self.chain()
        if first.kind == "name" and not arrows and self.passes("="):
            # An attribute of the graph: no node after all.
            self.parts.nodes.pop()
            self.value()
            return []
        is_node = self.tokens[self.next - 1].text != "}"
        for arrow in arrows:
            if arrow.text != ("->" if self.directed else "--"):
                raise self.error(arrow, f"This is not DOT: {arrow.text!r} is no edge of this kind of graph")
        marks: dict[str, Any] = {key.text: "true" if value is None else value.text for key, value in self.attributes()}
        if arrows:
            direction = marks.get("dir", "forward" if self.directed else "none").lower()
            if direction not in _ARROWS:
                raise self.error(first, f"dir={direction} is not known; use forward, back, both or none")
            for left, right in pairwise(ends):
                self.join(left, _ARROWS[direction], right)
        elif is_node:
            if "pos" in marks:
                marks["pos"] = marks["pos"].rstrip("!").split(",")
            read_marks(self.parts, next(iter(ends[0])).text, marks)
        return [node for side in ends for node in side]

    def end(self) -> Collection[Token]:
        """Read one end of an edge: a node, or all nodes of a subgraph."""
        if self.word("subgraph") and self.peek().kind == "name":
            self.name("A name")
        if self.passes("{"):
            return self.block()
        node = self.declare(self.name("A name"))
        # What follows the colon is a port: the side of the node at which the edge is drawn.
        while self.passes(":"):
            self.name("A port")
        return [node]

    def name(self, what: str) -> Token:
        """Read a word, or quoted pieces that a plus joins."""
        token = super().name(what)
        while token.quoted and self.passes("+"):
            token = replace(token, text=token.text + super().name(what).text)
        return token

    def word(self, keyword: str) -> bool:
        """Pass a keyword, in letters of any size, if it comes next."""
        token = self.peek()
        comes = token.kind == "name" and not token.quoted and token.text.lower() == keyword
        self.next += comes
        return comes
