"""`falsify`: whether a table contradicts the independencies that a graph implies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from ciplearn._core.choices import of_kind
from ciplearn._core.columns import check_cells
from ciplearn._core.errors import InputError
from ciplearn._core.numbers import positive, whole
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.random import RandomState, as_generator
from ciplearn._core.tables import checked_table
from ciplearn._core.wording import as_list
from ciplearn.causal import CausalGraph, Independence
from ciplearn.causal.independence import local_independencies
from ciplearn.causal.vector_columns import columns_of
from ciplearn.doubt.refutation import RankCorrelations, holm, share_that_fits_as_well
from ciplearn.evaluation.encoding import Variable
from ciplearn.evaluation.independence import MAX_ROWS, MIN_ROWS, N_BOOTSTRAP, PreparedTest
from ciplearn.evaluation.regression import Conditioning

# Resamples per statement, so that Holm's smallest level is well above the smallest p that they can give.
_RESAMPLES = 40

# A partial correlation that a test must be able to see for its silence to say anything.
_STRONG = 0.5

_UNTESTED = "left untested"


@dataclass(frozen=True, eq=False)
class Falsification:
    """The answer of `falsify`.

    Attributes
    ----------
    graph : CausalGraph
    statements : tuple of Independence
    tests : DataFrame
        Per statement: ``statement``; ``p``, NaN where it cannot be judged; ``p_adjusted`` by Holm; ``detectable``, the
        smallest partial correlation that would have been found with probability 0.8; ``n_rows``; ``obstacle``, why it
        cannot be judged.
    permuted : float
        The share of graphs with permuted node names that the table contradicts no more often, by rank correlations; NaN
        where that was not computed.
    n_permutations : int
    level : float

    Examples
    --------
    >>> from ciplearn import CausalGraph, datasets
    >>> people = datasets.applicants().sample(300, random_state=0)[["sex", "training", "hours"]]
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
        judged = int(self.tests["p"].notna().sum())
        if self.refuted:
            listed = "; ".join(map(str, self.violated))
            return f"The graph is refuted at the {self.level:.0%} level by {listed}."
        if self.refuted is None:
            if not self.statements:
                return "The graph cannot be judged: it implies no independence among its observed nodes."
            if not judged:
                return "The graph cannot be judged: none of its independencies can be tested on these rows."
            return "The graph cannot be judged: its independencies have tests that would miss even strong dependence."
        detectable = self.tests.loc[self.tests["p"].notna(), "detectable"]
        weakest, blind = detectable.max(), int(detectable.isna().sum())
        but = f", but for {blind} of them, which say nothing" if 0 < blind < judged else ""
        return (
            f"The graph is not refuted: none of {judged} independencies is rejected at the {self.level:.0%} level, "
            "which is no proof; the weakest link that all of these tests would notice, in 4 cases of 5, is a partial "
            f"correlation of {weakest:.2g}{but}."
        )

    def _remarks(self) -> Iterator[str]:
        late = int((self.tests["obstacle"] == _UNTESTED).sum())
        other = int(self.tests["p"].isna().sum()) - late
        if other and self.refuted is not None:
            yield f"{other} of {len(self.tests)} could not be judged."
        if late:
            yield f"{late} of {len(self.tests)} were left untested."
        if not math.isnan(self.permuted):
            fits = round(self.permuted * self.n_permutations)
            told = "the rows tell this drawing from one that is made up"
            if self.permuted > self.level:
                told = "these tests hardly tell this drawing from one that is made up"
                told += "" if self.refuted else ", and passing them says little"
            yield (
                f"With its columns' names shuffled at random, the drawing fits as well in {fits} of "
                f"{self.n_permutations} tries: {told}."
            )

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
    level : float
    n_permutations : int
        Graphs with permuted node names to compare with; 0 for none.
    limit : int, optional
        Test so many independencies at most, those given the fewest nodes first; how many are left out is said.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Falsification

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
    if limit is not None:
        limit = whole(limit, "limit", minimum=1)
    generator = as_generator(random_state)
    if graph.undirected:
        graph = next(graph.members())
    columns = table_columns(graph, table)
    needed = table[[column for held in columns.values() for column in held]]
    if len(needed) > MAX_ROWS:
        needed = needed.iloc[np.sort(generator.choice(len(needed), MAX_ROWS, replace=False))]
    statements = tuple(sorted(local_independencies(graph), key=lambda statement: statement.given))
    chosen = set(sorted(statements, key=lambda statement: len(statement.given))[:limit])
    tests = list(_tested(statements, chosen, needed, columns, level, generator))
    frame = pd.DataFrame(tests, columns=["statement", "p", "detectable", "n_rows", "obstacle"])
    frame.insert(2, "p_adjusted", holm(frame["p"].to_numpy(dtype=float)))
    permuted = math.nan
    complete = needed.dropna()
    if statements and n_permutations and len(complete) >= MIN_ROWS:
        correlations = RankCorrelations(complete, columns)
        permuted = share_that_fits_as_well(statements, graph.observed, correlations, n_permutations, level, generator)
    return Falsification(graph, statements, frame, permuted, n_permutations, level)


def table_columns(graph: CausalGraph, table: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns of each observed node, or refuse a table that nothing can be tested on."""
    checked_table(table, "table")
    held = {node: columns_of(node, [str(column) for column in table.columns]) for node in graph.observed}
    absent = [node for node, found in held.items() if not found]
    if absent:
        raise InputError(
            f"The table has no column for {as_list(absent)}, which the graph calls observed; add the columns, or mark "
            "the nodes as latent."
        )
    if len(table) < MIN_ROWS:
        raise InputError(f"A test needs at least {MIN_ROWS} rows, got {len(table)}; pass more rows.")
    needed = [table[column] for found in held.values() for column in found]
    for column in needed:
        check_cells(column)
    if all(column.nunique() <= 1 for column in needed):
        raise InputError(
            "Every column of the graph has the same value, or none, in all rows, so that nothing can be tested; pass "
            "rows that differ."
        )
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
    with tqdm(total=len(statements), desc="independencies", unit="test", disable=None) as bar:
        for _, group in groupby(statements, key=lambda statement: statement.given):
            prepared: dict[bytes, Conditioning] = {}
            for statement in group:
                bar.update()
                if statement not in chosen:
                    yield str(statement), math.nan, math.nan, 0, _UNTESTED
                    continue
                sides = (statement.left, statement.right, statement.given)
                names = [[column for node in side for column in columns[node]] for side in sides]
                complete = table[[name for side in names for name in side]].notna().all(axis=1).to_numpy()
                rows = int(complete.sum())
                if rows < MIN_ROWS:
                    yield str(statement), math.nan, math.nan, rows, f"only {rows} rows are complete"
                    continue
                part = table[complete]
                left, right = (Variable.of(part[side], as_list(side)) for side in names[:2])
                given = None
                if statement.given:
                    key = complete.tobytes()
                    if key not in prepared:
                        prepared[key] = Conditioning(Variable.of(part[names[2]], as_list(names[2])), generator)
                    given = prepared[key]
                test = PreparedTest(left, right, given, (statement.left[0], ""), level / len(statements))
                found = test.run(generator, n_bootstrap)
                yield str(statement), found.p_value, found.detectable, rows, found.obstacle
