"""`Independence`: a conditional independence as a value; and those that a graph implies, which data can contradict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ciplearn._core.arguments import first
from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_list, as_set
from ciplearn.causal.names import Names, as_names, in_order
from ciplearn.causal.separation import separated, smallest_separator

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

PREDICTOR = "Ŷ"

# Names of a set that stand in a sentence; signs name them all.
_SHOWN = 6


@dataclass(frozen=True, init=False)
class Independence:
    """left ⊥ right | given: once `given` is known, `right` says nothing more about `left`.

    Names stand in natural order, so that statements with the same content are equal, hash alike and print alike.

    Attributes
    ----------
    right : tuple of str
        The variables that must say nothing more, (A ∪ W) ∖ S for the statement of a criterion.
    given : tuple of str
        The conditioning variables S.
    left : tuple of str
        The predictor Ŷ, unless the statement speaks of the graph's own nodes.

    Examples
    --------
    >>> from ciplearn import Independence
    >>> print(Independence(right=["L", "A"], given=["S"]))
    Ŷ ⊥ {A, L} | {S}
    """

    right: tuple[str, ...]
    given: tuple[str, ...]
    left: tuple[str, ...]

    def __init__(self, right: Names, given: Names = (), left: Names = PREDICTOR) -> None:
        for side, names in (("right", right), ("given", given), ("left", left)):
            object.__setattr__(self, side, in_order(as_names(names, side)))
        for side in ("right", "left"):
            if not getattr(self, side):
                raise InputError(
                    f"An independence needs variables on both sides, but {side} is empty; name at least one."
                )
        for one, other in (("right", "given"), ("left", "right"), ("left", "given")):
            if both := set(getattr(self, one)) & set(getattr(self, other)):
                raise InputError(
                    f"The sides of an independence must not overlap, but {as_set(in_order(both))} is in {one} and in "
                    f"{other}; keep each name on one side."
                )

    def __str__(self) -> str:
        left = self.left[0] if len(self.left) == 1 else as_set(self.left)
        given = f" | {as_set(self.given)}" if self.given else ""
        return f"{left} ⊥ {as_set(self.right)}{given}"

    def in_words(self) -> str:
        """Say what `left` does: ``tells nothing about A and L among rows with the same S``; six names of many."""
        among = f" among rows with the same {as_list(self.given, _SHOWN)}" if self.given else ""
        return f"tells nothing about {as_list(self.right, _SHOWN)}{among}"

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON-ready data."""
        return {"left": list(self.left), "right": list(self.right), "given": list(self.given), "text": str(self)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Independence:
        """Read what `to_dict` wrote."""
        return cls(right=content["right"], given=content["given"], left=content["left"])


def implied_independencies(graph: CausalGraph, limit: int | None) -> Iterator[Independence]:
    """Yield a ⊥ b | Z with a smallest observed Z for each pair of observed nodes that some observed set separates.

    A pair that no observed set separates is left out: the graph says nothing that can be tested about it.
    """
    graph.dag()
    return first(_statements(graph), limit)


def _statements(graph: CausalGraph) -> Iterator[Independence]:
    dag, observed = graph.dag(), sorted(graph.numbers(graph.observed))
    for a, b in combinations(observed, 2):
        # Adjacent nodes are never separated; skipping them saves the search.
        if a in dag.parents[b] or b in dag.parents[a]:
            continue
        z = smallest_separator(dag, {a}, {b}, set(observed) - {a, b}, set())
        if z is not None:
            yield Independence(right=graph.names({b}), given=graph.names(z), left=graph.names({a}))


def local_independencies(graph: CausalGraph) -> Iterator[Independence]:
    """Yield v ⊥ u | parents of v for each observed v and each earlier observed u that is no parent.

    Earlier means in topological order. Without latent nodes and bidirected edges this is the ordered local Markov
    property, pair by pair, from which the other independencies of the graph follow. Where the observed parents do not
    separate a pair, because a cause is not observed, a smallest observed set does it; a pair that none separates is
    left out.
    """
    dag = graph.dag()
    observed = graph.numbers(graph.observed)
    order = [node for node in dag.topological_order() or [] if node in observed]
    for place, v in enumerate(order):
        parents = set(dag.parents[v]) & observed
        for u in order[:place]:
            if u in parents:
                continue
            enough = separated(dag, {u}, {v}, parents)
            z = parents if enough else smallest_separator(dag, {u}, {v}, observed - {u, v}, set())
            if z is not None:
                yield Independence(right=graph.names({u}), given=graph.names(z), left=graph.names({v}))
