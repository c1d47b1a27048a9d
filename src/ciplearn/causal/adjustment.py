"""Valid adjustment sets for sets of exposures X and sets of outcomes Y.

Z is valid for (X, Y) when

1. no node of Z descends, edges into X removed, from a node outside X on a proper causal path from X to Y, and
2. Z blocks every proper non-causal path from X to Y,

where a path is proper when it meets X at its first node only. Equivalently, Z avoids the forbidden nodes of (1) and
d-separates X from Y in the proper back-door graph, in which the first edge of every proper causal path is removed
[vanderzander2019]. The second form is linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property

from ciplearn.causal.dag import Dag
from ciplearn.causal.separation import minimal_separators, separated, smallest_separator


@dataclass(frozen=True)
class Adjustment:
    """The adjustment problem for exposures `x` and outcomes `y` in `dag`; both sets are disjoint and not empty."""

    dag: Dag
    x: frozenset[int]
    y: frozenset[int]

    @cached_property
    def proper_causal(self) -> set[int]:
        """Nodes outside X on a proper causal path from X to Y, the outcomes at their ends included."""
        below = self.dag.descendants((c for x in self.x for c in self.dag.children[x]), avoiding=self.x)
        above = self.dag.ancestors(self.y, avoiding=self.x)
        return below & above

    @cached_property
    def forbidden(self) -> set[int]:
        """Nodes that no valid set may hold: descendants of `proper_causal` once edges into X are removed."""
        return self.dag.descendants(self.proper_causal, avoiding=self.x)

    @cached_property
    def backdoor_graph(self) -> Dag:
        """The proper back-door graph: without the edges from X into `proper_causal`."""
        return self.dag.without_edges({(x, c) for x in self.x for c in self.dag.children[x] if c in self.proper_causal})

    def is_valid(self, z: Set[int]) -> bool:
        """Tell whether `z`, disjoint from X and Y, is a valid adjustment set."""
        return self.forbidden.isdisjoint(z) and separated(self.backdoor_graph, self.x, self.y, z)

    def canonical(self, allowed: Set[int], must_include: Set[int]) -> set[int] | None:
        """Return the allowed ancestors of X, Y and `must_include`: valid whenever any allowed set is, else None."""
        if not must_include <= (usable := self._usable(allowed)):
            return None
        candidate = self.backdoor_graph.ancestors(self.x | self.y | must_include) & usable
        return candidate if self.is_valid(candidate) else None

    def exists(self, allowed: Set[int], must_include: Set[int]) -> bool:
        """Tell whether any valid set lies between `must_include` and `allowed`."""
        return self.canonical(allowed, must_include) is not None

    def minimal(self, allowed: Set[int], must_include: Set[int]) -> Iterator[set[int]]:
        """Yield every valid set that loses validity with any node but `must_include` left out, nearest to X first."""
        if must_include <= (usable := self._usable(allowed)):
            yield from minimal_separators(self.backdoor_graph, self.x, self.y, usable, must_include)

    def smallest(self, allowed: Set[int], must_include: Set[int]) -> set[int] | None:
        """Return a valid set with as few nodes as possible, nearest to X among those; None where there is none."""
        if not must_include <= (usable := self._usable(allowed)):
            return None
        return smallest_separator(self.backdoor_graph, self.x, self.y, usable, must_include)

    def optimal(self, allowed: Set[int]) -> set[int] | None:
        """Return the valid set of smallest asymptotic variance, pa(cn) ∖ (cn ∪ forbidden ∪ X), where it exists.

        The optimality theorem [henckel2022] speaks of graphs without latent nodes whose outcomes all descend from the
        exposures. With latent nodes the set is still optimal when all of it is observed, because
        it then beats even the sets that latent nodes would allow. Otherwise None.
        """
        if not self.y <= self.proper_causal:
            return None
        causes = {parent for node in self.proper_causal for parent in self.dag.parents[node]}
        best = causes - self.forbidden - self.x
        return best if best <= allowed and self.is_valid(best) else None

    def _usable(self, allowed: Set[int]) -> set[int]:
        return set(allowed) - self.forbidden - self.x - self.y
