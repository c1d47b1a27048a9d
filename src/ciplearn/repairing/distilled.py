"""A repaired model taught to a learner of one evaluation per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from ciplearn._core.columns import checked_table
from ciplearn._core.errors import InputError
from ciplearn.evaluation.any_model import in_a_sentence
from ciplearn.repairing.formula import Engine
from ciplearn.repairing.measured import Curve
from ciplearn.scm.kinds import Array

if TYPE_CHECKING:
    from ciplearn.repairing.repaired import Repaired

# Rows that teach, and rows that judge; worlds that each teaching row is shown in beside its own.
_TEACHING, _JUDGING, _WORLDS = 5000, 500, 4


@dataclass(frozen=True, eq=False)
class Distilled:
    """A learner that says in one evaluation about what a repaired model says in many."""

    model: Any  # trained
    inputs_: tuple[str, ...]
    classes_: Array | None
    vcf: float = np.nan  # its own variance of counterfactuals, on rows that did not teach it
    left: float = np.nan  # that as a share of the original model's
    change: float = np.nan  # mean squared distance from what it was taught, on those rows

    @classmethod
    def of(cls, repaired: Repaired, learner: Any, rows: pd.DataFrame) -> Distilled:
        """Teach rows and their other worlds, and measure on the last of the rows."""
        if len(rows) < 20:
            raise InputError(f"{len(rows)} rows are too few to learn from; pass more.")
        judged = min(_JUDGING, len(rows) // 4)
        teaching, judging = rows.iloc[: len(rows) - judged].head(_TEACHING), rows.iloc[-judged:]
        worlds = repaired.worlds
        units = worlds.units(teaching, draws=1)
        law = worlds.levels.some(_WORLDS)
        imagined = [
            worlds.under(units, worlds.setting(law.values.iloc[[k]]))[list(worlds.columns)] for k in range(len(law))
        ]
        shown = repaired.asked.as_trained(pd.concat([teaching[list(worlds.columns)], *imagined], ignore_index=True))
        answers = repaired.numbers(shown)
        model = clone(learner)
        if repaired.asked.classes is None:
            model.fit(shown, answers[:, 0] if answers.shape[1] == 1 else answers)
        else:
            chances = np.column_stack([1 - answers, answers]) if answers.shape[1] == 1 else answers
            labels = np.repeat(np.asarray(repaired.asked.classes), len(shown))
            many = pd.concat([shown] * chances.shape[1], ignore_index=True)
            model.fit(many, labels, sample_weight=chances.T.ravel())
        distilled = cls(model, worlds.columns, repaired.asked.classes)
        vcf = float(Curve.of(_OneEvaluation(distilled, repaired), worlds, judging).table["vcf"].iloc[-1])
        own = repaired.measured.table["vcf"].iloc[0]
        change = np.square(distilled.numbers(judging) - repaired.numbers(judging)).sum(axis=1).mean()
        return replace(distilled, vcf=vcf, left=float(vcf / own) if own > 0 else 0.0, change=float(change))

    def numbers(self, X: pd.DataFrame) -> Array:  # (n, q)
        """Return predictions as numbers: of two labels the probability of the second."""
        if self.classes_ is None:
            return self.predict(X).astype(float).reshape(len(X), -1)
        chances = np.zeros((len(X), len(self.classes_)))
        order = [list(self.classes_).index(label) for label in self.model.classes_]
        chances[:, order] = self._said(X, self.model.predict_proba)
        return chances[:, 1:] if chances.shape[1] == 2 else chances

    def predict(self, X: pd.DataFrame) -> Array:
        """Return one prediction per row."""
        return self._said(X, self.model.predict)

    def _said(self, X: Any, ask: Callable[[pd.DataFrame], Any]) -> Array:
        rows = checked_table(X, "X")
        if missing := [name for name in self.inputs_ if name not in rows.columns]:
            raise InputError(f"The rows lack {missing[0]!r}; the learner reads {', '.join(self.inputs_)}, so add it.")
        with in_a_sentence("The learner cannot predict these rows", "pass rows like those that taught it"):
            said = np.asarray(ask(rows[list(self.inputs_)]))
        if said.dtype.kind in "fc" and not np.isfinite(said).all():
            raise InputError("The learner answers NaN or infinity; pass one that predicts finite numbers.")
        return said

    @available_if(lambda distilled: distilled.classes_ is not None)
    def predict_proba(self, X: pd.DataFrame) -> Array:  # (n, classes)
        """Return one probability per label."""
        numbers = self.numbers(X)
        return np.column_stack([1 - numbers, numbers]) if numbers.shape[1] == 1 else numbers


@dataclass(frozen=True, eq=False)
class _OneEvaluation(Engine):
    """The distilled learner in the place of a family of predictors: it has one strength."""

    distilled: Distilled
    repaired: Repaired

    calls = 1

    def knob(self, rows: pd.DataFrame) -> _Fixed:
        return _Fixed(self.distilled.numbers(self.repaired.asked.as_trained(rows)))


@dataclass(frozen=True, eq=False)
class _Fixed:
    answers: Array

    def at(self, gamma: float) -> Array:
        return self.answers
