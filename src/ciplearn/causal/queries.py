"""Questions about separation and adjustment asked in names: checked here once, answered in numbers elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ciplearn._core.errors import GraphError
from ciplearn._core.numbers import first
from ciplearn._core.wording import as_set
from ciplearn.causal.adjustment import Adjustment
from ciplearn.causal.names import Names
from ciplearn.causal.paths import Path, as_path, proper_causal_paths
from ciplearn.causal.separation import separated, shortest_open_walk

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph


def m_separated(graph: CausalGraph, x: Names, y: Names, z: Names) -> bool:
    """Tell whether `z` m-separates `x` and `y`; nodes may be latent, sets may be empty."""
    parts = _disjoint(graph, x=x, y=y, z=z)
    return separated(graph.dag(), parts["x"], parts["y"], parts["z"])


def open_path(graph: CausalGraph, x: Names, y: Names, z: Names) -> Path | None:
    """Return a shortest path between `x` and `y` that is open given `z`, or None where they are separated."""
    parts = _disjoint(graph, x=x, y=y, z=z)
    walk = shortest_open_walk(graph.dag(), parts["x"], parts["y"], parts["z"])
    return None if walk is None else as_path(graph, graph.dag(), walk)


def pose(graph: CausalGraph, x: Names, y: Names) -> Adjustment:
    """Pose the adjustment problem for exposures `x` and outcomes `y`."""
    parts = _disjoint(graph, x=x, y=y)
    for side, numbers in parts.items():
        if not numbers:
            raise GraphError(f"{side} is empty; name at least one node.")
    return Adjustment(graph.dag(), frozenset(parts["x"]), frozenset(parts["y"]))


def is_valid(graph: CausalGraph, x: Names, y: Names, z: Names) -> bool:
    """Tell whether the observed set `z` is a valid adjustment set for (`x`, `y`)."""
    problem = pose(graph, x, y)
    return problem.is_valid(_disjoint(graph, x=x, y=y, z=graph.known_observed(z, "z"))["z"])


def constrained(
    graph: CausalGraph, x: Names, y: Names, must_include: Names, must_exclude: Names
) -> tuple[Adjustment, set[int], set[int]]:
    """Return the problem, the nodes that a set may hold and those that it must hold."""
    problem = pose(graph, x, y)
    parts = _disjoint(
        graph, x=x, y=y, must_include=graph.known_observed(must_include, "must_include"), must_exclude=must_exclude
    )
    allowed = graph.numbers(graph.observed) - problem.x - problem.y - parts["must_exclude"]
    return problem, allowed, parts["must_include"]


def minimal_sets(
    graph: CausalGraph, x: Names, y: Names, must_include: Names, must_exclude: Names, limit: int | None
) -> Iterator[frozenset[str]]:
    """Check the question at once, then yield the sets lazily."""
    problem, allowed, required = constrained(graph, x, y, must_include, must_exclude)
    return first((frozenset(graph.names(z)) for z in problem.minimal(allowed, required)), limit)


def causal_paths(graph: CausalGraph, x: Names, y: Names, limit: int | None) -> Iterator[Path]:
    """Check the question at once, then yield the proper causal paths lazily."""
    problem = pose(graph, x, y)
    return first((as_path(graph, problem.dag, walk) for walk in proper_causal_paths(problem)), limit)


def named(graph: CausalGraph, numbers: set[int] | None) -> frozenset[str] | None:
    """Return a set of numbers as names, and None as None."""
    return None if numbers is None else frozenset(graph.names(numbers))


def _disjoint(graph: CausalGraph, **parts: Names) -> dict[str, set[int]]:
    numbers = {side: graph.numbers(names, side) for side, names in parts.items()}
    sides = list(numbers)
    for place, one in enumerate(sides):
        for other in sides[place + 1 :]:
            if both := numbers[one] & numbers[other]:
                raise GraphError(
                    f"{one} and {other} must not overlap, but {as_set(graph.names(both))} is in both; name each node "
                    "once."
                )
    return numbers
