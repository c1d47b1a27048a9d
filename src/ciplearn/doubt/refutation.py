"""Whether data contradict a graph, quickly enough for hundreds of graphs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ciplearn.causal import CausalGraph, Independence
from ciplearn.causal.implications import local_independencies
from ciplearn.doubt.falsification import holm
from ciplearn.doubt.permuted_names import RankCorrelations
from ciplearn.evaluation.independence import N_BOOTSTRAP, independence_test

# Statements of a graph that are tested, and rows that they are tested on.
_LOOKED_AT = 3
_TESTED_ROWS = 2000
_RESAMPLES = 40

_LEVEL = 0.05


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
