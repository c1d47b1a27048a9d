"""Rows that judge: what predictors say of them as they are, and as they would have been."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from ciplearn._core.errors import OddRowsWarning
from ciplearn.estimators.criteria import Judged
from ciplearn.estimators.problem import Problem
from ciplearn.evaluation import variance_of_counterfactuals
from ciplearn.evaluation.counterfactual_rows import Points, as_known_beforehand, known_by
from ciplearn.evaluation.interventions import compared_values, pairs_of
from ciplearn.evaluation.predictors import Predictor
from ciplearn.routes.route import Family, Part
from ciplearn.scm import EstimatedModel
from ciplearn.scm.kinds import Array

# Points, interventions and draws: enough to tell predictors apart, few enough for many of them. Where effects decide,
# VCF only tells what is left, and repaired predictors imagine worlds of every row they see.
_DRAWS = 4
_OF_VCF, _BESIDE_EFFECTS = (400, 24), (120, 6)
_POINTS = 250

MOST_TIES = 2  # models with another mechanism, where data cannot tell which is right


@dataclass(frozen=True, eq=False)
class PairEffect:
    """What a change from one protected value to another does to an output on the rows that judge."""

    pair: str  # both values
    each: Array  # (rows,): the effect on each row, mean over draws of its noise
    moved: float  # the share of rows that move by more than the limit
    between: float = 0.0  # variance of the mean effect between causal models of several parts

    @property
    def rows(self) -> int:
        """How many rows were asked about."""
        return len(self.each)

    @property
    def effect(self) -> float:
        """The mean over rows."""
        return float(self.each.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation over rows."""
        return float(self.each.std(ddof=1))

    @staticmethod
    def joined(parts: Sequence[PairEffect]) -> PairEffect:
        """Join what several parts of the rows say of the same pair."""
        rows = [part.rows for part in parts]
        between = float(np.var([part.effect for part in parts], ddof=1)) if len(parts) > 1 else 0.0
        moved = float(np.average([part.moved for part in parts], weights=rows))
        return PairEffect(parts[0].pair, np.concatenate([part.each for part in parts]), moved, between)


@dataclass(frozen=True, eq=False)
class Measured:
    """One candidate on rows that judge."""

    judged: Judged  # its answers, beside the outcomes
    vcf: float  # NaN where no causal model could judge, as is the next
    relative: float
    pairs: tuple[PairEffect, ...] = ()

    @staticmethod
    def joined(parts: Sequence[Measured]) -> Measured:
        """Join what several parts of the rows say; parts without a causal model say nothing of VCF."""
        known = [part for part in parts if not math.isnan(part.vcf)]
        vcf, relative = (
            float(np.mean([getattr(part, name) for part in known])) if known else math.nan
            for name in ("vcf", "relative")
        )
        with_pairs = [part.pairs for part in known if part.pairs]
        pairs = tuple(PairEffect.joined(same) for same in zip(*with_pairs, strict=True)) if with_pairs else ()
        return Measured(reduce(Judged.joined, (part.judged for part in parts)), vcf, relative, pairs)


@dataclass(frozen=True, eq=False)
class Judge:
    """Rows with a causal model of their own, which no candidate was trained with."""

    part: Part
    moved_by: float | None  # a row that moves by more counts; None asks about VCF alone
    values: Mapping[str, list[Any]]  # of each protected node, those that are compared

    def measured(self, families: Sequence[Family]) -> dict[str, Measured]:
        """Measure every candidate on the same rows and the same imagined rows."""
        # What one causal model imagines, another one may hold for impossible; people have not asked about it.
        with warnings.catch_warnings(action="ignore", category=OddRowsWarning):
            return self._measured(families)

    def _measured(self, families: Sequence[Family]) -> dict[str, Measured]:
        scm, problem = self.part.scm, self.part.problem
        if any(family.complete for family in families):
            problem = replace(problem, table=problem.complete)
        asked = {str(place): family.flat for place, family in enumerate(families)}
        reads = list(dict.fromkeys(name for family in families for name in family.reads))
        spread = {} if scm is None else self._spread(scm, asked, reads)
        effects = {} if scm is None or self.moved_by is None else self._effects(scm, asked, reads)
        measured = {}
        for place, family in enumerate(families):
            answers = family.along(problem.X)
            q = answers.shape[2]
            for number, one in enumerate(family.candidates):
                own = slice(number * q, (number + 1) * q)
                vcf = max(0.0, float(spread[str(place)][own].sum())) if spread else math.nan
                variance = float(answers[:, number].var(axis=0, ddof=1).sum())
                relative = vcf / variance if variance > 0 else math.nan
                # Each output by itself: parts are joined, and probabilities of two labels move against each other.
                pairs = tuple(each for pair in effects.get(str(place), ()) for each in pair[own])
                measured[one.name] = Measured(_judged(problem, one.model, answers[:, number]), vcf, relative, pairs)
        return measured

    def _spread(self, scm: EstimatedModel, asked: Mapping[str, Any], reads: list[str]) -> dict[str, Array]:
        """VCF by output; where data leave open which mechanism is right, the larger counts."""
        problem, table = self.part.problem, self.part.problem.complete
        spread: dict[str, Array] = {}
        points, interventions = _OF_VCF if self.moved_by is None else _BESIDE_EFFECTS
        ties = scm.ties(self.part.nodes_that_matter(scm))[:MOST_TIES] if self.moved_by is None else []
        for model in (scm, *ties):
            size = (min(points, len(table)), interventions, self.part.seed)
            how: dict[str, Any] = {"context": known_by(problem.verdict, model, table), "inputs": reads}
            measured = variance_of_counterfactuals(
                dict(asked), model, table, problem.protected, *size, n_draws=_DRAWS, **how
            )
            for name, result in measured.items():
                each = np.array(list(result.per_output.values()))
                spread[name] = np.maximum(each, spread[name]) if name in spread else each
        return spread

    def _effects(self, scm: EstimatedModel, asked: Mapping[str, Any], reads: list[str]) -> dict[str, list[Any]]:
        """Per family and pair of values the effect on each output."""
        rows = as_known_beforehand(scm, self.part.problem.complete, self.part.problem.outcome)
        predictors = {name: Predictor(ask, "call", tuple(reads)) for name, ask in asked.items()}
        effects: dict[str, list[Any]] = {name: [] for name in asked}
        for changed, settings, pairs in pairs_of(self.values):
            # The same seed: every change is about the same rows.
            generator = np.random.default_rng(self.part.seed)
            points = Points.of(scm, rows, changed, reads, generator, n_points=_POINTS, n_draws=_DRAWS)
            for name, per_pair in points.compared(predictors, settings, pairs, {}, self.moved_by or 0.0).items():
                effects[name] += [
                    [_pair_effect(settings[i], settings[j], output) for output in outputs]
                    for (i, j), outputs in zip(pairs, per_pair, strict=True)
                ]
        return effects


def compared_levels(problem: Problem, scm: EstimatedModel | None) -> dict[str, list[Any]]:
    """Return the values of each protected node that an audit would compare; none where one is a vector."""
    if scm is None or any(len(scm.columns([name])) > 1 for name in problem.protected):
        return {}
    return {name: compared_values(problem.table, scm, name, {}) for name in problem.protected}


def _pair_effect(first: Mapping[str, Any], second: Mapping[str, Any], measures: Mapping[str, Array]) -> PairEffect:
    words = [", ".join(f"{name} = {value}" for name, value in setting.items()) for setting in (first, second)]
    return PairEffect(f"from {words[0]} to {words[1]}", measures["effect"], float(measures["moved"].mean()))


def _judged(problem: Problem, model: Any, answers: Array) -> Judged:  # (n, q)
    y = problem.y.to_numpy()
    if not problem.is_classification:
        return Judged.of_numbers(np.asarray(y, dtype=float), answers)
    both = np.column_stack([1 - answers[:, 0], answers[:, 0]]) if answers.shape[1] == 1 else answers
    return Judged.of_labels(y, both, model.classes_)
