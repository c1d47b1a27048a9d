"""Graphs of the same shape with other names: how many of them do data contradict no more often? [eulig2025]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ciplearn._core.columns import holds_numbers
from ciplearn.causal import Independence

Array = np.ndarray[Any, Any]


class RankCorrelations:
    """Partial correlations of normal scores, and of indicators where a column holds labels.

    A quick test for thousands of statements: with canonical correlations r of what a linear regression on the
    conditioning columns leaves, −(n − z − (p + q + 3) / 2) Σ log(1 − r²) is about χ² with pq degrees of freedom.

    ``table``: complete rows.
    """

    def __init__(self, table: pd.DataFrame, columns: dict[str, tuple[str, ...]]) -> None:
        blocks, self._places, start = [], {}, 0
        for node, held in columns.items():
            block = np.concatenate([_encoded(table[column]) for column in held], axis=1)
            self._places[node] = list(range(start, start + block.shape[1]))
            start += block.shape[1]
            blocks.append(block)
        self._n = len(table)
        self._covariance = np.cov(np.concatenate(blocks, axis=1), rowvar=False).reshape(start, start)
        self._known: dict[tuple[frozenset[str], tuple[str, ...]], float] = {}

    def p_value(self, left: str, right: str, given: Sequence[str]) -> float:
        """Test left ⊥ right | given."""
        key = frozenset((left, right)), tuple(sorted(given))
        if key not in self._known:
            self._known[key] = self._tested(left, right, given)
        return self._known[key]

    def _tested(self, left: str, right: str, given: Sequence[str]) -> float:
        a, b = self._places[left], self._places[right]
        z = [place for name in given for place in self._places[name]]
        joint = [*a, *b]
        rest = self._covariance[np.ix_(joint, joint)]
        if z:
            across = self._covariance[np.ix_(joint, z)]
            rest = rest - across @ np.linalg.pinv(self._covariance[np.ix_(z, z)], rcond=1e-10) @ across.T
        own, other, cross = rest[: len(a), : len(a)], rest[len(a) :, len(a) :], rest[: len(a), len(a) :]
        squares = np.linalg.eigvals(
            np.linalg.pinv(own, rcond=1e-8) @ cross @ np.linalg.pinv(other, rcond=1e-8) @ cross.T
        )
        squares = np.clip(squares.real, 0, 1 - 1e-12)
        freedom = np.linalg.matrix_rank(own, tol=1e-8) * np.linalg.matrix_rank(other, tol=1e-8)
        rows = self._n - len(z) - (len(a) + len(b) + 3) / 2
        return float(stats.chi2.sf(-max(rows, 0) * np.log1p(-squares).sum(), max(freedom, 1)))


def share_that_fits_as_well(
    statements: Sequence[Independence],
    nodes: Sequence[str],
    correlations: RankCorrelations,
    n_permutations: int,
    level: float,
    generator: np.random.Generator,
) -> float:
    """Return the share of random permutations of the names whose statements are violated no more often."""

    def violations(name: dict[str, str]) -> int:
        return sum(
            correlations.p_value(name[s.left[0]], name[s.right[0]], [name[z] for z in s.given]) <= level
            for s in statements
        )

    own = violations({node: node for node in nodes})
    permuted = [dict(zip(nodes, generator.permutation(np.array(nodes)), strict=True)) for _ in range(n_permutations)]
    return float(np.mean([violations({old: str(new) for old, new in names.items()}) <= own for names in permuted]))


def _encoded(column: pd.Series) -> Array:  # (n, c)
    if holds_numbers(column):
        ranks = stats.rankdata(column.to_numpy(dtype=np.float64))
        return stats.norm.ppf(ranks / (len(ranks) + 1))[:, None]
    codes, levels = pd.factorize(column.astype(object))
    # The last indicator is one minus the others.
    return (codes[:, None] == np.arange(max(1, len(levels) - 1))).astype(np.float64)
