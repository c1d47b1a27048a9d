"""From a model folder and a table to a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_list
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.cli.scm_file import read_scm
from ciplearn.cli.tables import TableFile
from ciplearn.estimators.base import CIPEstimator
from ciplearn.evaluation import audit, variance_of_counterfactuals
from ciplearn.learning import Frontier
from ciplearn.learning.frontier import Point
from ciplearn.report import Report
from ciplearn.scm import StructuralCausalModel, fit_scm


@dataclass(frozen=True)
class Effort:
    """How much to compute: points, interventions a point, draws of open noise, rows for the causal model."""

    n_points: int
    n_interventions: int
    n_draws: int
    scm_rows: int


# The trials are compared with each other, which takes fewer draws than a figure to quote.
_FOR_TRIALS = Effort(200, 50, 10, 0)


def audited(
    folder: ModelFolder,
    source: TableFile,
    scm_file: Path | None,
    run_code: bool,
    effort: Effort,
    groups: Sequence[str] | None,
    seed: int,
    settings: Mapping[str, Mapping[str, Any]],
) -> Report:
    """Measure a saved model on a table."""
    torch.set_num_threads(1)
    if folder.model.graph is None or folder.model.verdict_ is None:
        raise InputError(f"{folder.path} was trained without a graph; fit it with one to audit it here.")
    judge, every, about = folder.rows(source)
    judge, every = _labelled(folder, judge), _labelled(folder, every)
    # disable=None: quiet where nobody watches.
    with tqdm(total=3, desc="causal model", bar_format="{desc}: {n}/{total} [{elapsed}]", disable=None) as bar:
        if scm_file is None:
            scm: StructuralCausalModel = fit_scm(folder.model.graph, _some(every, effort.scm_rows, seed), None, seed)
        else:
            scm = read_scm(scm_file, folder.model.graph, run_code=run_code)
        bar.update()
        bar.set_description_str("counterfactuals")
        found = audit(
            folder.model,
            scm,
            judge,
            n_points=effort.n_points,
            n_interventions=effort.n_interventions,
            n_draws=effort.n_draws,
            random_state=seed,
        )
        bar.update()
        bar.set_description_str("gammas tried")
        trace = _with_vcf(folder, scm, judge, found.verdict.protected, seed)
        bar.update()
    training = folder.training
    return Report(
        # The verdict on the graph as it was drawn: an estimated model has its own version of latent nodes.
        audit=replace(found, verdict=folder.model.verdict_),
        model=folder.model,
        rows=judge,
        title=f"Predicting {folder.outcome}, and {as_list(found.verdict.protected)}",
        frontier=trace,
        chosen=training["gamma"],
        rule=_rule(training),
        penalty=_penalty_name(folder.model),
        groups=groups,
        about_rows=f"Audited on: {about[0].lower() if about.startswith('All') else about[0]}{about[1:]}",
        settings=settings,
    )


def _labelled(folder: ModelFolder, rows: pd.DataFrame) -> pd.DataFrame:
    """Make labels of the outcome a category, whatever they look like: a causal model needs to know."""
    if folder.training["task"] != "classification":
        return rows
    return rows.assign(**{folder.outcome: rows[folder.outcome].astype("category")})


def _some(rows: pd.DataFrame, wanted: int, seed: int) -> pd.DataFrame:
    """Sample rows, and one more row for each label that the sample would lack."""
    if len(rows) <= wanted:
        return rows
    picked = set(np.random.default_rng(seed).choice(len(rows), wanted, replace=False).tolist())
    for name in rows.columns:
        if not pd.api.types.is_numeric_dtype(rows[name].dtype):
            labels = rows[name].reset_index(drop=True)
            known = set(labels.iloc[sorted(picked)])
            picked |= {int(np.argmax(labels == label)) for label in labels.unique() if label not in known}
    return rows.iloc[sorted(picked)]


def _with_vcf(
    folder: ModelFolder, scm: StructuralCausalModel, rows: pd.DataFrame, protected: Sequence[str], seed: int
) -> Frontier | None:
    """Add the variance of counterfactuals to the trace: one set of counterfactual rows for all models."""
    points = folder.trace.points
    if not points:
        return None
    together = _Together(tuple(folder.trials().values()))
    inputs = [column for column in rows.columns if column != folder.outcome]
    found = variance_of_counterfactuals(
        together,
        scm,
        rows,
        protected,
        _FOR_TRIALS.n_points,
        _FOR_TRIALS.n_interventions,
        seed,
        inputs=inputs,
        n_draws=_FOR_TRIALS.n_draws,
    )
    each = np.array(list(found.per_output.values())).reshape(len(points), -1).sum(axis=1)
    return Frontier(
        tuple(
            Point(point.gamma, point.seed, {**point.measures, "vcf": float(value)})
            for point, value in zip(points, each, strict=True)
        )
    )


@dataclass(frozen=True)
class _Together:
    """Several models as one predictor with all their outputs side by side."""

    models: tuple[CIPEstimator, ...]

    def __call__(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:  # (n, models × outputs)
        return np.column_stack([_numbers(model, frame) for model in self.models])


def _numbers(model: Any, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(frame))
    table = np.asarray(model.predict_proba(frame))
    return table[:, 1] if table.shape[1] == 2 else table


def _rule(training: Mapping[str, Any]) -> str:
    if training["tolerance"] is None:
        return "Gamma was fixed by hand."
    loss = f"{training['tolerance']:.3g} of the squared error"
    if training["task"] == "classification":
        loss = f"{training['tolerance']:.3g} of {'accuracy' if training['measure'] == 'score' else 'the cross-entropy'}"
    elif training["measure"] == "score":
        loss = f"{training['tolerance']:.3g} of R²"
    return (
        f"It is the largest gamma tried that loses at most {loss} on rows that training does not see. "
        f"{training['remark']}".strip()
    )


def _penalty_name(model: CIPEstimator) -> str:
    if model.penalty is not None:
        return type(model.penalty).__name__
    return "ResidualHSCIC" if model.independence_ is not None and model.independence_.given else "HSIC"
