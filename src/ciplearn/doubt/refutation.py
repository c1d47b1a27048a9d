"""Whether data contradict a graph, quickly enough for hundreds of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ciplearn._core.columns import holds_numbers
from ciplearn.causal import CausalGraph, Independence
from ciplearn.causal.independence import local_independencies
from ciplearn.evaluation.independence import N_BOOTSTRAP, independence_test

Array = np.ndarray[Any, Any]

# Statements of a graph that are tested, and rows that they are tested on.
_LOOKED_AT = 3
_TESTED_ROWS = 2000
_RESAMPLES = 40

_LEVEL = 0.05


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
        if key in self._known:
            return self._known[key]
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
        self._known[key] = float(stats.chi2.sf(-max(rows, 0) * np.log1p(-squares).sum(), max(freedom, 1)))
        return self._known[key]


class Refutation:
    """Tells of one graph after the other whether the rows of a table contradict it.

    Rank correlations name the statements of a graph that look worst, for they cost nothing; they also reject true
    statements where mechanisms bend. So a graph is refuted only if `independence_test` rejects one of the worst at
    0.05 / (number of its statements), which keeps the level whatever statements are looked at.

    ``table``: complete rows.
    """

    def __init__(self, table: pd.DataFrame, columns: dict[str, tuple[str, ...]], seed: int) -> None:
        self._quick = RankCorrelations(table, columns)
        self._columns, self._seed = columns, seed
        self._sample = table.sample(min(len(table), _TESTED_ROWS), random_state=seed)
        self._resamples = _RESAMPLES * len(columns) * (len(columns) - 1) // 2
        self._known: dict[Independence, float] = {}

    def __call__(self, graph: CausalGraph) -> bool:
        """Tell whether the rows contradict the graph."""
        suspects, statements = self.suspects(graph)
        return any(self._p_value(suspect) <= _LEVEL / statements for suspect in suspects)

    def suspects(self, graph: CausalGraph) -> tuple[list[Independence], int]:
        """Return statements of the graph that rank correlations reject, the worst first, and how many it makes."""
        statements = list(local_independencies(graph))
        if not statements:
            return [], 0
        quick = np.array([self._quick.p_value(s.left[0], s.right[0], s.given) for s in statements])
        worst = np.argsort(quick, kind="stable")[:_LOOKED_AT]
        return [statements[place] for place in worst if holm(quick)[place] <= _LEVEL], len(statements)

    def _p_value(self, statement: Independence) -> float:
        if statement not in self._known:
            left, right, given = (
                self._sample[[column for node in side for column in self._columns[node]]]
                for side in (statement.left, statement.right, statement.given)
            )
            found = independence_test(
                left,
                right,
                given if statement.given else None,
                n_bootstrap=max(N_BOOTSTRAP, self._resamples),
                random_state=self._seed,
            )
            self._known[statement] = found.p_value if found.is_judged else 1.0
        return self._known[statement]


def share_that_fits_as_well(
    statements: Sequence[Independence],
    nodes: Sequence[str],
    correlations: RankCorrelations,
    n_permutations: int,
    level: float,
    generator: np.random.Generator,
) -> float:
    """Return the share of graphs of the same shape, names permuted, that are violated no more often [eulig2025]."""

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


def holm(p: Any) -> Any:  # (m,)
    """Holm's adjusted p-values; a statement that was not judged counts in m and has none."""
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]
    steps = (len(p) - np.arange(len(order))) * p[order]
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps)) if len(order) else steps
    return adjusted
