"""A drawing as a value: checked when it is made, equal in whatever order it is drawn, read and written in notations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ciplearn._core.errors import GraphError
from ciplearn.causal.dag import Dag
from ciplearn.causal.formats import dot_and_gml, json_format
from ciplearn.causal.formats import text as edge_text
from ciplearn.causal.formats.json_format import ROLES, GraphParts
from ciplearn.causal.names import Edge, Names, as_names, checked_edges, checked_point, in_order, nearest

if TYPE_CHECKING:
    import networkx

_LONGEST = 20_000_000  # a graph of thousands of nodes has a few hundred thousand signs

# Comments may stand before the first word of any notation but JSON.
_LEADING = re.compile(r"(?:\s|//[^\n]*\n|\#[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
_OPENINGS = (
    (re.compile(r"(?:strict\s+)?(?:di)?graph\b\s*(?:[\w.-]+\s*|\"[^\"]*\"\s*)?\{", re.I), dot_and_gml.read_dot),
    # A mark in brackets, as in "graph [latent]", is one of a node of that name.
    (
        re.compile(r"(?:(?:creator|version|comment)\b[^\n]*\s+)*graph\s*\[\s*(?:\w+\s+[-+.\d\"\[]|[]#])", re.I),
        dot_and_gml.read_gml,
    ),
    (re.compile(r"(?:dag|pdag|mag|pag)\b\s*(?:\w+\s*|\"[^\"]*\"\s*)?\{"), edge_text.read_dagitty),
    (re.compile(r"\{\s*(?:\"[^\"]*\"\s*:|\}\s*\Z)"), json_format.read_json),
)


@dataclass(frozen=True, repr=False)
class DrawnGraph:
    """The fields, numbers, kinship and notations of a `CausalGraph`."""

    nodes: tuple[str, ...] = ()
    directed: tuple[Edge, ...] = ()
    bidirected: tuple[Edge, ...] = ()
    undirected: tuple[Edge, ...] = ()
    latent: frozenset[str] = frozenset()
    exposures: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    adjusted: tuple[str, ...] = ()
    positions: Mapping[str, tuple[float, float]] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        # The value is frozen; only here, while it is being made, is it written to.
        write = partial(object.__setattr__, self)
        for kind in ("directed", "bidirected", "undirected"):
            write(kind, checked_edges(getattr(self, kind), kind, symmetric=kind != "directed"))
        ends = [name for edge in (*self.directed, *self.bidirected, *self.undirected) for name in edge]
        write("nodes", in_order([*as_names(self.nodes, "nodes"), *ends]))
        write("latent", frozenset(self.known(self.latent, "latent")))
        for role in ("exposures", "outcomes", "adjusted"):
            write(role, in_order(self.known(getattr(self, role), role)))
        placed = self.known(self.positions, "positions")
        write("positions", {name: checked_point(name, self.positions[name]) for name in placed})
        drawn = {frozenset(edge) for edge in (*self.directed, *self.bidirected)}
        for a, b in self.undirected:
            if frozenset((a, b)) in drawn:
                raise GraphError(
                    f"{a} − {b} contradicts another edge between the two: an undirected edge says that the direction "
                    "is not known; keep one of them."
                )
        if cycle := self._dag.cycle():
            raise GraphError(
                f"A causal graph has no directed cycle, but {' → '.join(self.nodes[node] for node in cycle)} was "
                "received; remove one of these edges, or write A <-> B for an unobserved common cause."
            )

    @cached_property
    def index(self) -> dict[str, int]:
        """Number of each node: its place in `nodes`."""
        return {name: number for number, name in enumerate(self.nodes)}

    @cached_property
    def _dag(self) -> Dag:
        number = self.index
        edges = [(number[a], number[b]) for a, b in self.directed]
        for root, (a, b) in enumerate(self.bidirected, start=len(self.nodes)):
            edges += [(root, number[a]), (root, number[b])]
        return Dag.from_edges(len(self.nodes) + len(self.bidirected), edges)

    def dag(self) -> Dag:
        """Return the graph as numbers: nodes, then a root for each bidirected edge; raise if an edge is undirected."""
        if self.undirected:
            a, b = self.undirected[0]
            raise GraphError(
                f"This question needs a direction for every edge, but {a} − {b} has none "
                f"({len(self.undirected)} undirected in all); ask each graph of members(), or direct the edge."
            )
        return self._dag

    def known(self, names: Names, role: str = "nodes") -> tuple[str, ...]:
        """Read `names`, and raise a `GraphError` with the nearest node where one is not in this graph."""
        read = as_names(names, role)
        for name in read:
            if name not in self.index:
                raise GraphError(f"{role} names {name!r}, which is not in the graph; {nearest(name, self.nodes)}")
        return read

    def known_observed(self, names: Names, role: str = "nodes") -> tuple[str, ...]:
        """Read `names`, and raise a `GraphError` where one is unknown or latent."""
        known = self.known(names, role)
        for name in known:
            if name in self.latent:
                why = f"{role} names {name!r}, which is latent"
                raise GraphError(f"{why}; only observed nodes can take part, so leave it out or measure it.")
        return known

    def numbers(self, names: Names, role: str = "nodes") -> set[int]:
        """Return the numbers of known names."""
        return {self.index[name] for name in self.known(names, role)}

    def names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the names of node numbers in natural order; roots of bidirected edges have none and are left out."""
        return tuple(self.nodes[number] for number in sorted(numbers) if number < len(self.nodes))

    @property
    def observed(self) -> tuple[str, ...]:
        """The nodes that are not latent."""
        return tuple(name for name in self.nodes if name not in self.latent)

    def parents(self, node: str) -> tuple[str, ...]:
        """Direct causes of `node`."""
        (number,) = self.numbers((node,), "node")
        return self.names(self.dag().parents[number])

    def children(self, node: str) -> tuple[str, ...]:
        """Direct effects of `node`."""
        (number,) = self.numbers((node,), "node")
        return self.names(self.dag().children[number])

    def spouses(self, node: str) -> tuple[str, ...]:
        """Nodes that share a bidirected edge with `node`."""
        self.known((node,), "node")
        return in_order(b if a == node else a for a, b in self.bidirected if node in (a, b))

    def ancestors(self, nodes: Names) -> frozenset[str]:
        """Nodes with a directed path into `nodes`, `nodes` included."""
        return frozenset(self.names(self.dag().ancestors(self.numbers(nodes))))

    def descendants(self, nodes: Names) -> frozenset[str]:
        """Nodes with a directed path out of `nodes`, `nodes` included."""
        return frozenset(self.names(self.dag().descendants(self.numbers(nodes))))

    def topological_order(self) -> tuple[str, ...]:
        """Return every node after its parents; nodes that are free at the same time stand in natural order."""
        order = self.dag().topological_order() or []
        return tuple(self.nodes[number] for number in order if number < len(self.nodes))

    @classmethod
    def _read(cls, text: str, reader: Callable[[str], GraphParts]) -> Self:
        if not isinstance(text, str):
            kind = type(text).__name__
            raise GraphError(f"Graph text must be a string, but {kind} was received; read the file first.")
        return cls(**vars(reader(text)))

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

        >>> CausalGraph.from_edges("S -> A, A -> Y", bidirected=[("S", "Y")])
        CausalGraph('A -> Y, S -> A, S <-> Y')
        >>> CausalGraph.from_edges("sex, age | job | income")
        CausalGraph('age -> income, age -> job, job -> income, sex -> income, sex -> job')
        """
        parts = edge_text.edge_parts(directed, bidirected, undirected)
        parts.nodes += as_names(nodes, "nodes")
        parts.latent += as_names(latent, "latent")
        return cls(**vars(parts))

    @classmethod
    def from_dagitty(cls, text: str) -> Self:
        """Read a DAGitty model, ``dag { ... }`` or ``pdag { ... }``; its roles become defaults of `criterion`."""
        return cls._read(text, edge_text.read_dagitty)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a graph from JSON text (`ciplearn.causal.formats.json_format`)."""
        return cls._read(text, json_format.read_json)

    @classmethod
    def from_dot(cls, text: str) -> Self:
        """Read a graph from DOT text."""
        return cls._read(text, dot_and_gml.read_dot)

    @classmethod
    def from_gml(cls, text: str) -> Self:
        """Read a graph from GML text."""
        return cls._read(text, dot_and_gml.read_gml)

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph) -> Self:
        """Read a networkx graph (`ciplearn.causal.formats.dot_and_gml`)."""
        return cls(**vars(dot_and_gml.read_networkx(graph)))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a graph in any notation, recognised by how the text begins; an edge list where nothing else fits."""
        return cls._read(text, _read_any)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """Read a graph from a file in any notation, recognised by its content."""
        try:
            with Path(path).open(encoding="utf-8-sig") as stream:
                text = stream.read(_LONGEST + 1)  # a device may go on for ever
        except FileNotFoundError:
            raise GraphError(f"There is no file {str(path)!r}; check the path.") from None
        except UnicodeDecodeError:
            raise GraphError(f"The file {str(path)!r} is not UTF-8 text; save the graph as text.") from None
        except OSError as problem:
            raise GraphError(f"The file {str(path)!r} cannot be read ({problem.strerror}); check the path.") from None
        if len(text) > _LONGEST:
            raise GraphError(f"The file {str(path)!r} has more signs than any graph, {_LONGEST}; check the path.")
        return cls.from_text(text)

    to_edges = edge_text.write_edge_text
    to_tiers = edge_text.write_tiers
    to_dagitty = edge_text.write_dagitty
    to_dot = dot_and_gml.write_dot
    to_gml = dot_and_gml.write_gml
    to_networkx = dot_and_gml.write_networkx

    def to_json(self) -> str:
        """Write the graph as JSON text; empty fields other than nodes and directed are left out."""
        content = {each.name: getattr(self, each.name) for each in fields(DrawnGraph)}
        content["latent"] = in_order(self.latent)
        kept = {key: value for key, value in content.items() if value or key in ("nodes", "directed")}
        return json.dumps(kept, ensure_ascii=False, indent=2) + "\n"

    def _marks(self, node: str) -> tuple[list[str], str]:
        """Return the roles of a node, latent first, and its position as text."""
        roles = [role for role, names in {"latent": "latent", **ROLES}.items() if node in getattr(self, names)]
        return roles, ",".join(map(repr, self.positions.get(node, ())))

    def __repr__(self) -> str:
        text = self.to_edges()
        return f"CausalGraph({text!r})" if len(text) < 200 else f"CausalGraph({len(self.nodes)} nodes: {text[:160]}...)"


def _read_any(text: str) -> GraphParts:
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise GraphError("The graph text is empty; write edges such as 'A -> B'.")
    begins = _LEADING.sub("", text, count=1)
    return next((reader for opening, reader in _OPENINGS if opening.match(begins)), edge_text.read_edge_text)(text)
