"""DOT: ``a -> b`` is a cause, ``a -> b [dir=both]`` a bidirected edge, ``a -> b [dir=none]`` an undirected one.

A node may carry ``latent=true``, ``roles="exposure,outcome"`` and ``pos="x,y"``. Other attributes say how to draw, and
are not read.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from ciplearn._core.errors import GraphSyntaxError
from ciplearn.causal.formats.networkx_format import read_marks
from ciplearn.causal.formats.parts import Cursor, GraphParts, Token, in_quotes

_ARROWS = {"forward": "->", "back": "<-", "both": "<->", "none": "--"}
_MEANT = ("dir", "latent", "observed", "roles")
_DEEPEST = 50


def read_dot(text: str) -> GraphParts:
    """Read the one graph of a DOT text."""
    return _DotReader(text).graph()


def write_dot(parts: GraphParts) -> str:
    """Write DOT text that Graphviz draws: latent nodes and bidirected edges dashed."""
    lines = ["digraph {"]
    for name in parts.nodes:
        marks = ["latent=true", "style=dashed"] if name in parts.latent else []
        if roles := ",".join(parts.roles_of(name)):
            marks.append(f'roles="{roles}"')
        if name in parts.positions:
            x, y = parts.positions[name]
            marks.append(f'pos="{x!r},{y!r}"')
        attributes = f" [{', '.join(marks)}]" if marks else ""
        lines.append(f"  {in_quotes(name)}{attributes};")
    looks = {"directed": "", "bidirected": " [dir=both, style=dashed]", "undirected": " [dir=none]"}
    for kind, look in looks.items():
        lines += [f"  {in_quotes(a)} -> {in_quotes(b)}{look};" for a, b in getattr(parts, kind)]
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

    def graph(self) -> GraphParts:
        self.word("strict")
        self.directed = self.word("digraph")
        if not self.directed and not self.word("graph"):
            raise self.unexpected("digraph")
        if self.peek().kind == "name":
            self.identifier()
        self.block(depth=0)
        if self.peek().kind != "end":
            raise self.error(self.peek(), f"One graph is expected, but {self.peek().text!r} stands after it; remove it")
        return self.parts

    def block(self, depth: int) -> tuple[Token, ...]:
        """Read ``{ ... }`` and return its nodes, each once."""
        if depth > _DEEPEST:
            wrong = f"Subgraphs stand more than {_DEEPEST} deep within each other; write them flat"
            raise self.error(self.peek(), wrong)
        if not self.passes("{"):
            raise self.unexpected("'{'")
        inside: dict[str, Token] = {}
        while not self.passes("}"):
            if not self.passes(";,"):
                inside.update((node.text, node) for node in self.statement(depth))
        return tuple(inside.values())

    def statement(self, depth: int) -> tuple[Token, ...]:
        first = self.peek()
        if any(self.word(default) for default in ("node", "edge", "graph")):
            for attribute in set(_MEANT) & set(self.attributes()):
                wrong = f"{attribute} in the defaults of {first.text!r} is not read; write it at each node or edge"
                raise self.error(first, wrong)
            return ()
        sides = [self.end(depth)]
        if first.kind == "name" and self.passes("="):
            # An attribute of the graph: no node after all.
            self.parts.nodes.pop()
            self.value()
            return ()
        is_node = self.tokens[self.next - 1].text != "}"
        while self.peek().kind == "arrow":
            if self.take().text != ("->" if self.directed else "--"):
                raise self.unexpected("an edge of this kind of graph")
            sides.append(self.end(depth))
        attributes = self.attributes()
        if len(sides) > 1:
            direction = attributes.get("dir", "forward" if self.directed else "none").lower()
            if direction not in _ARROWS:
                raise self.error(first, f"dir={direction} is not known; use forward, back, both or none")
            for left, right in pairwise(sides):
                self.join(left, _ARROWS[direction], right)
        elif is_node:
            marks: dict[str, Any] = {key: attributes[key] for key in _MEANT[1:] if key in attributes}
            if "pos" in attributes:
                marks["pos"] = attributes["pos"].rstrip("!").split(",")
            read_marks(self.parts, sides[0][0].text, marks)
        return tuple(node for side in sides for node in side)

    def end(self, depth: int) -> tuple[Token, ...]:
        """Read one end of an edge: a node, or all nodes of a subgraph."""
        if self.word("subgraph") and self.peek().kind == "name":
            self.identifier()
        if self.comes("{"):
            return self.block(depth + 1)
        node = self.declare(self.identifier())
        # What follows the colon is a port: the side of the node at which the edge is drawn.
        while self.passes(":"):
            self.identifier()
        return (node,)

    def attributes(self) -> dict[str, str]:
        """Read ``[key=value, ...]``, as often as it stands there."""
        read: dict[str, str] = {}
        while self.passes("["):
            while not self.passes("]"):
                key = self.identifier().text
                read[key] = self.value() if self.passes("=") else "true"
                while self.passes(",;"):
                    pass
        return read

    def value(self) -> str:
        return self.take().text if self.peek().kind == "html" else self.identifier().text

    def identifier(self) -> Token:
        """Read a word, or quoted pieces that a plus joins."""
        first = self.peek()
        if first.kind != "name":
            raise self.unexpected("a name")
        pieces = [self.take().text]
        while first.quoted and self.passes("+"):
            pieces.append(self.take().text)
        return Token("name", "".join(pieces), first.offset, first.quoted)

    def word(self, keyword: str) -> bool:
        """Pass a keyword, in letters of any size, if it comes next."""
        token = self.peek()
        comes = token.kind == "name" and not token.quoted and token.text.lower() == keyword
        self.next += comes
        return comes

    def unexpected(self, expected: str) -> GraphSyntaxError:
        return self.error(self.peek(), f"This is not DOT: {expected} is expected, but {self.peek().text!r} was found")
