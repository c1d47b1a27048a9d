"""A factual and an imagined world, side by side: the sum over all pairs of them that a question allows.

The probability that evidence is seen and the event would have been is a sum over pairs of worlds, and each term is a
product over confounded components C:

    P(event had do been done, given) = Σ over pairs Π_C p_C(the response functions give both worlds what C does there).

Most factors are fixed by the probabilities. What is left is a function of the laws p_C of a few components.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod

import numpy as np

from ciplearn._core.errors import InputError
from ciplearn.doubt.response_functions import Component, DiscreteLaw, ObservedGraph, Values, conditional

# Pairs of worlds that are still summed in seconds.
_MOST_PAIRS = 1_000_000

# A node in the factual world (False) or in the imagined one (True).
Copy = tuple[str, bool]


@dataclass(frozen=True)
class TwoWorlds:
    """Pairs of a factual and an imagined world."""

    law: DiscreteLaw
    graph: ObservedGraph
    # its level in each pair. A node that `do` cannot change has one copy, the factual one, and stands for both; nodes
    # that matter for neither event nor evidence have none
    values: Mapping[Copy, np.ndarray]
    done: Mapping[str, int]  # what `do` sets in the imagined world
    weights: np.ndarray  # the product of the factors that are known already

    def parents(self, copy: Copy) -> np.ndarray:  # (pairs, parents)
        """Levels of the parents of a copy."""
        node, imagined = copy
        columns = [self._level(parent, imagined) for parent in self.graph.parents[node]]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.weights), 0), dtype=int)

    def _level(self, node: str, imagined: bool) -> np.ndarray:
        if imagined and node in self.done:
            return np.full(len(self.weights), self.done[node])
        return self.values[node, imagined and (node, True) in self.values]

    def weighted(self, factors: np.ndarray) -> TwoWorlds:
        """Return the pairs with their weights multiplied, those of weight 0 left out."""
        weights = self.weights * factors
        kept = weights > 0
        values = {copy: column[kept] for copy, column in self.values.items()}
        return replace(self, values=values, weights=weights[kept])


def possible_worlds(
    law: DiscreteLaw, graph: ObservedGraph, event: Mapping[str, int], do: Mapping[str, int], given: Mapping[str, int]
) -> TwoWorlds:
    """Return every pair of worlds that agrees with event, do and evidence."""
    below = {node for node in graph.parents if not graph.ancestors({node}).isdisjoint(do)} - set(do)
    imagined = graph.ancestors(set(event) - set(do), avoiding=set(do)) - set(do)
    factual = graph.ancestors({*given, *(imagined - below)})
    copies: list[Copy] = [(node, False) for node in graph.parents if node in factual]
    copies += [(node, True) for node in graph.parents if node in imagined & below]
    choices = {copy: set(range(law.size(copy[0]))) for copy in copies}
    for node, level in given.items():
        choices[node, False] &= {level}
    for node, level in event.items():
        if node not in do:
            choices[node, node in below] &= {level}
    count = prod(map(len, choices.values()))
    if count > _MOST_PAIRS:
        raise InputError(
            f"The question sums over {count:.3g} pairs of worlds, more than {_MOST_PAIRS}; give more evidence, or "
            "merge levels."
        )
    grid = np.array(list(product(*map(sorted, choices.values()))), dtype=int).reshape(count, len(copies))
    values = {copy: grid[:, place] for place, copy in enumerate(copies)}
    contradiction = any(do[node] != level for node, level in event.items() if node in do)
    return TwoWorlds(law, graph, values, do, np.full(count, 0.0 if contradiction else 1.0))


def reduced(worlds: TwoWorlds) -> tuple[np.ndarray, list[Component]]:
    """Return the sum as a function of the laws that are open, one axis per component, and those components."""
    components = {nodes: [copy for copy in worlds.values if copy[0] in nodes] for nodes in worlds.graph.components()}
    components = {nodes: copies for nodes, copies in components.items() if copies}
    worlds = worlds.weighted(_factual_factors(worlds, components.values()))
    components = {nodes: copies for nodes, copies in components.items() if any(imagined for _, imagined in copies)}
    for settle in (_transported_factors, _determined_factors):
        for nodes, copies in list(components.items()):
            factors = settle(worlds, nodes, copies)
            if factors is not None:
                worlds = worlds.weighted(factors)
                del components[nodes]
    if not len(worlds.weights):
        return np.array(0.0), []
    free = [_component(worlds, nodes, copies) for nodes, copies in components.items()]
    parts = [_indicators(worlds, component, components[component.nodes]) for component in free]
    objective = np.zeros([component.size for component in free])
    picks = np.stack([pick for _, pick in parts], axis=1) if parts else np.zeros((len(worlds.weights), 0), dtype=int)
    for combination in np.unique(picks, axis=0):
        term = np.asarray(worlds.weights[(picks == combination).all(axis=1)].sum())
        for (marked, _), place in zip(parts, combination, strict=True):
            term = np.multiply.outer(term, marked[place])
        objective += term
    return objective, free


def _factual_factors(worlds: TwoWorlds, components: Iterable[Sequence[Copy]]) -> np.ndarray:
    """Factors of the components that matter in the factual world only: P(v | what stands before v) over their nodes."""
    inside = worlds.graph.restricted({node for node, imagined in worlds.values if not imagined})
    factors = np.ones(len(worlds.weights))
    for copies in components:
        if not any(imagined for _, imagined in copies):
            for node, _ in copies:
                names = (*inside.before[node], node)
                table = np.stack([worlds.values[name, False] for name in names], axis=1)
                # What never occurs has an earlier factor of 0.
                factors *= np.nan_to_num(_conditionals(worlds.law, inside, names, table))
    return factors


def _transported_factors(worlds: TwoWorlds, nodes: Sequence[str], copies: Sequence[Copy]) -> np.ndarray | None:
    """Factors of an unconfounded node that matters in the imagined world only: P(v | its parents), if that is known."""
    if len(nodes) > 1 or len(copies) > 1:
        return None
    names = (*worlds.graph.parents[nodes[0]], nodes[0])
    table = np.column_stack([worlds.parents(copies[0]), worlds.values[copies[0]]])
    known = _conditionals(worlds.law, worlds.graph, names, table)
    return None if np.isnan(known).any() else known


def _determined_factors(worlds: TwoWorlds, nodes: Sequence[str], copies: Sequence[Copy]) -> np.ndarray | None:
    """Factors of a component if all of them are combinations of what the probabilities say; else None."""
    component = _component(worlds, nodes, copies)
    marked, pick = _indicators(worlds, component, copies)
    matrix, right = component.constraints
    mixture, *_ = np.linalg.lstsq(matrix.T, marked.T, rcond=None)
    if not np.allclose(matrix.T @ mixture, marked.T, atol=1e-8):
        return None
    return np.clip(mixture.T @ right, 0.0, 1.0)[pick]


def _component(worlds: TwoWorlds, nodes: Sequence[str], copies: Sequence[Copy]) -> Component:
    """The component with the configurations that matter.

    Several nodes are tied together by data wherever their parents are: all configurations matter, in one block. Of one
    node those matter that occur, and what it does in the two worlds of a pair is asked about together.
    """
    law, parents = worlds.law, worlds.graph.parents
    if len(nodes) > 1:
        everywhere = {node: list(product(*(range(law.size(p)) for p in parents[node]))) for node in nodes}
        return Component(tuple(nodes), worlds.graph, law, (everywhere,))
    pairs = np.unique(np.stack([worlds.parents(copy) for copy in copies], axis=1), axis=0)
    blocks: list[set[Values]] = []
    for pair in pairs.tolist():
        together = set(map(tuple, pair))
        apart = [block for block in blocks if block.isdisjoint(together)]
        blocks = [*apart, together.union(*(block for block in blocks if block not in apart))]
    return Component(tuple(nodes), worlds.graph, law, tuple({nodes[0]: sorted(block)} for block in blocks))


def _indicators(worlds: TwoWorlds, component: Component, copies: Sequence[Copy]) -> tuple[np.ndarray, np.ndarray]:
    """Which response functions give what the copies do: one row per distinct demand, and the demand of each pair."""
    columns = [np.column_stack([worlds.parents(copy), worlds.values[copy]]) for copy in copies]
    demands, pick = np.unique(np.concatenate(columns, axis=1), axis=0, return_inverse=True)
    ends = np.cumsum([0, *(column.shape[1] for column in columns)])
    marked = []
    for demand in demands.tolist():
        parts = [demand[a:b] for a, b in pairwise(ends)]
        responses = [(node, tuple(part[:-1]), part[-1]) for (node, _), part in zip(copies, parts, strict=True)]
        marked.append(component.agreeing(responses))
    return np.array(marked).reshape(len(marked), component.size), pick.reshape(-1)


def _conditionals(law: DiscreteLaw, graph: ObservedGraph, names: Sequence[str], table: np.ndarray) -> np.ndarray:
    """P(last name | the names before it) at each row of levels, looked up once per distinct row; NaN where unknown."""
    distinct, pick = np.unique(table, axis=0, return_inverse=True)
    found = [conditional(law, graph, names[-1], dict(zip(names, row, strict=True))) for row in distinct.tolist()]
    return np.array([np.nan if value is None else value for value in found], dtype=float)[pick.reshape(-1)]
