"""How the predictor does in each group, and whom it would have treated otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn.evaluation import VarianceOfCounterfactuals
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.scores import predictive_scores

# Levels shown of one column; the others are one group.
_MOST_LEVELS = 6

# Groups that a column of many numbers is cut into.
_BANDS = 4

# A score of fewer rows says little.
FEW_ROWS = 30


@dataclass(frozen=True)
class Group:
    """Rows that share a value.

    Attributes
    ----------
    column, label : str
    n_rows : int
    prediction, observed : float or None
        Mean prediction and mean outcome; for two classes the share of the second one. None for several classes.
    scores : dict
    vcf : float or None
        Mean over the points that lie in the group.
    """

    column: str
    label: str
    n_rows: int
    prediction: float | None
    observed: float | None
    scores: dict[str, float]
    vcf: float | None


@dataclass(frozen=True)
class Affected:
    """A row whose prediction depends much on the protected variables."""

    place: Any
    values: dict[str, str]
    vcf: float
    prediction: float | None
    lowest: float | None
    highest: float | None


def scores_by_group(
    predictor: Predictor, rows: pd.DataFrame, outcome: str, columns: Sequence[str], vcf: VarianceOfCounterfactuals
) -> list[Group]:
    """Measure each group of each column with the code that measures all rows."""
    said = predictor.in_blocks(rows)
    answers = predictor.numbers(said)
    truth = _as_number(predictor, rows[outcome])
    point_vcf = vcf.per_row["vcf"]
    found = []
    for column in columns:
        labels = grouped(rows[column])
        for label in labels.cat.categories:
            inside = (labels == label).to_numpy()
            if not inside.any():
                continue
            here = point_vcf[point_vcf.index.isin(rows.index[inside])]
            found.append(
                Group(
                    column=str(column),
                    label=str(label),
                    n_rows=int(inside.sum()),
                    prediction=float(answers[inside, 0].mean()) if answers.shape[1] == 1 else None,
                    observed=None if truth is None else float(truth[inside].mean()),
                    scores=_scores(predictor, said[inside], rows.loc[inside, outcome]),
                    vcf=float(here.mean()) if len(here) else None,
                )
            )
    return found


def _scores(predictor: Predictor, said: np.ndarray[Any, Any], truth: pd.Series) -> dict[str, float]:
    # R² compares with the spread inside the group, which differs from group to group.
    return {name: value for name, value in predictive_scores(predictor, said, truth).items() if name != "r2"}


def most_affected(
    predictor: Predictor, rows: pd.DataFrame, columns: Sequence[str], vcf: VarianceOfCounterfactuals, n: int = 6
) -> list[Affected]:
    """Return the points with the largest variance of counterfactual predictions."""
    top = vcf.per_row.sort_values("vcf", ascending=False, kind="stable").head(n)
    single = "lowest" in top.columns
    predicted = predictor(rows.loc[top.index])
    return [
        Affected(
            place=index,
            values={str(column): _said(rows.loc[index, column]) for column in columns},
            vcf=float(point["vcf"]),
            prediction=float(predicted[number, 0]) if single else None,
            lowest=float(point["lowest"]) if single else None,
            highest=float(point["highest"]) if single else None,
        )
        for number, (index, point) in enumerate(top.iterrows())
    ]


def grouped(column: pd.Series) -> pd.Series:
    """Return a group's label for each row: levels as they are, numbers in bands of equal size."""
    if pd.api.types.is_numeric_dtype(column.dtype) and column.nunique() > _MOST_LEVELS:
        bands = pd.qcut(column, _BANDS, duplicates="drop")
        ends = column.groupby(bands, observed=True).agg(["min", "max"])
        return bands.cat.rename_categories({band: _band(ends.loc[band]) for band in bands.cat.categories})
    counts = column.astype(object).value_counts()
    kept = list(counts.index[:_MOST_LEVELS])
    labels = column.astype(object).where(column.isin(kept), "all others").map(_said)
    order = [_said(level) for level in (sorted(kept) if _sortable(kept) else kept)]
    return labels.astype(pd.CategoricalDtype(list(dict.fromkeys([*order, "all others"]))))


def _band(ends: pd.Series) -> str:
    return f"{_said(ends['min'])} to {_said(ends['max'])}"


def _said(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _sortable(levels: Sequence[Any]) -> bool:
    return all(isinstance(level, int | float | np.number) for level in levels)


def _as_number(predictor: Predictor, truth: pd.Series) -> np.ndarray[Any, Any] | None:
    classes = getattr(predictor.model, "classes_", None)
    if predictor.method == "predict_proba" and classes is not None:
        return (truth == classes[1]).to_numpy(dtype=float) if len(classes) == 2 else None
    return truth.to_numpy(dtype=float) if pd.api.types.is_numeric_dtype(truth.dtype) else None
