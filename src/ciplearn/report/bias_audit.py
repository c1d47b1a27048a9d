"""The tables that New York City's Local Law 144 asks for: selection or scoring rates, and impact ratios."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn.evaluation import group_scores
from ciplearn.evaluation.predictors import Predictor

if TYPE_CHECKING:
    from ciplearn.report.content import Report

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
        scored = not report.is_classifier
        threshold = float(np.median(predictor.numbers(predictor.in_blocks(report.rows)))) if scored else None
        columns = report.group_columns
        if not columns:
            raise InputError("A bias audit needs columns to group by; name some with groups.")
        missing = {column: int(report.rows[column].isna().sum()) for column in columns}
        tables = []
        method = None if predictor.method == "call" else predictor.method
        for family in [[column] for column in columns] + [list(pair) for pair in combinations(columns, 2)]:
            found = group_scores(
                report.model,
                report.rows.dropna(subset=family),
                report.audit.verdict.outcome,
                family,
                threshold=threshold,
                inputs=predictor.inputs,
                method=method,
            )
            tables.append(found.table[found.table["columns"] == " × ".join(family)])
        table = pd.concat(tables, ignore_index=True)
        counted = table.assign(
            rate=table["positive_rate"],
            selected=(table["positive_rate"] * table["n_rows"]).round().astype(int),
            small=table["n_rows"] < SMALL_SHARE * len(report.rows),
        )
        kept = ["columns", "group", "n_rows", "selected", "rate", "ratio", "ratio_low", "ratio_high", "small"]
        unknown = {column: missing[column] + int(report.unknown.get(column, 0)) for column in columns}
        used = found.threshold if found.threshold is not None else 0.5
        return cls(counted[kept], scored, used, unknown, len(report.rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as JSON-ready data."""
        return fields_as_data(self, "table", "n_rows", groups=self.table)
