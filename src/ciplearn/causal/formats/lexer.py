"""Words and signs of graph text, each with its line and column."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ciplearn._core.errors import GraphSyntaxError

# The longest sign first: "<->" must not be read as "<-" and ">". A bare word starts with a letter, a digit or "_", so
# that an arrow or operator of another notation is an error and never a node of that name.
_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff]+)
  | (?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/)
  | (?P<arrow><->|->|<-|--|[↔→←])
  | (?P<sign>[{}\[\];,]|=(?!>))
  | (?P<quoted>"(?:[^"\\\n]|\\["\\])*")
  | (?P<word>\w[\w.\u0300-\u036f⊥∧∨′]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN = {"↔": "<->", "→": "->", "←": "<-"}
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


@dataclass(frozen=True)
class Token:
    """A piece of text; `kind` is ``"arrow"``, ``"sign"``, ``"name"``, or ``"end"`` after the last one."""

    kind: str
    text: str
    offset: int
    quoted: bool = False


def place(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset, counted from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def syntax_error(text: str, offset: int, message: str) -> GraphSyntaxError:
    """Make the error for a place in the text."""
    return GraphSyntaxError(message, *place(text, offset))


def tokens(text: str) -> list[Token]:
    """Split graph text into tokens, or say where it cannot be read."""
    found = []
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise syntax_error(text, offset, _unreadable(text, offset))
        kind, piece = match.lastgroup or "", match.group()
        if kind == "quoted":
            found.append(Token("name", re.sub(r'\\(["\\])', r"\1", piece[1:-1]), offset, quoted=True))
        elif kind == "word":
            found.append(Token("name", piece, offset))
        elif kind in ("arrow", "sign"):
            found.append(Token(kind, _PLAIN.get(piece, piece), offset))
        offset = match.end()
    return [*found, Token("end", "the end of the text", len(text))]


def quoted(name: str) -> str:
    """Write a name so that it is read back as one word: bare where every reader agrees, else in quotes."""
    if _BARE.match(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unreadable(text: str, offset: int) -> str:
    here = text[offset]
    if here == '"':
        return 'A quoted name is not closed on its line; close it, and write \\" and \\\\ for a quote and a backslash'
    if text.startswith("/*", offset):
        return "A comment is not closed; end it with */"
    if here in "-<>=~@":
        found = text[offset : offset + 3].strip()
        return f"{found!r} is not an edge; write ->, <-, <-> or --, and quote names that hold {here!r}"
    return f"{here!r} cannot start a name; put the name in double quotes"
