"""`CausalGraph`: the drawn assumptions as a value.

A value here means: frozen, hashable, compared by content. Two graphs with the same nodes, edges, latent nodes and roles
are equal and answer every question alike, whatever the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from ciplearn._core.errors import GraphError
from ciplearn.causal import queries
from ciplearn.causal.class_criterion import judge_class
from ciplearn.causal.criterion import judge
from ciplearn.causal.dag import Dag
from ciplearn.causal.drawing import draw
from ciplearn.causal.formats.parts import GraphParts
from ciplearn.causal.implications import implied_independencies
from ciplearn.causal.independence import Independence
from ciplearn.causal.names import Edge, Names, as_names, checked_edges, checked_point, in_order, nearest
from ciplearn.causal.notations import Notations
from ciplearn.causal.orientations import equivalence_class, members, members_by_parents
from ciplearn.causal.paths import Path
from ciplearn.causal.question import read_question
from ciplearn.causal.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

    from ciplearn._core.random import RandomState
    from ciplearn.doubt import Falsification


@dataclass(frozen=True, repr=False)
class CausalGraph(Notations):
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

    Examples
    --------
    >>> from ciplearn import CausalGraph
    >>> graph = CausalGraph.from_edges("S -> {A L Y}, A -> {L Y}, L -> Y")
    >>> graph.nodes
    ('A', 'L', 'S', 'Y')
    >>> graph.is_valid_adjustment(x=["A"], y=["Y"], z=["S"])
    True
    >>> print(graph.criterion(outcome="Y", protected=["A"]).independence)
    Ŷ ⊥ {A, L} | {S}
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
        directed = checked_edges(self.directed, "directed", symmetric=False)
        bidirected = checked_edges(self.bidirected, "bidirected", symmetric=True)
        undirected = checked_edges(self.undirected, "undirected", symmetric=True)
        ends = [name for edge in (*directed, *bidirected, *undirected) for name in edge]
        _set(self, "nodes", in_order([*as_names(self.nodes, "nodes"), *ends]))
        _set(self, "directed", directed)
        _set(self, "bidirected", bidirected)
        _set(self, "undirected", undirected)
        _set(self, "latent", frozenset(self.known(self.latent, "latent")))
        for role in ("exposures", "outcomes", "adjusted"):
            _set(self, role, in_order(self.known(getattr(self, role), role)))
        _set(
            self,
            "positions",
            {name: checked_point(name, self.positions[name]) for name in self.known(self.positions, "positions")},
        )
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

    def known_observed(self, names: Names, role: str = "nodes") -> tuple[str, ...]:
        """Read `names` and make sure that each is an observed node of this graph.

        Raises
        ------
        GraphError
            If a name is unknown or latent.
        """
        asked = self.known(names, role)
        for name in asked:
            if name in self.latent:
                raise GraphError(
                    f"{role} names {name!r}, which is latent; only observed nodes can take part, so leave it out or "
                    "measure it."
                )
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

    # ---------------------------------------------------------------- separation and adjustment

    def m_separated(self, x: Names, y: Names, z: Names = ()) -> bool:
        """Tell whether every path between `x` and `y` is blocked by `z`: d-separation, bidirected edges included."""
        return queries.m_separated(self, x, y, z)

    def open_path(self, x: Names, y: Names, z: Names = ()) -> Path | None:
        """Return a shortest path between `x` and `y` that is open given `z`, or None where they are separated."""
        return queries.open_path(self, x, y, z)

    def proper_causal_paths(self, x: Names, y: Names, limit: int | None = 100) -> Iterator[Path]:
        """Iterate over the directed paths from `x` to `y` that meet `x` at their first node only."""
        return queries.causal_paths(self, x, y, limit)

    def forbidden_nodes(self, x: Names, y: Names) -> frozenset[str]:
        """Nodes that no valid set may hold: those that `x` changes on its way to `y`, and what these change."""
        return frozenset(self.names(queries.pose(self, x, y).forbidden))

    def is_valid_adjustment(self, x: Names, y: Names, z: Names = ()) -> bool:
        """Tell whether `z` is a valid adjustment set for the joint effect of all of `x` on all of `y`."""
        return queries.is_valid(self, x, y, z)

    def minimal_adjustment_sets(
        self, x: Names, y: Names, must_include: Names = (), must_exclude: Names = (), limit: int | None = 100
    ) -> Iterator[frozenset[str]]:
        """Iterate over the observed valid sets from which nothing but `must_include` can be left out.

        The sets nearest to `x` come first. The iteration is lazy with polynomial delay; it stops after `limit` sets,
        and None means all of them.
        """
        return queries.minimal_sets(self, x, y, must_include, must_exclude, limit)

    def smallest_adjustment_set(
        self, x: Names, y: Names, must_include: Names = (), must_exclude: Names = ()
    ) -> frozenset[str] | None:
        """Return an observed valid set with as few nodes as possible, or None where there is none."""
        problem, allowed, required = queries.constrained(self, x, y, must_include, must_exclude)
        return queries.named(self, problem.smallest(allowed, required))

    def canonical_adjustment_set(
        self, x: Names, y: Names, must_include: Names = (), must_exclude: Names = ()
    ) -> frozenset[str] | None:
        """Return the observed ancestors of `x` and `y` that are not forbidden: valid if any set is, else None."""
        problem, allowed, required = queries.constrained(self, x, y, must_include, must_exclude)
        return queries.named(self, problem.canonical(allowed, required))

    def optimal_adjustment_set(self, x: Names, y: Names) -> frozenset[str] | None:
        """Return the valid set of smallest asymptotic variance where it is known to exist, else None.

        It is the set of parents of the nodes on proper causal paths that are neither forbidden nor in `x`; None where a
        latent node belongs to it, where some outcome does not descend from `x`, or where no set is valid.
        """
        problem, allowed, _ = queries.constrained(self, x, y, (), ())
        return queries.named(self, problem.optimal(allowed))

    def implied_independencies(self, limit: int | None = None) -> Iterator[Independence]:
        """Iterate over independencies that data can test: one for each pair of observed nodes that can be separated."""
        return implied_independencies(self, limit)

    def falsify(
        self,
        table: pd.DataFrame,
        *,
        level: float = 0.05,
        n_permutations: int = 100,
        limit: int | None = None,
        random_state: RandomState = 0,
    ) -> Falsification:
        """Test the independencies that the graph implies on a table; see `ciplearn.doubt.falsify`."""
        # The one import upwards: the question belongs to the graph, its answer needs tests.
        from ciplearn.doubt import falsify

        return falsify(self, table, level=level, n_permutations=n_permutations, limit=limit, random_state=random_state)

    # ---------------------------------------------------------------- the criterion

    def criterion(
        self,
        outcome: str | None = None,
        protected: Names | None = None,
        context: Names | None = None,
        inputs: Names | None = None,
        adjustment: Names | None = None,
    ) -> Verdict:
        """Find the independence that makes a predictor counterfactually invariant, or say why none is certified.

        Parameters
        ----------
        outcome, protected
            What is predicted, and what the prediction should not follow. Default: the roles in the graph's text.
        context
            What a person is known by while `protected` is imagined to change. Default: every observed node but the
            outcome, which is counterfactual fairness.
        inputs
            What the predictor sees. Default: every observed node but the outcome.
        adjustment
            The set S to condition on. Default: the largest set inside the context that certifies; failing that, the
            same with as few other observed nodes as possible (`ciplearn.causal.default_adjustment` says why).

        Returns
        -------
        Verdict
            For a graph with undirected edges a `ClassVerdict`, which judges every graph of the class.
        """
        question = read_question(self, outcome, protected, context, inputs, adjustment)
        if self.undirected:
            return judge_class(self, question)
        verdict = judge(self, question)
        # An equal graph may have been judged before, drawn in another way.
        return verdict if verdict.graph is self else replace(verdict, graph=self)

    def members(self, limit: int | None = None, *, by_parents_of: Names | None = None) -> Iterator[CausalGraph]:
        """Iterate over the graphs that direct every undirected edge without a cycle and without a new collider.

        Parameters
        ----------
        limit : int, optional
            List at most so many.
        by_parents_of : names, optional
            List one member per choice of parents that these nodes may have. Where mechanisms are linear, what the nodes
            cause depends on nothing else [maathuis2009], and a class of thousands shrinks to a few graphs.
        """
        return members(self, limit) if by_parents_of is None else members_by_parents(self, by_parents_of, limit)

    def equivalence_class(self) -> CausalGraph:
        """Return the graph with undirected edges that stands for all graphs with the same independencies."""
        return equivalence_class(self)

    # ---------------------------------------------------------------- notations and looks

    @classmethod
    def _from_parts(cls, parts: GraphParts) -> Self:
        return cls(**vars(parts))

    def _parts(self) -> GraphParts:
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {name: list(value) for name, value in kept.items() if name not in ("latent", "positions")}
        return GraphParts(**lists, latent=list(in_order(self.latent)), positions=dict(self.positions))

    def to_svg(
        self,
        verdict: Verdict | None = None,
        *,
        paths: Iterable[Path] = (),
        prediction_edges: bool | None = None,
        refuted: Iterable[Independence] = (),
    ) -> str:
        """Draw the graph.

        In graphs of ten nodes and more, nodes with the same causes and effects share a frame; of a graph of tiers each
        tier does, and arrows lead to the next tier only.

        Parameters
        ----------
        verdict
            Colours the roles, adds Ŷ and shows its open paths in red.
        paths
            More paths to show in red.
        prediction_edges
            Whether to draw the edges from the inputs into Ŷ, or else a dot at each input. Default: edges in graphs of
            fewer than ten nodes; edges on open paths are always drawn.
        refuted
            Independencies that data contradict: their pairs are joined by a dotted red line.
        """
        return draw(self, verdict, tuple(paths), prediction_edges, tuple(refuted))

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def __repr__(self) -> str:
        text = self.to_edges()
        return f"CausalGraph({text!r})" if len(text) < 200 else f"CausalGraph({len(self.nodes)} nodes: {text[:160]}...)"


def _set(graph: CausalGraph, attribute: str, value: object) -> None:
    # The one place that writes to the frozen value: while it is being made.
    object.__setattr__(graph, attribute, value)
