"""`CausalGraph`: the drawn assumptions, and the questions that they answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from ciplearn._core.arguments import first
from ciplearn._core.errors import GraphError
from ciplearn._core.wording import as_set
from ciplearn.causal.criterion import Question, judge
from ciplearn.causal.dag import Adjustment, separated, shortest_open_walk
from ciplearn.causal.drawing import draw
from ciplearn.causal.drawn_graph import DrawnGraph
from ciplearn.causal.findings import as_path, proper_causal_paths
from ciplearn.causal.names import Names, in_order
from ciplearn.causal.orientations import equivalence_class, judge_class, members, members_by_parents
from ciplearn.causal.statements import Independence, Path, implied_independencies
from ciplearn.causal.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

    from ciplearn._core.rows import RandomState
    from ciplearn.doubt import Falsification


@dataclass(frozen=True, repr=False)
class CausalGraph(DrawnGraph):
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
        Where the source text placed the nodes, y growing downwards; it does not count in comparisons.

    Examples
    --------
    >>> from ciplearn import CausalGraph
    >>> graph = CausalGraph.from_edges("S -> {A L Y}, A -> {L Y}, L -> Y")
    >>> graph.is_valid_adjustment(x=["A"], y=["Y"], z=["S"])
    True
    >>> print(graph.criterion(outcome="Y", protected=["A"]).independence)
    Ŷ ⊥ {A, L} | {S}
    """

    def m_separated(self, x: Names, y: Names, z: Names = ()) -> bool:
        """Tell whether every path between `x` and `y` is blocked by `z`: d-separation, bidirected edges included."""
        return separated(self.dag(), *self._disjoint(x=x, y=y, z=z).values())

    def open_path(self, x: Names, y: Names, z: Names = ()) -> Path | None:
        """Return a shortest path between `x` and `y` that is open given `z`, or None where they are separated."""
        walk = shortest_open_walk(self.dag(), *self._disjoint(x=x, y=y, z=z).values())
        return None if walk is None else as_path(self, self.dag(), walk)

    def proper_causal_paths(self, x: Names, y: Names, limit: int | None = 100) -> Iterator[Path]:
        """Iterate over the directed paths from `x` to `y` that meet `x` at their first node only."""
        problem = self._adjustment(x, y)
        return first((as_path(self, problem.dag, walk) for walk in proper_causal_paths(problem)), limit)

    def forbidden_nodes(self, x: Names, y: Names) -> frozenset[str]:
        """Nodes that no valid set may hold: those that `x` changes on its way to `y`, and what these change."""
        return frozenset(self.names(self._adjustment(x, y).forbidden))

    def is_valid_adjustment(self, x: Names, y: Names, z: Names = ()) -> bool:
        """Tell whether `z` is a valid adjustment set for the joint effect of all of `x` on all of `y`."""
        problem = self._adjustment(x, y)
        return problem.is_valid(self._disjoint(x=x, y=y, z=self.known_observed(z, "z"))["z"])

    def minimal_adjustment_sets(
        self, x: Names, y: Names, must_include: Names = (), must_exclude: Names = (), limit: int | None = 100
    ) -> Iterator[frozenset[str]]:
        """Iterate lazily over the minimal valid sets of observed nodes that hold `must_include`, nearest `x` first."""
        problem = self._adjustment(x, y, must_include, must_exclude)
        return first((frozenset(self.names(z)) for z in problem.minimal()), limit)

    def smallest_adjustment_set(
        self, x: Names, y: Names, must_include: Names = (), must_exclude: Names = ()
    ) -> frozenset[str] | None:
        """Return an observed valid set with as few nodes as possible, or None where there is none."""
        return self._named(self._adjustment(x, y, must_include, must_exclude).smallest())

    def canonical_adjustment_set(
        self, x: Names, y: Names, must_include: Names = (), must_exclude: Names = ()
    ) -> frozenset[str] | None:
        """Return the observed ancestors of `x` and `y` that are not forbidden: valid if any set is, else None."""
        return self._named(self._adjustment(x, y, must_include, must_exclude).canonical())

    def optimal_adjustment_set(self, x: Names, y: Names) -> frozenset[str] | None:
        """Return the valid set of smallest asymptotic variance where it is known to exist, else None.

        It holds the parents of the nodes on proper causal paths that are neither forbidden nor in `x`.
        """
        return self._named(self._adjustment(x, y).optimal())

    def _adjustment(self, x: Names, y: Names, must_include: Names = (), must_exclude: Names = ()) -> Adjustment:
        for side, numbers in self._disjoint(x=x, y=y).items():
            if not numbers:
                raise GraphError(f"{side} is empty; name at least one node.")
        dag, required = self.dag(), self.known_observed(must_include, "must_include")
        sides = self._disjoint(x=x, y=y, must_include=required, must_exclude=must_exclude)
        allowed = self.numbers(self.observed) - sides["x"] - sides["y"] - sides["must_exclude"]
        return Adjustment(dag, frozenset(sides["x"]), frozenset(sides["y"]), allowed, sides["must_include"])

    def _disjoint(self, **sides: Names) -> dict[str, set[int]]:
        numbers = {side: self.numbers(names, side) for side, names in sides.items()}
        for one, other in combinations(numbers, 2):
            if both := numbers[one] & numbers[other]:
                shared = as_set(self.names(both))
                raise GraphError(f"{one} and {other} must not overlap, but {shared} is in both; name each node once.")
        return numbers

    def _named(self, numbers: set[int] | None) -> frozenset[str] | None:
        return None if numbers is None else frozenset(self.names(numbers))

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
        # The one import upwards.
        from ciplearn.doubt import falsify

        return falsify(self, table, level=level, n_permutations=n_permutations, limit=limit, random_state=random_state)

    def criterion(
        self,
        outcome: str | None = None,
        protected: Names | None = None,
        context: Names | None = None,
        inputs: Names | None = None,
        adjustment: Names | None = None,
    ) -> Verdict:
        """Find the independence that makes a predictor counterfactually invariant, or say why none is certified.

        A `ClassVerdict` judges every graph of the class where the graph has undirected edges.

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
            same with as few other observed nodes as possible.
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
        if by_parents_of is None:
            return first(members(self), limit)
        return first(members_by_parents(self, set(self.known(by_parents_of, "by_parents_of"))), limit)

    def equivalence_class(self) -> CausalGraph:
        """Return the graph with undirected edges that stands for all graphs with the same independencies."""
        return equivalence_class(self)

    def to_svg(
        self,
        verdict: Verdict | None = None,
        *,
        paths: Iterable[Path] = (),
        prediction_edges: bool | None = None,
        refuted: Iterable[Independence] = (),
    ) -> str:
        """Draw the graph; from ten nodes on, nodes with the same causes and effects share a frame, as does each tier.

        Parameters
        ----------
        verdict
            Colours the roles, adds Ŷ and shows its open paths in red.
        paths
            More paths to show in red.
        prediction_edges
            Whether to draw the edges from the inputs into Ŷ, or else a dot at each input. Default: edges in graphs of
            fewer than ten nodes.
        refuted
            Independencies that data contradict: their pairs are joined by a dotted red line.
        """
        return draw(self, verdict, tuple(paths), prediction_edges, tuple(refuted))

    def _repr_svg_(self) -> str:
        return self.to_svg()


def read_question(
    graph: CausalGraph,
    outcome: str | None,
    protected: Names | None,
    context: Names | None,
    inputs: Names | None,
    adjustment: Names | None,
) -> Question:
    """Fill in the defaults of `CausalGraph.criterion` and refuse parts that cannot be played together."""

    def part(names: Names, role: str) -> tuple[str, ...]:
        return in_order(graph.known_observed(names, role))

    targets = graph.known(graph.outcomes if outcome is None else outcome, "outcome")
    if len(targets) != 1:
        why = f"The criterion needs one outcome, but {len(targets)} were received ({as_set(targets)})"
        raise GraphError(f"{why}; name one node, for several columns draw one node that stands for them.")
    (target,) = part(targets, "outcome")
    others = tuple(name for name in graph.observed if name != target)
    named = part(graph.exposures if protected is None else protected, "protected")
    if not named:
        raise GraphError("Nothing is protected; name the variables that the prediction should not follow.")
    adjusted = part(graph.adjusted if adjustment is None else adjustment, "adjustment")
    question = Question(
        outcome=target,
        protected=named,
        context=others if context is None else part(context, "context"),
        inputs=others if inputs is None else part(inputs, "inputs"),
        # No adjusted node in the text leaves the choice to the criterion; an empty set that was passed does not.
        adjustment=None if adjustment is None and not adjusted else adjusted,
    )
    for role in ("protected", "context", "inputs"):
        if target in getattr(question, role):
            why = "the predictor would see what it predicts" if role == "inputs" else "it is what is predicted"
            raise GraphError(f"{role} names the outcome {target!r}: {why}; leave it out.")
    if both := [name for name in adjusted if name in named]:
        why = f"adjustment names {both[0]!r}, which is protected: holding it fixed would hide its effect"
        raise GraphError(f"{why}; leave it out.")
    return question
