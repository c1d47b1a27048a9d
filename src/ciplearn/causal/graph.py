"""`CausalGraph`: the drawn assumptions as a value.

A value here means: frozen, hashable, compared by content. Two graphs with the same nodes, edges, latent nodes and roles
are equal and answer every question alike, whatever the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ciplearn._core.errors import GraphError
from ciplearn.causal.dag import Dag
from ciplearn.causal.names import Names, as_names, checked_name, in_order, natural_key, nearest

Edge = tuple[str, str]


@dataclass(frozen=True, repr=False)
class CausalGraph:
    """Directed, bidirected and undirected edges between named nodes, some of them latent.

    A directed edge A → B says that A is a direct cause of B. A bidirected edge A ↔ B says that A and B share an
    unobserved cause; it stands for a latent root with the two children A and B. An undirected edge A − B says that
    the direction is not known: such a graph stands for a class of graphs (see `members`).

    Attributes
    ----------
    nodes : tuple of str
        All nodes, latent ones included, in natural order (``x2`` before ``x10``).
    directed, bidirected, undirected : tuple of pairs
        The edges in natural order; the two ends of a bidirected or undirected edge stand in natural order too.
    latent : frozenset of str
        Nodes that no table can hold.
    exposures, outcomes, adjusted : tuple of str
        Roles written in the source text; `criterion` takes them as its defaults.
    positions : mapping from node to (x, y)
        Where the source text placed the nodes, y growing downwards. A drawing hint: it does not count in comparisons.
    """

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
        directed = _edges(self.directed, "directed", symmetric=False)
        bidirected = _edges(self.bidirected, "bidirected", symmetric=True)
        undirected = _edges(self.undirected, "undirected", symmetric=True)
        ends = [name for edge in (*directed, *bidirected, *undirected) for name in edge]
        _set(self, "nodes", in_order([*as_names(self.nodes, "nodes"), *ends]))
        _set(self, "directed", directed)
        _set(self, "bidirected", bidirected)
        _set(self, "undirected", undirected)
        _set(self, "latent", frozenset(self.known(self.latent, "latent")))
        for role in ("exposures", "outcomes", "adjusted"):
            _set(self, role, in_order(self.known(getattr(self, role), role)))
        _set(self, "positions", {name: _point(self, name, place) for name, place in self.positions.items()})
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        drawn = {frozenset(edge) for edge in (*self.directed, *self.bidirected)}
        for a, b in self.undirected:
            if frozenset((a, b)) in drawn:
                raise GraphError(
                    f"{a} − {b} contradicts another edge between the two: an undirected edge says that the direction "
                    "is not known; keep one of them."
                )
        if self._dag.topological_order() is None:
            cycle = self._dag.cycle() or []
            raise GraphError(
                f"A causal graph has no directed cycle, but {' → '.join(self.nodes[node] for node in cycle)} was "
                "received; remove one of these edges, or write A <-> B for an unobserved common cause."
            )

    # ---------------------------------------------------------------- the graph as numbers

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
        """Return the graph as numbers: nodes first, then one root for each bidirected edge.

        Raises
        ------
        GraphError
            If an edge has no direction: such a graph is a class of graphs, and `members` lists them.
        """
        if self.undirected:
            a, b = self.undirected[0]
            raise GraphError(
                f"This question needs a direction for every edge, but {a} − {b} has none "
                f"({len(self.undirected)} undirected in all); ask each graph of members(), or direct the edge."
            )
        return self._dag

    def known(self, names: Names, role: str = "nodes") -> tuple[str, ...]:
        """Read `names` and make sure that each is a node of this graph.

        Raises
        ------
        GraphError
            If a name is unknown; the message suggests the nearest one.
        """
        asked = as_names(names, role)
        for name in asked:
            if name not in self.index:
                raise GraphError(f"{role} names {name!r}, which is not in the graph; {nearest(name, self.nodes)}")
        return asked

    def numbers(self, names: Names, role: str = "nodes") -> set[int]:
        """Return the numbers of known names."""
        return {self.index[name] for name in self.known(names, role)}

    def names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the names of node numbers in natural order; roots of bidirected edges have none and are left out."""
        return tuple(self.nodes[number] for number in sorted(numbers) if number < len(self.nodes))

    # ---------------------------------------------------------------- kinship

    @property
    def observed(self) -> tuple[str, ...]:
        """The nodes that are not latent."""
        return tuple(name for name in self.nodes if name not in self.latent)

    def parents(self, node: str) -> tuple[str, ...]:
        """Direct causes of `node`."""
        return self.names(self.dag().parents[self._number(node)])

    def children(self, node: str) -> tuple[str, ...]:
        """Direct effects of `node`."""
        return self.names(self.dag().children[self._number(node)])

    def spouses(self, node: str) -> tuple[str, ...]:
        """Nodes that share a bidirected edge with `node`."""
        self._number(node)
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

    def _number(self, node: str) -> int:
        return self.index[self.known((node,), "node")[0]]

    # ---------------------------------------------------------------- doorways

    @classmethod
    def from_edges(
        cls,
        directed: Iterable[Edge] = (),
        *,
        bidirected: Iterable[Edge] = (),
        undirected: Iterable[Edge] = (),
        latent: Names = (),
        nodes: Names = (),
    ) -> CausalGraph:
        """Build a graph from pairs.

        Examples
        --------
        >>> CausalGraph.from_edges([("S", "A"), ("A", "Y")], bidirected=[("S", "Y")])
        CausalGraph('A -> Y, S -> A, S <-> Y')
        """
        return cls(
            nodes=as_names(nodes, "nodes"),
            directed=tuple(directed),
            bidirected=tuple(bidirected),
            undirected=tuple(undirected),
            latent=frozenset(as_names(latent, "latent")),
        )


def _set(graph: CausalGraph, attribute: str, value: object) -> None:
    # The one place that writes to the frozen value: while it is being made.
    object.__setattr__(graph, attribute, value)


def _edges(edges: Iterable[Edge], kind: str, *, symmetric: bool) -> tuple[Edge, ...]:
    pairs = []
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Iterable):
            raise GraphError(f"A {kind} edge must be a pair of names, but {edge!r} was received; write ('A', 'B').")
        ends = tuple(edge)
        if len(ends) != 2:
            raise GraphError(f"A {kind} edge must be a pair of names, but {edge!r} was received; write ('A', 'B').")
        a, b = (checked_name(name) for name in ends)
        if a == b:
            raise GraphError(f"No node causes itself, but the {kind} edge {a!r} to {b!r} was received; remove it.")
        pairs.append((a, b) if not symmetric or natural_key(a) < natural_key(b) else (b, a))
    return tuple(sorted(set(pairs), key=lambda pair: (natural_key(pair[0]), natural_key(pair[1]))))


def _point(graph: CausalGraph, name: str, place: tuple[float, float]) -> tuple[float, float]:
    graph.known((name,), "positions")
    x, y = (float(coordinate) for coordinate in place)
    if not (abs(x) < float("inf") and abs(y) < float("inf")):
        raise GraphError(f"A position must be two finite numbers, but {name!r} was placed at {place!r}; correct it.")
    return x, y
