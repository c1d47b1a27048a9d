"""Sharp bounds on counterfactual probabilities of discrete variables [balke1997, wu2019].

The probability that evidence is seen and the event would have been is a sum over pairs of a factual and an imagined
world, and each term is a product over confounded components C:

    P(event had do been done, given) = Σ over pairs Π_C p_C(the response functions give both worlds what C does there).

Most factors are fixed by the probabilities. With one component whose law p_C is open the sum is linear in that law, and
HiGHS solves it exactly. With several it is linear in each law but not in all of them together. Then their joint law is
the unknown, and that the components are independent is kept in part: given what the others do, the law of each still
satisfies its own constraints [sherali1990]. These bounds are valid; where a model is found that attains them, they are
sharp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from ciplearn._core.arguments import of_kind
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.wording import as_list, as_set
from ciplearn.causal import CausalGraph
from ciplearn.doubt.response_functions import Component, DiscreteLaw, ObservedGraph, Values, conditionals, minimiser

_MOST_PAIRS = 1_000_000  # pairs of worlds that are still summed in seconds
Copy = tuple[str, bool]  # a node in the factual world (False) or in the imagined one (True)
_TOLERANCE, _ROUNDS = 1e-7, 20
# Programs over several components have a row for nearly every variable: these still take seconds.
_MOST_JOINT_VARIABLES = 5_000


@dataclass(frozen=True)
class CounterfactualBounds:
    """Between which values a counterfactual probability lies, whatever the causal model with this graph.

    The interval is ``sharp`` if some model attains each end: then none is narrower without further assumptions; ``how``
    says how it comes about, ``question`` which probability it bounds. ``laws`` holds, for each confounded component
    whose law is open, the response functions (one column per node and values of its parents) with the probabilities
    ``lower`` and ``upper`` that come closest to the two ends. Responses that are never asked about together stand in
    different rows, the others empty, and may be drawn independently.

    >>> import pandas as pd
    >>> from ciplearn import CausalGraph, counterfactual_bounds
    >>> law = pd.Series({(0, 0): 0.3, (0, 1): 0.2, (1, 0): 0.1, (1, 1): 0.4}).rename_axis(["X", "Y"])
    >>> counterfactual_bounds(CausalGraph.from_edges("X -> Y"), law, {"Y": 0}, {"X": 0}, {"X": 1, "Y": 1}).sharp
    True
    """

    lower: float
    upper: float
    sharp: bool
    how: str
    question: str
    laws: Mapping[tuple[str, ...], pd.DataFrame] = field(repr=False, compare=False)

    def __str__(self) -> str:
        lies = f"lies in [{self.lower:.4g}, {self.upper:.4g}]"
        return f"{self.question} {lies if self.upper - self.lower >= 1e-6 else f'= {self.lower:.4g}'}. {self.how}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the laws as JSON-ready data."""
        return {key: getattr(self, key) for key in ("question", "lower", "upper", "sharp", "how")}


def counterfactual_bounds(
    graph: CausalGraph,
    probabilities: pd.DataFrame | pd.Series,
    event: Mapping[str, Any],
    do: Mapping[str, Any],
    given: Mapping[str, Any] | None = None,
) -> CounterfactualBounds:
    """Bound P(event had `do` been done | given) over all causal models with this graph and these probabilities.

    Nodes are discrete. A causal model is a law of response functions, one law per confounded component of the graph
    (`ciplearn.doubt.response_functions`), and a linear program finds its extremes.

    Parameters
    ----------
    graph
        Every edge with a direction; latent nodes and bidirected edges are unobserved causes of any kind.
    probabilities
        A frame of rows, whose shares are taken as they are, or a Series of joint probabilities indexed by the observed
        nodes. Sampling error is not accounted for.
    event, do, given
        Levels of nodes: what would have been, what is imagined to be set, and what was the case, by default nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> from ciplearn import CausalGraph, counterfactual_bounds
    >>> law = pd.Series({(0, 0): 0.3, (0, 1): 0.2, (1, 0): 0.1, (1, 1): 0.4}).rename_axis(["X", "Y"])
    >>> print(counterfactual_bounds(CausalGraph.from_edges("X -> Y"), law, {"Y": 0}, {"X": 0}, {"X": 1, "Y": 1}))
    P(Y = 0 had X been 0 | X = 1, Y = 1) lies in [0.5, 0.75]. Sharp, by a linear program of 4 variables for {Y}.
    """
    of_kind(graph, CausalGraph, "graph", "build one with CausalGraph.from_edges(...)")
    observed = ObservedGraph.of(graph)
    law = DiscreteLaw.read(probabilities, tuple(observed.parents))
    given = {} if given is None else given
    settings = {"event": event, "do": do, "given": given}
    wanted, done, evidence = (_numbered(law, graph, values, role) for role, values in settings.items())
    if not wanted:
        raise InputError("event is empty; name at least one node and the level it would have had.")
    had = f" had {as_list(f'{node} been {level}' for node, level in do.items())}" if do else ""
    question = f"P({_levels(event)}{had}{f' | {_levels(given)}' if given else ''})"
    # Nothing is done and nothing imagined: what is left is the probability of the evidence.
    normaliser = float(reduced(possible_worlds(law, observed, {}, {}, evidence))[0])
    if normaliser <= 0:
        raise InputError(f"The evidence {_levels(given)} has probability 0: nothing follows from it; change given.")
    objective, free = reduced(possible_worlds(law, observed, wanted, done, evidence))
    ends = [extreme(objective / normaliser, free, sign) for sign in (1, -1)]
    lower, upper = (float(np.clip(end.value, 0.0, 1.0)) for end in ends)
    attained = all(end.attained for end in ends) and all(component.is_one_cause for component in free)
    sharp = attained or upper - lower < 1e-7
    laws = {component.nodes: _law(component, [end.laws[axis] for end in ends]) for axis, component in enumerate(free)}
    return CounterfactualBounds(lower, max(lower, upper), sharp, _how(free, sharp), question, laws)


def _numbered(law: DiscreteLaw, graph: CausalGraph, values: Mapping[str, Any], role: str) -> dict[str, int]:
    if not isinstance(values, Mapping):
        raise InputTypeError(f"{role} must be a mapping from nodes to levels, but {values!r} was received.")
    names = graph.known_observed(list(values), role)
    return {name: law.number(name, values[name], role) for name in names}


def _levels(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{node} = {level}" for node, level in values.items())


def _how(free: Sequence[Component], sharp: bool) -> str:
    if not free:
        return "Graph and probabilities alone give it."
    names = as_list(as_set(component.nodes) for component in free)
    size = prod(component.size for component in free)
    if sharp:
        attained = "" if len(free) == 1 else ", attained by a model"
        return f"Sharp, by a linear program of {size} variables for {names}{attained}."
    why = f"the laws of {names} enter as a product, and a linear relaxation of {size} variables stands in for it"
    if len(free) == 1:
        why = f"several unobserved causes act on {names}, and the linear program of {size} variables leaves out that "
        why += "they are independent"
    return f"Valid, perhaps not sharp: {why}."


def _law(component: Component, weights: Sequence[np.ndarray]) -> pd.DataFrame:
    columns = {}
    for node in component.nodes:
        parents, levels = component.graph.parents[node], np.array(component.law.levels[node], dtype=object)
        for number, at in enumerate(component.configurations[node]):
            there = ", ".join(f"{p} = {component.law.levels[p][v]}" for p, v in zip(parents, at, strict=True))
            picks = component.responses[node][:, number]
            columns[f"{node} where {there}" if there else node] = np.where(picks < 0, None, levels[picks])
    return pd.DataFrame({**columns, "lower": weights[0], "upper": weights[1]})


class Extreme(NamedTuple):
    """An end of the interval, the laws that come closest to it, and whether they attain it."""

    value: float
    laws: tuple[np.ndarray, ...]
    attained: bool


def extreme(objective: np.ndarray, components: Sequence[Component], sign: int) -> Extreme:
    """Return the smallest (sign 1) or largest (sign -1) value; `objective` has one axis per component."""
    for component in components:
        component.refuse_contradiction()
    if not components:
        return Extreme(float(objective), (), True)
    if len(components) == 1:
        law = minimiser(sign * objective, *components[0].constraints)
        return Extreme(float(objective @ law), (law,), True)
    joint = minimiser(sign * objective.ravel(), *_independent_in_part(components)).reshape(objective.shape)
    value = float((objective * joint).sum())
    ones = [component.constraints[0][0] for component in components]
    laws = _climb(objective, components, sign, [_contracted(joint, ones, axis) for axis in range(joint.ndim)])
    return Extreme(value, tuple(laws), abs(float(_contracted(objective, laws)) - value) < 10 * _TOLERANCE)


def _independent_in_part(components: Sequence[Component]) -> tuple[sparse.csr_array, np.ndarray]:
    """For each component k and each combination of the others: (A_k - b_k a_kᵀ) p(·, others) = 0, where a_k p_k = 1.

    The vector a_k, the first row of A_k, adds up a block; so (a_1 ⊗ a_2 ⊗ ...) p = 1.
    """
    sizes = [component.size for component in components]
    if prod(sizes) > _MOST_JOINT_VARIABLES:
        names = as_list(as_set(component.nodes) for component in components)
        why = f"The program for {names} together has {prod(sizes):.3g} variables, more than {_MOST_JOINT_VARIABLES}"
        raise InputError(f"{why}; merge levels, or ask with less evidence.")
    total = np.ones(1)
    for component in components:
        total = np.kron(total, component.constraints[0][0])
    blocks = [sparse.csr_array(total[None, :])]
    for number, component in enumerate(components):
        matrix, right = component.constraints
        before, after = prod(sizes[:number]), prod(sizes[number + 1 :])
        homogeneous = sparse.csr_array(matrix - np.outer(right, matrix[0]))
        blocks.append(sparse.kron(sparse.kron(sparse.eye_array(before), homogeneous), sparse.eye_array(after)).tocsr())
    stacked = sparse.vstack(blocks).tocsr()
    return stacked, np.array([1.0] + [0.0] * (stacked.shape[0] - 1))


def _climb(
    objective: np.ndarray, components: Sequence[Component], sign: int, laws: list[np.ndarray]
) -> list[np.ndarray]:
    """Improve one law after the other, the others fixed, until nothing changes."""
    best = float(_contracted(objective, laws))
    for _ in range(_ROUNDS):
        for axis, component in enumerate(components):
            laws[axis] = minimiser(sign * _contracted(objective, laws, axis), *component.constraints)
        before, best = best, float(_contracted(objective, laws))
        if sign * (before - best) < _TOLERANCE:
            break
    return laws


def _contracted(tensor: np.ndarray, vectors: Sequence[np.ndarray], kept: int | None = None) -> np.ndarray:
    """Multiply each axis, but one that is kept, by its vector."""
    for axis in reversed(range(len(vectors))):
        if axis != kept:
            tensor = np.tensordot(tensor, vectors[axis], axes=(axis, 0))
    return tensor


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
        columns = np.zeros((len(self.weights), len(self.graph.parents[node])), dtype=int)
        for number, parent in enumerate(self.graph.parents[node]):
            is_set = imagined and parent in self.done
            world = imagined and (parent, True) in self.values
            columns[:, number] = self.done[parent] if is_set else self.values[parent, world]
        return columns

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
        why = f"The question sums over {count:.3g} pairs of worlds, more than {_MOST_PAIRS}"
        raise InputError(f"{why}; give more evidence, or merge levels.")
    grid = np.array(list(product(*map(sorted, choices.values()))), dtype=int).reshape(count, len(copies))
    values = {copy: grid[:, number] for number, copy in enumerate(copies)}
    possible = all(do[node] == level for node, level in event.items() if node in do)
    return TwoWorlds(law, graph, values, do, np.full(count, float(possible)))


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
        for (marked, _), number in zip(parts, combination, strict=True):
            term = np.multiply.outer(term, marked[number])
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
                factors *= np.nan_to_num(conditionals(worlds.law, inside, names, table))
    return factors


def _transported_factors(worlds: TwoWorlds, nodes: Sequence[str], copies: Sequence[Copy]) -> np.ndarray | None:
    """Factors of an unconfounded node that matters in the imagined world only: P(v | its parents), if that is known."""
    if len(nodes) > 1 or len(copies) > 1:
        return None
    names = (*worlds.graph.parents[nodes[0]], nodes[0])
    table = np.column_stack([worlds.parents(copies[0]), worlds.values[copies[0]]])
    factors = conditionals(worlds.law, worlds.graph, names, table)
    return None if np.isnan(factors).any() else factors


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

    Several nodes are tied together by data wherever their parents are: all configurations matter, in one block. Those
    of a single node matter where they occur, and what it does in the two worlds of a pair is asked about together.
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
