"""Smallest and largest value of a sum of products of probabilities, each product with one factor per component.

With one component whose law is open the sum is linear in that law, and HiGHS solves it exactly. With several it is
linear in each law but not in all of them together. Then their joint law is the unknown, and that the components are
independent is kept in part: given what the others do, the law of each still satisfies its own constraints
[sherali1990]. These bounds are valid; where a model is found that attains them, they are sharp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ciplearn._core.errors import InputError, NumericalError
from ciplearn._core.wording import as_list, as_set
from ciplearn.doubt.response_functions import Component

_TOLERANCE = 1e-7
_ROUNDS = 20
# Programs over several components have a row for nearly every variable: these still take seconds.
_MOST_JOINT_VARIABLES = 5_000


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
        law = _solve(sign * objective, sparse.csr_array(components[0].constraints[0]), components[0].constraints[1])
        return Extreme(float(objective @ law), (law,), True)
    joint = _solve(sign * objective.ravel(), *_independent_in_part(components)).reshape(objective.shape)
    value = float((objective * joint).sum())
    ones = [component.constraints[0][0] for component in components]
    laws = _climb(objective, components, sign, [_contracted(joint, ones, axis) for axis in range(joint.ndim)])
    return Extreme(value, tuple(laws), abs(_value(objective, laws) - value) < 10 * _TOLERANCE)


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
    best = _value(objective, laws)
    for _ in range(_ROUNDS):
        for axis, component in enumerate(components):
            matrix, right = component.constraints
            laws[axis] = _solve(sign * _contracted(objective, laws, axis), sparse.csr_array(matrix), right)
        value = _value(objective, laws)
        if sign * (best - value) < _TOLERANCE:
            break
        best = value
    return laws


def _contracted(tensor: np.ndarray, vectors: Sequence[np.ndarray], kept: int) -> np.ndarray:
    """Multiply each axis but one by its vector."""
    for axis in reversed(range(len(vectors))):
        if axis != kept:
            tensor = np.tensordot(tensor, vectors[axis], axes=(axis, 0))
    return tensor


def _value(objective: np.ndarray, laws: Sequence[np.ndarray]) -> float:
    for law in reversed(laws):
        objective = objective @ law
    return float(objective)


def _solve(costs: np.ndarray, matrix: sparse.csr_array, right: np.ndarray) -> np.ndarray:
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
    rows, size = matrix.shape
    slack = sparse.eye_array(rows)
    costs = np.concatenate([np.zeros(size), np.ones(2 * rows)])
    found = linprog(
        costs, A_eq=sparse.hstack([sparse.csr_array(matrix), slack, -slack]).tocsr(), b_eq=right, method="highs"
    )
    if found.status == 0 and found.fun > 1e-6:
        raise InputError(
            f"No causal model with this graph has these probabilities: those of {as_set(component.nodes)} given "
            f"their causes are off by {found.fun:.3g} in sum; add the edge or the common cause that is missing, or "
            "pass more rows."
        )
