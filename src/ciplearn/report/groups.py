"""How a predictor does in each group, and the rates and impact ratios that New York City's Local Law 144 asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn.evaluation import GroupScores, group_scores
from ciplearn.evaluation.predictors import Predictor

if TYPE_CHECKING:
    from ciplearn.report.content import Report

# A score of fewer rows says little.
FEW_ROWS = 30

# The rules of the law allow to leave out categories with less than this share of the rows; here they are marked.
SMALL_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class BiasAudit:
    """Rates and ratios by group and crossing."""

    # ``columns``, ``group``, ``n_rows``, ``selected``, ``rate`` and ``ratio`` with its interval, and ``small``
    table: pd.DataFrame
    scored: bool  # whether a number was scored: then a row counts as selected above the median score of all
    threshold: float
    # rows without a value there: of those audited, which the tables by that column leave out, and of those that were
    # left out before
    unknown: dict[str, int]
    n_rows: int

    @classmethod
    def of(cls, report: Report) -> BiasAudit:
        """Count the decisions of the audited model: rate = selected / rows, ratio = rate / highest rate."""
        if len(report.audit.vcf.per_output) != 1:
            raise InputError(
                f"A bias audit is about one decision per row, but the predictor gives "
                f"{len(report.audit.vcf.per_output)} numbers; audit one class at a time."
            )
        predictor = Predictor(report.model, report.audit.method, report.audit.inputs)
        scored, columns = not report.audit.is_classifier, report.group_columns
        if not columns:
            raise InputError("A bias audit needs columns to group by; name some with groups.")
        threshold = float(np.median(predictor.numbers(predictor.in_blocks(report.rows)))) if scored else None
        tables = []
        for family in [[column] for column in columns] + [list(pair) for pair in combinations(columns, 2)]:
            scores = group_scores(
                report.model,
                report.rows.dropna(subset=family),
                report.audit.verdict.outcome,
                family,
                threshold=threshold,
                inputs=predictor.inputs,
                method=None if predictor.method == "call" else predictor.method,
            )
            tables.append(scores.table[scores.table["columns"] == " × ".join(family)])
        table = pd.concat(tables, ignore_index=True).rename(columns={"positive_rate": "rate"})
        table["selected"] = (table["rate"] * table["n_rows"]).round().astype(int)
        table["small"] = table["n_rows"] < SMALL_SHARE * len(report.rows)
        kept = ["columns", "group", "n_rows", "selected", "rate", "ratio", "ratio_low", "ratio_high", "small"]
        missing = report.rows[columns].isna().sum()
        unknown = {column: int(missing[column]) + int(report.unknown.get(column, 0)) for column in columns}
        used = scores.threshold if scores.threshold is not None else 0.5
        return cls(table[kept], scored, used, unknown, len(report.rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as JSON-ready data."""
        return fields_as_data(self, "table", "n_rows", groups=self.table)


def scores_by_group(
    models: Mapping[str, Predictor], rows: pd.DataFrame, outcome: str, columns: Sequence[str]
) -> GroupScores:
    """Return `group_scores` of the models, with a column ``output`` that names the class where there are several."""
    one = next(iter(models.values()))
    n_outputs = one(rows.iloc[:1]).shape[1]
    if n_outputs == 1:
        method = None if one.method == "call" else one.method
        every = {name: each.model for name, each in models.items()}
        found = group_scores(every, rows, outcome, columns, inputs=one.inputs, method=method)
        return GroupScores(found.table.assign(output=""), found.threshold, found.positive)
    tables = []
    for place, output in enumerate(one.outputs(n_outputs)):
        truth = (rows[outcome].astype(str) == output).astype(np.float64)
        single = {name: _output(each, place) for name, each in models.items()}
        found = group_scores(single, rows.assign(**{outcome: truth}), outcome, columns, inputs=one.inputs)
        tables.append(found.table.assign(output=output))
    return GroupScores(pd.concat(tables, ignore_index=True), None, None)


def _output(predictor: Predictor, place: int) -> Callable[[pd.DataFrame], Any]:
    return lambda frame: predictor(frame)[:, place]
