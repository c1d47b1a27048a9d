"""Sharp bounds on counterfactual probabilities of discrete variables [balke1997, wu2019].

The probability is a sum of products with one factor per component. With one component whose law is open the sum is
linear in that law, and HiGHS solves it exactly. With several it is linear in each law but not in all of them together.
Then their joint law is the unknown, and that the components are independent is kept in part: given what the others do,
the law of each still satisfies its own constraints [sherali1990]. These bounds are valid; where a model is found that
attains them, they are sharp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.optimize import linprog

from ciplearn._core.arguments import of_kind
from ciplearn._core.errors import InputError, InputTypeError, NumericalError
from ciplearn._core.wording import as_list, as_set
from ciplearn.causal import CausalGraph
from ciplearn.doubt.response_functions import Component, DiscreteLaw, ObservedGraph
from ciplearn.doubt.two_worlds import possible_worlds, reduced

_TOLERANCE = 1e-7
_ROUNDS = 20
# Programs over several components have a row for nearly every variable: these still take seconds.
_MOST_JOINT_VARIABLES = 5_000


@dataclass(frozen=True)
class CounterfactualBounds:
    """Between which values a counterfactual probability lies, whatever the causal model with this graph.

    Attributes
    ----------
    lower, upper : float
        The interval.
    sharp : bool
        Whether some model attains each end, so that no narrower interval is valid without further assumptions.
    how : str
        How the interval was found, in one sentence.
    question : str
        The probability that is bounded.
    laws : mapping from component to frame
        For each confounded component whose law is open, the response functions (one column per node and values of its
        parents) with the probabilities ``lower`` and ``upper`` that come closest to the two ends. Responses that are
        never asked about together stand in different rows, the others empty, and may be drawn independently.

    Examples
    --------
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
        is_point = self.upper - self.lower < 1e-6
        said = f"= {self.lower:.4g}" if is_point else f"lies in [{self.lower:.4g}, {self.upper:.4g}]"
        return f"{self.question} {said}. {self.how}"

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
    event
        What would have been: levels of nodes in the world where `do` was done.
    do
        What is imagined to be set: levels of nodes.
    given
        What was the case: levels of nodes in the world as it is. By default nothing.

    Raises
    ------
    GraphError
        If an edge has no direction.
    InputError
        If a name or level is unknown, the evidence has probability 0, no model fits, or the program is too large.

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
    wanted, done, evidence = (
        _numbered(law, graph, values, role)
        for values, role in ((event, "event"), (do, "do"), ({} if given is None else given, "given"))
    )
    if not wanted:
        raise InputError("event is empty; name at least one node and the level it would have had.")
    question = _words(event, do, given)
    # Nothing is done and nothing imagined: what is left is the probability of the evidence.
    normaliser = float(reduced(possible_worlds(law, observed, {}, {}, evidence))[0])
    if normaliser <= 0:
        raise InputError(
            f"The evidence {_levels(given or {})} has probability 0, so that nothing follows from it; change given."
        )
    objective, free = reduced(possible_worlds(law, observed, wanted, done, evidence))
    ends = [extreme(objective / normaliser, free, sign) for sign in (1, -1)]
    lower, upper = (float(np.clip(end.value, 0.0, 1.0)) for end in ends)
    attained = all(end.attained for end in ends) and all(component.is_one_cause for component in free)
    sharp = attained or upper - lower < 1e-7
    laws = {component.nodes: _law(component, [end.laws[place] for end in ends]) for place, component in enumerate(free)}
    return CounterfactualBounds(lower, max(lower, upper), sharp, _how(free, sharp), question, laws)


def _numbered(law: DiscreteLaw, graph: CausalGraph, values: Mapping[str, Any], role: str) -> dict[str, int]:
    if not isinstance(values, Mapping):
        raise InputTypeError(f"{role} must be a mapping from nodes to levels, but {values!r} was received.")
    names = graph.known_observed(list(values), role)
    return {name: law.number(name, values[name], role) for name in names}


def _words(event: Mapping[str, Any], do: Mapping[str, Any], given: Mapping[str, Any] | None) -> str:
    had = f" had {as_list(f'{node} been {level}' for node, level in do.items())}" if do else ""
    return f"P({_levels(event)}{had}{f' | {_levels(given)}' if given else ''})"


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
    if len(free) == 1:
        return (
            f"Valid, perhaps not sharp: several unobserved causes act on {names}, and the linear program of {size} "
            "variables leaves out that they are independent."
        )
    return (
        f"Valid, perhaps not sharp: the laws of {names} enter as a product, and a linear relaxation of {size} "
        "variables stands in for it."
    )


def _law(component: Component, weights: Sequence[np.ndarray]) -> pd.DataFrame:
    columns = {}
    for node in component.nodes:
        parents, levels = component.graph.parents[node], np.array(component.law.levels[node], dtype=object)
        for place, at in enumerate(component.configurations[node]):
            there = ", ".join(f"{p} = {component.law.levels[p][v]}" for p, v in zip(parents, at, strict=True))
            picks = component.responses[node][:, place]
            columns[f"{node} where {there}" if there else node] = np.where(picks < 0, None, levels[picks])
    return pd.DataFrame({**columns, "lower": weights[0], "upper": weights[1]})


@dataclass(frozen=True)
class Extreme:
    """An end of the interval, the laws that come closest to it, and whether they attain it."""

    value: float
    laws: tuple[np.ndarray, ...]
    attained: bool


def extreme(objective: np.ndarray, components: Sequence[Component], sign: int) -> Extreme:
    """Return the smallest (sign 1) or largest (sign -1) value; `objective` has one axis per component."""
    for component in components:
        _refuse_contradiction(component)
    if not components:
        return Extreme(float(objective), (), True)
    if len(components) == 1:
        law = _solve(sign * objective, *components[0].constraints)
        return Extreme(float(objective @ law), (law,), True)
    joint = _solve(sign * objective.ravel(), *_independent_in_part(components)).reshape(objective.shape)
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
        raise InputError(
            f"The program for {names} together has {prod(sizes):.3g} variables, more than {_MOST_JOINT_VARIABLES}; "
            "merge levels, or ask with less evidence."
        )
    total = np.ones(1)
    for component in components:
        total = np.kron(total, component.constraints[0][0])
    blocks = [sparse.csr_array(total[None, :])]
    for place, component in enumerate(components):
        matrix, right = component.constraints
        before, after = prod(sizes[:place]), prod(sizes[place + 1 :])
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
            laws[axis] = _solve(sign * _contracted(objective, laws, axis), *component.constraints)
        value = float(_contracted(objective, laws))
        if sign * (best - value) < _TOLERANCE:
            break
        best = value
    return laws


def _contracted(tensor: np.ndarray, vectors: Sequence[np.ndarray], kept: int | None = None) -> np.ndarray:
    """Multiply each axis, but one that is kept, by its vector."""
    for axis in reversed(range(len(vectors))):
        if axis != kept:
            tensor = np.tensordot(tensor, vectors[axis], axes=(axis, 0))
    return tensor


def _solve(costs: np.ndarray, matrix: np.ndarray | sparse.csr_array, right: np.ndarray) -> np.ndarray:
    found = linprog(costs, A_eq=matrix, b_eq=right, bounds=(0, 1), method="highs")
    if found.status != 0:
        raise NumericalError(
            f"The linear program of {len(costs)} variables was not solved ({found.message.strip()}); pass "
            "probabilities with more digits, or merge rare levels."
        )
    return np.clip(found.x, 0.0, 1.0)


def _refuse_contradiction(component: Component) -> None:
    """Raise where no law fits: find the law that misses the known probabilities least."""
    matrix, right = component.constraints
    slack = sparse.eye_array(len(right))
    costs = np.repeat([0.0, 1.0], [matrix.shape[1], 2 * len(right)])
    both = sparse.hstack([sparse.csr_array(matrix), slack, -slack]).tocsr()
    found = linprog(costs, A_eq=both, b_eq=right, method="highs")
    if found.status == 0 and found.fun > 1e-6:
        raise InputError(
            f"No causal model with this graph has these probabilities: those of {as_set(component.nodes)} given "
            f"their causes are off by {found.fun:.3g} in sum; add the edge or the common cause that is missing, or "
            "pass more rows."
        )
