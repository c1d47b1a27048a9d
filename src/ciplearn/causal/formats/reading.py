"""Graph text from anywhere: which notation it is in, and edges given as text, as pairs or as both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

from ciplearn._core.choices import entries
from ciplearn._core.errors import GraphError
from ciplearn.causal.formats.dot import read_dot
from ciplearn.causal.formats.json_format import read_json
from ciplearn.causal.formats.networkx_format import read_gml
from ciplearn.causal.formats.parts import GraphParts
from ciplearn.causal.formats.text import read_dagitty, read_edge_text

# A graph of thousands of nodes has a few hundred thousand signs.
_LONGEST = 20_000_000

# Comments may stand before the first word of any notation but JSON.
_LEADING = re.compile(r"(?:\s|//[^\n]*\n|\#[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
_OPENINGS = (
    (re.compile(r"(?:strict\s+)?(?:di)?graph\b\s*(?:[\w.-]+\s*|\"[^\"]*\"\s*)?\{", re.IGNORECASE), read_dot),
    # A mark in brackets, as in "graph [latent]", is one of a node of that name.
    (
        re.compile(r"(?:(?:creator|version|comment)\b[^\n]*\s+)*graph\s*\[\s*(?:\w+\s+[-+.\d\"\[]|[]#])", re.I),
        read_gml,
    ),
    (re.compile(r"(?:dag|pdag|mag|pag)\b\s*(?:\w+\s*|\"[^\"]*\"\s*)?\{"), read_dagitty),
    (re.compile(r"\{\s*(?:\"[^\"]*\"\s*:|\}\s*\Z)"), read_json),
)


def read_text(text: str) -> GraphParts:
    """Read a graph in any notation, recognised by how the text begins; an edge list where nothing else fits."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise GraphError("The graph text is empty; write edges such as 'A -> B'.")
    begins = _LEADING.sub("", text, count=1)
    reader = next((reader for opening, reader in _OPENINGS if opening.match(begins)), read_edge_text)
    return reader(text)


def as_text(text: object) -> str:
    """Return `text` if it is a string."""
    if not isinstance(text, str):
        raise GraphError(f"Graph text must be a string, but {type(text).__name__} was received; read the file first.")
    return text


def file_text(path: str | PathLike[str]) -> str:
    """Return the text of a file, or say why it cannot be read."""
    try:
        with Path(path).open(encoding="utf-8-sig") as stream:
            # A device may go on for ever.
            text = stream.read(_LONGEST + 1)
    except FileNotFoundError:
        raise GraphError(f"There is no file {str(path)!r}; check the path.") from None
    except UnicodeDecodeError:
        raise GraphError(f"The file {str(path)!r} is not UTF-8 text; save the graph as text.") from None
    except OSError as problem:
        raise GraphError(f"The file {str(path)!r} cannot be read ({problem.strerror}); check the path.") from None
    if len(text) > _LONGEST:
        raise GraphError(f"The file {str(path)!r} has more signs than any graph, {_LONGEST}; check the path.")
    return text


def edge_parts(
    directed: str | Iterable[tuple[str, str] | str],
    bidirected: str | Iterable[tuple[str, str] | str],
    undirected: str | Iterable[tuple[str, str] | str],
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
            if not (read.directed or read.bidirected or read.undirected):
                # ("A", "B") where [("A", "B")] was meant must not become two lonely nodes.
                raise GraphError(f"{edge!r} in {kind} draws no edge; write pairs [('A', 'B')] or text 'A -> B'.")
            parts.extend(read)
    return parts


def _edge_text(text: str, kind: str) -> GraphParts:
    read = read_edge_text(text)
    kinds = {name for name in ("directed", "bidirected", "undirected") if vars(read)[name]}
    if kind != "directed" and kinds - {kind}:
        sample = "A <-> B" if kind == "bidirected" else "A -- B"
        raise GraphError(f"{text!r} is not a {kind} edge; write {sample!r}.")
    return read
