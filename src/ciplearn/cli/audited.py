"""What is audited: the model of a folder or any other, with its graph and roles, the rows that judge it, the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from ciplearn._core.arguments import one_of
from ciplearn._core.columns import CLASSIFICATION
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.rows import as_generator
from ciplearn._core.workers import OneProcess
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.cli.model_folder import AnyTable, ModelFolder, columns_of, gaps_of, require_rows
from ciplearn.cli.output import note, progress
from ciplearn.cli.training import sampled_table
from ciplearn.cli.training_table import FitRequest, TrainingTable
from ciplearn.doubt import how_wrong
from ciplearn.estimators.base import is_unconstrained
from ciplearn.evaluation import Audit, Limits, audit
from ciplearn.evaluation.any_model import Foreign, Numbers, Probabilities
from ciplearn.evaluation.conclusion import PASSES
from ciplearn.evaluation.counterfactual_rows import sample_with_every_label
from ciplearn.evaluation.scores import FREE, MODEL
from ciplearn.learning import Frontier
from ciplearn.learning.frontier import Point
from ciplearn.repairing import Repaired, repair
from ciplearn.repairing.measured import BLIND
from ciplearn.report import Report
from ciplearn.routes import ROUTES
from ciplearn.routes.beside import Unconstrained
from ciplearn.scm import StructuralCausalModel, fit_scm
from ciplearn.scm.scm_file import read_scm
from ciplearn.sources import TableFiles

_REPAIRED_ROWS = 2000  # rows that a model is repaired from, to see whether that passes
_LEFT = (0.67, 0.33, 0.17)  # shares of what a repaired model leaves of an effect, tried before nothing is left


@dataclass(frozen=True)
class Effort:
    """How much to compute: points, interventions per point, draws, rows for the causal model, graphs to doubt."""

    n_points: int
    n_interventions: int
    n_draws: int
    scm_rows: int
    doubt: int

    @classmethod
    def of(cls, preset: str, **asked: Any) -> Effort:
        """Take a preset, and what was asked for beside it."""
        one_of(preset, "--preset", _PRESETS)
        return replace(_PRESETS[preset], **{name: value for name, value in asked.items() if value is not None})


_PRESETS = {
    "quick": Effort(200, 50, 10, 3000, 0),
    "standard": Effort(500, 100, 10, 5000, 20),
    "thorough": Effort(1000, 500, 100, 50_000, 200),
}


@dataclass(frozen=True, eq=False)
class Audited:
    """A model and what it is judged by."""

    model: Any  # with ``predict_proba`` and ``classes_``, or with ``predict``
    folder: ModelFolder | None  # where the model comes from, or what it is compared with
    verdict: Verdict  # on the graph, with the roles
    task: str
    rows: pd.DataFrame  # complete rows that judge
    every: pd.DataFrame  # all complete rows
    about: str  # which rows these are
    unknown: dict[str, int]  # how many rows that would judge have no value in a column, so that they are left out
    positive: str | None = None  # the label that counts as the positive decision

    @classmethod
    def of_folder(
        cls,
        folder: ModelFolder,
        source: AnyTable,
        graph: CausalGraph | None = None,
        foreign: Foreign | None = None,
        positive: str | None = None,
    ) -> Audited:
        """Take roles and rows from a folder, on its graph or on another, and its model or another."""
        verdict = folder.verdict
        if verdict is None:
            raise InputError(f"{folder.path} was trained without a graph; fit it with one to audit it here.")
        drawn = verdict.graph if graph is None else graph
        if graph is not None or (foreign is not None and foreign.inputs is not None):
            verdict = _judged_anew(verdict, drawn, foreign)
        more = [node for node in drawn.observed if node not in folder.kinds]
        rows, every, about, unknown = folder.rows(source, more)
        task = folder.training["task"]
        rows, every = (_labelled(table, verdict, task) for table in (rows, every))
        subject = cls(None, folder, verdict, task, rows, every, about, unknown, positive)
        return replace(subject, model=subject.reordered(folder.model) if foreign is None else subject.asked(foreign))

    @classmethod
    def of_table(cls, source: AnyTable, request: FitRequest, foreign: Foreign, positive: str | None) -> Audited:
        """Take roles from a request, all complete rows of a table, and a model from elsewhere."""
        _check_known(foreign, request.graph)
        inputs = request.inputs if foreign.inputs is None else foreign.inputs
        wanted = replace(request, inputs=inputs, missing="impute", holdout=0.0)
        if isinstance(source, TableFiles):
            understood = sampled_table(source, wanted, OneProcess())
        else:
            understood = TrainingTable.read(source, wanted)
        table, verdict, task = understood.table, understood.verdict, understood.task
        every = _labelled(table.dropna(), verdict, task)
        require_rows(len(every), source)
        some = understood.n_rows > len(table)
        drawn = f"{len(every)} of {understood.n_rows}, drawn at random," if some else f"All {len(every)}"
        about = f"{drawn} complete rows of {source.path.name}; only you know if the model was trained on some."
        subject = cls(None, None, verdict, task, every, every, about, gaps_of(table), positive)
        return replace(subject, model=subject.asked(foreign))

    @property
    def is_ours(self) -> bool:
        """Whether the model is that of the folder."""
        return not isinstance(self.model, Numbers | Probabilities) or self.model.is_ours

    @property
    def inputs(self) -> list[str]:
        """The columns that are shown to the model, and to those of the folder beside it."""
        ours = () if self.folder is None else self.folder.shown
        return list(dict.fromkeys([*self.verdict.inputs, *ours]))

    def asked(self, foreign: Foreign) -> Any:
        """Return a model from elsewhere as the audit asks it."""
        if self.task == CLASSIFICATION:
            return Probabilities(foreign, sorted(set(self.every[self.verdict.outcome])), self.positive)
        if self.positive is not None:
            raise InputError(f"--positive names {self.positive!r}, and the outcome holds numbers; leave it out.")
        return Numbers(foreign)

    def reordered(self, model: Any) -> Any:
        """Return a model of ours with the positive label last."""
        if self.positive is None or model is None:
            return model
        ask = getattr(model, "predict_proba", model.predict)
        classes = getattr(model, "classes_", None)
        return self.asked(Foreign(type(model).__name__, ask, classes, columns_of(model), is_ours=True))

    def report(
        self,
        effort: Effort,
        seed: int,
        scm_file: Path | None = None,
        *,
        run_code: bool = False,
        groups: Sequence[str] | None = None,
        compare: bool = True,
        limits: Limits | None = None,
    ) -> Report:
        """Measure the model under a causal model that is given or estimated, and others beside it."""
        torch.set_num_threads(1)
        beside, how = self._beside() if compare else ({}, {})
        comparison = None if self.folder is None else self.folder.comparison
        with progress("causal model", "step", total=3) as bar:
            # Rows that trained a model say too little about how it does on others.
            judging = sample_with_every_label(self.rows, effort.scm_rows, as_generator(seed))
            if scm_file is None:
                scm: StructuralCausalModel = fit_scm(self.verdict.graph, judging, None, seed)
            else:
                scm = read_scm(scm_file, self.verdict.graph, run_code=run_code)
            bar.update()
            bar.set_description_str("counterfactuals")
            # Where nobody has named an effect, the limit that the fit has kept to; how far causal models of such rows
            # disagree, as the fit has found: unknown of a model from elsewhere.
            of_fit, floor = (None, None) if comparison is None else (comparison.limit, comparison.floor)
            limits = replace(limits or Limits(), of_fit=of_fit)
            audited = self._audited(self.model, scm, effort, seed, beside=beside, limits=limits, floor=floor)
            bar.update()
            bar.set_description_str("how wrong it may be")
            doubts = self._doubts(audited, effort, seed) if compare and effort.doubt else {}
            bar.update()
        for finding in audited.vcf.doubts:
            note(finding.sentence)
        about = f"{self.about[0].lower()}{self.about[1:]}" if self.about.startswith("All") else self.about
        how |= {"groups": groups, "unknown": self.unknown, "about_rows": f"Audited on: {about}"}
        return Report.of(audited, doubts=doubts, **how, **self._frontier(audited))

    def _audited(self, model: Any, scm: StructuralCausalModel, size: Any, seed: int, **more: Any) -> Audit:
        more |= {name: getattr(size, name) for name in ("n_points", "n_interventions", "n_draws")}
        # The verdict on the graph as it was drawn: an estimated model has its own version of latent nodes.
        return audit(model, scm, self.rows, verdict=self.verdict, inputs=self.inputs, random_state=seed, **more)

    def stricter(self, audited: Audit, seed: int) -> tuple[float, Audit] | None:
        """Audit this model of ours repaired further, on the same rows and worlds; None where nothing repairs it.

        Returns the first strength that passes, of some that leave less and less, or else the strict end.
        """
        if self.folder is None or not self.is_ours:
            return None
        model, roles, strengths = self.folder.model, self.verdict, [math.inf]
        try:
            if isinstance(model, Repaired):
                repaired = model
                strengths = sorted({*(float(f"{(1 + model.strength) / left - 1:.3g}") for left in _LEFT), math.inf})
            else:
                # Of a large table, rows that judge need not be among those that were drawn from all.
                others = self.every[~self.every.index.isin(self.rows.index)]
                seen = sample_with_every_label(others, _REPAIRED_ROWS, as_generator(seed))
                named: dict[str, Any] = {"outcome": roles.outcome, "protected": list(roles.protected)}
                named |= {"inputs": self.folder.shown, "random_state": seed}
                repaired = repair(model, seen, graph=roles.graph, **named)
            how = {"limits": audited.limits, "floor": audited.floor}
            for strength in strengths:
                found = self._audited(self.reordered(repaired.at(strength)), audited.scm, audited.vcf, seed, **how)
                if found.conclusion.state == PASSES:
                    break
            return strength, found
        except CiplearnError:
            return None

    def _doubts(self, audited: Audit, effort: Effort, seed: int) -> dict[str, Any]:
        """Ask how wrong graph and causal model may be, on all rows: a graph has no training rows."""
        return how_wrong(
            self.model,
            audited.verdict,
            sample_with_every_label(self.every, effort.scm_rows, as_generator(seed)),
            audited.scm,
            vcf=audited.vcf.value,
            context=audited.vcf.context,
            inputs=audited.inputs,
            method=None if audited.method == "call" else audited.method,
            limit=effort.doubt,
            # Ratios are read off, on the same rows for every graph.
            n_points=min(effort.n_points, 120),
            n_interventions=min(effort.n_interventions, 24),
            random_state=seed,
        )

    def _beside(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the model is measured beside, and how it was trained."""
        folder = self.folder
        if folder is None:
            return {}, {"rule": f"{self.model.name} was trained elsewhere; nothing is known of how."}
        trials = folder.trials
        # Of a repaired model, as it was.
        before = folder.model.at(0.0) if isinstance(folder.model, Repaired) else None
        free = None if is_unconstrained(folder.model) else self.reordered(trials.get(0.0) or before)
        compared = {} if free is None else {FREE: free}
        if not self.is_ours:
            rule = f"{self.model.name} was trained elsewhere; {folder.path.name} was trained here."
            return {folder.path.name: self.reordered(folder.model)} | compared, {"rule": rule}
        if folder.comparison is None:
            # Routes were judged by fit; trainings at other gammas are measured here.
            others = {gamma: model for gamma, model in trials.items() if gamma not in (0.0, folder.training["gamma"])}
            compared |= {_at(gamma): self.reordered(model) for gamma, model in others.items()}
        return compared, {
            "comparison": folder.comparison,
            "chosen": folder.training["gamma"] if folder.comparison is None else None,
            "rule": _how_trained(folder),
            "penalty": _penalty_name(folder.model),
        }

    def _frontier(self, audited: Audit) -> dict[str, Any]:
        """Every model that was measured, as the audit's own was: with the gammas tried, or as baselines."""
        measured = {name: _measures(one.vcf.value, one.scores) for name, one in audited.beside.items()}
        if self.folder is None or self.folder.comparison is not None:
            return {}
        ours = _measures(audited.vcf.value, audited.scores)
        if not self.is_ours:
            return {"baselines": {name: (one["vcf"], one["loss"]) for name, one in {MODEL: ours, **measured}.items()}}
        training, points = self.folder.training, []
        for trial in training["trials"]:
            gamma = trial["gamma"]
            name = FREE if gamma == 0 and FREE in measured else _at(gamma)
            figures = ours if gamma == training["gamma"] else measured[name]
            # The penalty is that of the rows that judged in training.
            kept = {key: value for key, value in trial["measures"].items() if key == "penalty"}
            points.append(Point(gamma, 0, figures | kept))
        return {"frontier": Frontier(tuple(points))} if points else {}


def _at(gamma: float) -> str:
    return f"gamma = {gamma:g}"


def _measures(vcf: float, scores: Mapping[str, float]) -> dict[str, float]:
    loss, score = ("mse", "r2") if "mse" in scores else ("log_loss", "accuracy")
    return {"loss": scores[loss], "score": scores[score], "vcf": vcf}


def _judged_anew(verdict: Verdict, graph: CausalGraph, foreign: Foreign | None) -> Verdict:
    """Ask the criterion on another graph, or about other inputs, with the roles of a training."""
    absent = [node for node in (verdict.outcome, *verdict.protected, *verdict.inputs) if node not in graph.observed]
    if absent:
        raise InputError(
            f"The model was trained with {absent[0]!r}, which --graph does not have among its observed nodes; add it."
        )
    inputs: Sequence[str] = verdict.inputs
    if foreign is not None and foreign.inputs is not None:
        _check_known(foreign, graph)
        inputs = foreign.inputs
    everything = set(verdict.graph.observed) - {verdict.outcome} <= set(verdict.context)
    context = None if everything else [node for node in verdict.context if node in graph.observed]
    return graph.criterion(verdict.outcome, verdict.protected, context, inputs)


def _check_known(foreign: Foreign, graph: CausalGraph) -> None:
    strangers = [name for name in foreign.inputs or () if name not in graph.observed]
    if strangers:
        raise InputError(
            f"{foreign.name} reads {strangers[0]!r}, which is no observed node of the graph; add it to the graph, so "
            "that its counterfactual values are known."
        )


def _labelled(rows: pd.DataFrame, verdict: Verdict, task: str) -> pd.DataFrame:
    """Make labels of the outcome a category, whatever they look like: a causal model needs to know."""
    if task != CLASSIFICATION:
        return rows
    return rows.assign(**{verdict.outcome: rows[verdict.outcome].astype("category")})


def _how_trained(folder: ModelFolder) -> str:
    training, model = folder.training, folder.model
    gamma, strength = training["gamma"], getattr(model, "strength", None)
    how = ROUTES.get(model.route_, Unconstrained).how.format(
        gamma="none" if gamma is None else f"{gamma:.3g}",
        penalty=_penalty_name(model),
        strength="full" if strength == math.inf else f"{strength or 0:.3g}",
    )
    if getattr(model, "rests_on", None) == BLIND:
        how += " What labels and counts that follow the protected columns tell of a single row was given up."
    if "comparison" in training:
        return f"{how} {training['remark']}"
    if training["tolerance"] is None:
        return f"{how} Gamma was fixed by hand."
    return (
        f"{how} It is the largest gamma tried that loses at most {training['tolerance']:.3g} of what a predictor "
        f"without a penalty explains, measured by its {training['measure']} on rows that training does not see. "
        f"{training['remark']}".strip()
    )


def _penalty_name(model: Any) -> str:
    if getattr(model, "penalty", None) is not None:
        return type(model.penalty).__name__
    return "ResidualHSCIC" if getattr(model, "independence_", None) and model.independence_.given else "HSIC"
