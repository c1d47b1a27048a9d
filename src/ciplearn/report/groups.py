"""How the predictor does in each group: decisions of two classes, one number, or one class after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ciplearn.evaluation import GroupScores, group_scores
from ciplearn.evaluation.predictors import Predictor

# A score of fewer rows says little.
FEW_ROWS = 30


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
