"""A graph in every notation: what reads it, what writes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Self

from ciplearn.causal.formats.dot import read_dot, write_dot
from ciplearn.causal.formats.gml import read_gml, write_gml
from ciplearn.causal.formats.json_format import read_json, write_json
from ciplearn.causal.formats.networkx_format import read_networkx, write_networkx
from ciplearn.causal.formats.parts import GraphParts
from ciplearn.causal.formats.reading import as_text, edge_parts, file_text, read_text
from ciplearn.causal.formats.text import read_dagitty, write_dagitty, write_edge_text, write_tiers
from ciplearn.causal.names import Edge, Names, as_names

if TYPE_CHECKING:
    import networkx


class Notations(ABC):
    """The readers and writers of `CausalGraph`; between text and graph stand `GraphParts`."""

    @classmethod
    @abstractmethod
    def _from_parts(cls, parts: GraphParts) -> Self:
        """Put the graph together."""

    @abstractmethod
    def _parts(self) -> GraphParts:
        """Take the graph apart."""

    @classmethod
    def from_edges(
        cls,
        directed: str | Iterable[Edge | str] = (),
        *,
        bidirected: str | Iterable[Edge | str] = (),
        undirected: str | Iterable[Edge | str] = (),
        latent: Names = (),
        nodes: Names = (),
    ) -> Self:
        """Build a graph from pairs, or from text such as ``"S -> A, A -> Y"`` or ``"sex, age | job | income"``.

        Examples
        --------
        >>> CausalGraph.from_edges("S -> A, A -> Y", bidirected=[("S", "Y")])
        CausalGraph('A -> Y, S -> A, S <-> Y')
        >>> CausalGraph.from_edges("sex, age | job | income")
        CausalGraph('age -> income, age -> job, job -> income, sex -> income, sex -> job')
        """
        parts = edge_parts(directed, bidirected, undirected)
        parts.nodes += as_names(nodes, "nodes")
        parts.latent += as_names(latent, "latent")
        return cls._from_parts(parts)

    @classmethod
    def from_dagitty(cls, text: str) -> Self:
        """Read a DAGitty model, ``dag { ... }`` or ``pdag { ... }``; its roles become defaults of `criterion`."""
        return cls._from_parts(read_dagitty(as_text(text)))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a graph from JSON text (`ciplearn.causal.formats.json_format`)."""
        return cls._from_parts(read_json(as_text(text)))

    @classmethod
    def from_dot(cls, text: str) -> Self:
        """Read a graph from DOT text."""
        return cls._from_parts(read_dot(as_text(text)))

    @classmethod
    def from_gml(cls, text: str) -> Self:
        """Read a graph from GML text."""
        return cls._from_parts(read_gml(as_text(text)))

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph) -> Self:
        """Read a networkx graph (`ciplearn.causal.formats.networkx_format`)."""
        return cls._from_parts(read_networkx(graph))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a graph in any notation, recognised by how the text begins."""
        return cls._from_parts(read_text(as_text(text)))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """Read a graph from a file in any notation, recognised by its content."""
        return cls.from_text(file_text(path))

    def to_edges(self) -> str:
        """Write an edge list on one line, which `from_edges` reads back."""
        return write_edge_text(self._parts())

    def to_tiers(self) -> str:
        """Write a line such as ``"sex, age | job | income"``, in which each tier acts on all later ones.

        Raises
        ------
        GraphError
            If the arrows are not exactly those of tiers.
        """
        return write_tiers(self._parts())

    def to_dagitty(self) -> str:
        """Write a DAGitty model."""
        return write_dagitty(self._parts())

    def to_json(self) -> str:
        """Write JSON text."""
        return write_json(self._parts())

    def to_dot(self) -> str:
        """Write DOT text, latent nodes and bidirected edges dashed."""
        return write_dot(self._parts())

    def to_gml(self) -> str:
        """Write GML text."""
        return write_gml(self._parts())

    def to_networkx(self) -> networkx.DiGraph:
        """Return a networkx ``DiGraph``, or a ``MultiDiGraph`` where there are bidirected or undirected edges."""
        return write_networkx(self._parts())
