"""Whether rows contradict the independencies that a graph implies: tested one by one, or quickly for many graphs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from tqdm import tqdm

from ciplearn._core.arguments import of_kind, positive, whole
from ciplearn._core.columns import check_cells, checked_table, holds_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.rows import RandomState, as_generator
from ciplearn._core.wording import as_list
from ciplearn.causal import CausalGraph, Independence
from ciplearn.causal.names import columns_of
from ciplearn.causal.statements import local_independencies
from ciplearn.evaluation.independence import (
    MAX_ROWS,
    MIN_ROWS,
    N_BOOTSTRAP,
    Conditioning,
    PreparedTest,
    independence_test,
)
from ciplearn.evaluation.regression import Variable

Array = np.ndarray[Any, Any]

# Resamples per statement, so that Holm's smallest level is well above the smallest p that they can give.
_RESAMPLES = 40
_STRONG = 0.5  # a partial correlation that a test must be able to see for its silence to say anything
_UNTESTED = "left untested"

# Statements of one graph among many that are tested, the rows that they are tested on, and the level.
_LOOKED_AT, _TESTED_ROWS, _LEVEL = 3, 2000, 0.05


@dataclass(frozen=True, eq=False)
class Falsification:
    """The answer of `falsify`.

    Attributes
    ----------
    tests : DataFrame
        Per statement: ``statement``; ``p``, NaN where it cannot be judged; ``p_adjusted`` by Holm; ``detectable``, the
        smallest partial correlation that would have been found with probability 0.8; ``n_rows``; ``obstacle``, why it
        cannot be judged.
    permuted : float
        The share of graphs with permuted node names that the table contradicts no more often, by rank correlations; NaN
        where that was not computed.

    Examples
    --------
    >>> from ciplearn import CausalGraph, datasets
    >>> people = datasets.applicants().sample(300, random_state=0)
    >>> print(CausalGraph.from_edges("sex -> training, training -> hours").falsify(people, random_state=0).violated[0])
    hours ⊥ {sex} | {training}
    """

    graph: CausalGraph
    statements: tuple[Independence, ...]
    tests: pd.DataFrame
    permuted: float
    n_permutations: int
    level: float

    @property
    def refuted(self) -> bool | None:
        """Whether the table refutes the graph; None where that cannot be judged."""
        if self.violated:
            return True
        seen = self.tests["p"].notna() & (self.tests["detectable"] <= _STRONG)
        return False if seen.any() else None

    @property
    def violated(self) -> tuple[Independence, ...]:
        """The statements that the table refutes."""
        refuted = self.tests["p_adjusted"] <= self.level
        return tuple(statement for statement, is_refuted in zip(self.statements, refuted, strict=True) if is_refuted)

    def __str__(self) -> str:
        return " ".join([self._conclusion(), *self._remarks()])

    def _conclusion(self) -> str:
        if self.refuted:
            return f"The graph is refuted at the {self.level:.0%} level by {'; '.join(map(str, self.violated))}."
        detectable = self.tests.loc[self.tests["p"].notna(), "detectable"]
        judged, weakest, blind = len(detectable), detectable.max(), int(detectable.isna().sum())
        if self.refuted is None:
            why = "its independencies have tests that would miss even strong dependence"
            if not judged:
                why = "none of its independencies can be tested on these rows"
            if not self.statements:
                why = "it implies no independence among its observed nodes"
            return f"The graph cannot be judged: {why}."
        but = f", but for {blind} of them, which say nothing" if 0 < blind < judged else ""
        return (
            f"The graph is not refuted: none of {judged} independencies is rejected at the {self.level:.0%} level, "
            "which is no proof; the weakest link that all of these tests would notice, in 4 cases of 5, is a partial "
            f"correlation of {weakest:.2g}{but}."
        )

    def _remarks(self) -> Iterator[str]:
        late, of_all = int((self.tests["obstacle"] == _UNTESTED).sum()), f"of {len(self.tests)}"
        other = int(self.tests["p"].isna().sum()) - late
        if other and self.refuted is not None:
            yield f"{other} {of_all} could not be judged."
        if late:
            yield f"{late} {of_all} were left untested."
        if not math.isnan(self.permuted):
            fits = round(self.permuted * self.n_permutations)
            hardly = self.permuted > self.level
            remark = f"{'these tests hardly' if hardly else 'the rows'} tell this drawing from one that is made up"
            remark += ", and passing them says little" if hardly and not self.refuted else ""
            fit = f"{fits or 'none'} {'fits' if fits == 1 else 'fit'} the rows as well"
            yield f"Of {self.n_permutations} drawings with the columns' names exchanged at random, {fit}: {remark}."

    def to_svg(self) -> str:
        """Draw the graph, with a dotted red line where it has no edge and the table contradicts that."""
        return self.graph.to_svg(refuted=self.violated)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        more = {"refuted": self.refuted, "violated": self.violated, "sentence": str(self)}
        return fields_as_data(self, "graph", "statements", **more)


def falsify(
    graph: CausalGraph,
    table: pd.DataFrame,
    *,
    level: float = 0.05,
    n_permutations: int = 100,
    limit: int | None = None,
    random_state: RandomState = 0,
) -> Falsification:
    """Test every independence of a local Markov basis of the graph, corrected by Holm.

    A node is independent of each earlier one given its parents; where causes are latent, given a smallest observed set
    that separates the two. With p sorted, Holm's p_(k) is max_{j ≤ k} min(1, (m − j + 1) p_(j)) for m statements, so
    that a true graph is refuted with probability at most ``level``.

    Parameters
    ----------
    graph : CausalGraph
        With undirected edges, any of its members: they imply the same independencies.
    table : DataFrame
        One column per observed node, or ``A[0]``, ``A[1]``, … for a vector; other columns are ignored. A test uses the
        rows that are complete in its own columns, at most 20 000 of them.
    n_permutations : int
        Graphs with permuted node names to compare with; 0 for none.
    limit : int, optional
        Test so many independencies at most, those given the fewest nodes first; how many are left out is said.

    Examples
    --------
    >>> from ciplearn import CausalGraph, datasets
    >>> from ciplearn.doubt import falsify
    >>> people = datasets.applicants().sample(300, random_state=0)[["sex", "training", "hours"]]
    >>> falsify(CausalGraph.from_edges("sex -> training, training -> hours"), people, random_state=0).refuted
    True
    """
    of_kind(graph, CausalGraph, "graph", "build one with CausalGraph.from_edges(...)")
    level = positive(level, "level")
    if level >= 1:
        raise InputError(f"level must be below one, got {level!r}; pass for example level=0.05.")
    n_permutations = whole(n_permutations, "n_permutations", minimum=0)
    limit = None if limit is None else whole(limit, "limit", minimum=1)
    generator = as_generator(random_state)
    graph = next(graph.members()) if graph.undirected else graph
    columns = table_columns(graph, table)
    needed = table[[column for held in columns.values() for column in held]]
    if len(needed) > MAX_ROWS:
        needed = needed.iloc[np.sort(generator.choice(len(needed), MAX_ROWS, replace=False))]
    statements = tuple(sorted(local_independencies(graph), key=lambda statement: statement.given))
    chosen = set(sorted(statements, key=lambda statement: len(statement.given))[:limit])
    tests = list(_tested(statements, chosen, needed, columns, level, generator))
    frame = pd.DataFrame(tests, columns=["statement", "p", "detectable", "n_rows", "obstacle"])
    frame.insert(2, "p_adjusted", holm(frame["p"].to_numpy(dtype=float)))
    permuted, complete = math.nan, needed.dropna()
    if statements and n_permutations and len(complete) >= MIN_ROWS:
        correlations = RankCorrelations(complete, columns)
        permuted = share_that_fits_as_well(statements, graph.observed, correlations, n_permutations, level, generator)
    return Falsification(graph, statements, frame, permuted, n_permutations, level)


def table_columns(graph: CausalGraph, table: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns of each observed node, or refuse a table that nothing can be tested on."""
    checked_table(table, "table")
    held = {node: columns_of(node, [str(column) for column in table.columns]) for node in graph.observed}
    absent = [node for node, columns in held.items() if not columns]
    if absent:
        why = f"The table has no column for {as_list(absent)}, which the graph calls observed"
        raise InputError(f"{why}; add the columns, or mark the nodes as latent.")
    if len(table) < MIN_ROWS:
        raise InputError(f"A test needs at least {MIN_ROWS} rows, got {len(table)}; pass more rows.")
    needed = [table[column] for columns in held.values() for column in columns]
    for column in needed:
        check_cells(column)
    if all(column.nunique() <= 1 for column in needed):
        why = "Every column of the graph has the same value, or none, in all rows, so that nothing can be tested"
        raise InputError(f"{why}; pass rows that differ.")
    return held


def _tested(
    statements: Sequence[Independence],
    chosen: Set[Independence],
    table: pd.DataFrame,
    columns: dict[str, tuple[str, ...]],
    level: float,
    generator: np.random.Generator,
) -> Iterator[tuple[str, float, float, int, str]]:
    """Yield statement, p, detectable, rows and obstacle; statements with the same S share its preparation."""
    n_bootstrap = max(N_BOOTSTRAP, _RESAMPLES * len(statements))
    prepared: dict[tuple[Any, bytes], Conditioning] = {}
    for statement in tqdm(statements, desc="independencies", unit="test", disable=None):
        if statement not in chosen:
            yield str(statement), math.nan, math.nan, 0, _UNTESTED
            continue
        names = [_columns(side, columns) for side in (statement.left, statement.right, statement.given)]
        complete = table[[name for side in names for name in side]].notna().all(axis=1).to_numpy()
        rows, key = int(complete.sum()), (statement.given, complete.tobytes())
        if rows < MIN_ROWS:
            yield str(statement), math.nan, math.nan, rows, f"only {rows} rows are complete"
            continue
        left, right = (Variable.of(table.loc[complete, side], as_list(side)) for side in names[:2])
        if statement.given and key not in prepared:
            # What another S needed is let go.
            given = Variable.of(table.loc[complete, names[2]], as_list(names[2]))
            prepared = {old: each for old, each in prepared.items() if old[0] == statement.given}
            prepared[key] = Conditioning(given, generator)
        test = PreparedTest(left, right, prepared.get(key), (statement.left[0], ""), level / len(statements))
        result = test.run(generator, n_bootstrap)
        yield str(statement), result.p_value, result.detectable, rows, result.obstacle


def _columns(nodes: Sequence[str], columns: dict[str, tuple[str, ...]]) -> list[str]:
    return [column for node in nodes for column in columns[node]]


class RankCorrelations:
    """Partial correlations of normal scores, and of indicators where a column holds labels, in complete rows.

    A quick test for thousands of statements: with canonical correlations r of what a linear regression on the
    conditioning columns leaves, −(n − z − (p + q + 3) / 2) Σ log(1 − r²) is about χ² with pq degrees of freedom.
    """

    def __init__(self, table: pd.DataFrame, columns: dict[str, tuple[str, ...]]) -> None:
        blocks = [np.concatenate([_encoded(table[column]) for column in held], axis=1) for held in columns.values()]
        ends = np.cumsum([0, *(block.shape[1] for block in blocks)])
        self._places = {node: list(range(*span)) for node, span in zip(columns, pairwise(ends), strict=True)}
        self._n = len(table)
        self._covariance = np.cov(np.concatenate(blocks, axis=1), rowvar=False).reshape(ends[-1], ends[-1])
        self._p_values: dict[tuple[frozenset[str], tuple[str, ...]], float] = {}

    def p_value(self, left: str, right: str, given: Sequence[str]) -> float:
        """Test left ⊥ right | given."""
        key = frozenset((left, right)), tuple(sorted(given))
        if key in self._p_values:
            return self._p_values[key]
        a, b = self._places[left], self._places[right]
        joint, z = [*a, *b], [column for name in given for column in self._places[name]]
        rest = self._covariance[np.ix_(joint, joint)]
        if z:
            across = self._covariance[np.ix_(joint, z)]
            rest = rest - across @ np.linalg.pinv(self._covariance[np.ix_(z, z)], rcond=1e-10) @ across.T
        one, other, cross = rest[: len(a), : len(a)], rest[len(a) :, len(a) :], rest[: len(a), len(a) :]
        of_one, of_other = (np.linalg.pinv(each, rcond=1e-8) for each in (one, other))
        squares = np.clip(np.linalg.eigvals(of_one @ cross @ of_other @ cross.T).real, 0, 1 - 1e-12)
        freedom = np.linalg.matrix_rank(one, tol=1e-8) * np.linalg.matrix_rank(other, tol=1e-8)
        rows = self._n - len(z) - (len(a) + len(b) + 3) / 2
        self._p_values[key] = float(stats.chi2.sf(-max(rows, 0) * np.log1p(-squares).sum(), max(freedom, 1)))
        return self._p_values[key]


class Refutation:
    """Tells of one graph after the other whether the rows of a table, all complete, contradict it.

    Rank correlations name the statements of a graph that look worst, for they cost nothing; they also reject true
    statements where mechanisms bend. So a graph is refuted only if `independence_test` rejects one of the worst at
    0.05 / (number of its statements), which keeps the level whatever statements are looked at.
    """

    def __init__(self, table: pd.DataFrame, columns: dict[str, tuple[str, ...]], seed: int) -> None:
        self._quick = RankCorrelations(table, columns)
        self._columns, self._seed = columns, seed
        self._sample = table.sample(min(len(table), _TESTED_ROWS), random_state=seed)
        self._resamples = max(N_BOOTSTRAP, _RESAMPLES * len(columns) * (len(columns) - 1) // 2)
        self._p_values: dict[Independence, float] = {}

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
        return [statements[number] for number in worst if holm(quick)[number] <= _LEVEL], len(statements)

    def _p_value(self, statement: Independence) -> float:
        if statement not in self._p_values:
            sides = (statement.left, statement.right, statement.given)
            parts = [self._sample[_columns(side, self._columns)] if side else None for side in sides]
            test = independence_test(*parts, n_bootstrap=self._resamples, random_state=self._seed)
            self._p_values[statement] = test.p_value if test.is_judged else 1.0
        return self._p_values[statement]


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

    as_drawn = violations({node: node for node in nodes})
    permuted = [generator.permutation(np.array(nodes)).tolist() for _ in range(n_permutations)]
    return float(np.mean([violations(dict(zip(nodes, names, strict=True))) <= as_drawn for names in permuted]))


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
