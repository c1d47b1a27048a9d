"""`Repaired`: a model with a knob from what it says to what is the same in every world."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.metaestimators import available_if
from tqdm import tqdm

from ciplearn._core.arguments import non_negative, several, share
from ciplearn._core.columns import checked_table
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import FarOutsideWarning, InputError
from ciplearn.causal import Verdict
from ciplearn.estimators.tables import far_outside
from ciplearn.evaluation.any_model import in_a_sentence
from ciplearn.evaluation.conclusion import Floor
from ciplearn.evaluation.counterfactual_rows import row_chunks
from ciplearn.repairing.asked import Asked
from ciplearn.repairing.distilled import Distilled
from ciplearn.repairing.formula import BlindEnd, Engine
from ciplearn.repairing.kept import save_repaired
from ciplearn.repairing.measured import Conformal, Curve
from ciplearn.repairing.worlds import Worlds
from ciplearn.scm.kinds import Array, Scalar

_UNMEASURED = (
    "No rows have measured this model's intervals and sets, which need an outcome of one number or of labels; "
    "pass rows on which nothing was trained to calibrated()."
)


def _has_classes(repaired: Repaired) -> bool:
    return repaired.asked.classes is not None


@dataclass(frozen=True, eq=False, repr=False)
class Repaired:
    """A fitted model, repaired: see `repair`.

    Attributes
    ----------
    strength : float
        γ of the formula: 0 is the model itself, infinity the strictly invariant predictor.
    rests_on : "formula" or "correction"
    floor : Floor or None
        What a strict prediction under one causal model still moves under another of as many rows; None where the causal
        model is known.
    notes : tuple of str
        What to know about it, a sentence each.
    curve : DataFrame
        What each strength costs and buys on rows of the table, see `frontier`.

    Examples
    --------
    >>> from ciplearn import datasets, repair
    >>> world = datasets.applicants()
    >>> people = world.sample(400, random_state=0)
    >>> repaired = repair(lambda frame: frame["hours"], people, scm=world, outcome="income", protected="sex")
    >>> repaired.at(max_effect=1.5).strength
    3.0
    """

    asked: Asked
    worlds: Worlds
    engine: Engine
    measured: Curve
    outcome: str
    strength: float = math.inf
    rests_on: str = "formula"
    floor: Floor | None = None
    notes: tuple[str, ...] = ()
    conformal: Conformal | None = None
    table: pd.DataFrame | None = None

    def calibrated(self, rows: pd.DataFrame) -> Self:
        """Return this predictor with intervals and sets of other rows, with outcomes, on which nothing was trained."""
        if self.outcome not in checked_table(rows, "rows").columns:
            raise InputError(f"The rows lack the outcome {self.outcome!r}, which intervals are measured by; add it.")
        rows, strict = rows[rows[self.outcome].notna()], self.strict()
        ask = partial(strict.numbers if self.asked.classes is None else strict.predict_proba, rows)
        truth = rows[self.outcome].to_numpy() if self.asked.classes is not None else Scalar().read(rows, self.outcome)
        return replace(self, conformal=Conformal.of(truth, ask, self.asked.classes))

    @property
    def classes_(self) -> Array:
        """The labels that columns of probabilities stand for; a predictor of numbers has none."""
        if self.asked.classes is None:
            raise AttributeError("A predictor of numbers has no classes.")
        return self.asked.classes

    @property
    def verdict_(self) -> Verdict | None:
        """What the graph says about the roles, where the model was trained here."""
        return getattr(self.asked.model, "verdict_", None)

    @property
    def route_(self) -> str:
        """The name of the route."""
        return "repair"

    @property
    def is_blind(self) -> bool:
        """Whether it gives up what labels and counts that A moves tell of a row, at least in part."""
        return isinstance(self.engine, BlindEnd) and self.strength > self.engine.seeing.sees_to

    @property
    def inputs_(self) -> tuple[str, ...]:
        """The columns that are read: those of the model, A, and what comes between."""
        return self.worlds.columns

    @cached_property
    def encoding_(self) -> TableEncoding:
        """The labels and the range of each column that is read, by which what is odd in new rows is told."""
        drawn = self.worlds.encoding
        trained = getattr(self.asked.model, "encoding_", drawn)
        columns = {column.name: column for column in (*drawn.columns, *trained.columns)}
        return TableEncoding(tuple(columns[name] for name in self.inputs_ if name in columns))

    def _checked(self, X: Any) -> pd.DataFrame:
        rows = self.worlds.checked(X)
        # One of ours says so itself.
        if not hasattr(self.asked.model, "encoding_"):
            for name, (count, value) in self.encoding_.far(rows).items():
                warnings.warn(f"{far_outside(self.encoding_, name, count, value)}.", FarOutsideWarning, stacklevel=4)
        return rows

    @property
    def curve(self) -> pd.DataFrame:
        """What each strength costs and buys on rows of the table."""
        return self.measured.table

    def at(
        self,
        strength: float | None = None,
        *,
        max_effect: float | None = None,
        vcf: float | None = None,
        rows: pd.DataFrame | None = None,
    ) -> Self:
        """Return the predictor at another strength; nothing is trained.

        Parameters
        ----------
        strength : float
            γ.
        max_effect : float
            The least strength at which no two values of a protected variable move predictions by more on average.
        vcf : float
            The least strength at which so large a share of the model's own variance of counterfactuals is left.
        rows : DataFrame, optional
            On which these are measured; by default rows of the table that `repair` was given.
        """
        if sum(goal is not None for goal in (strength, max_effect, vcf)) != 1:
            raise InputError("at takes one of strength, max_effect and vcf; name one of them.")
        if strength is None:
            curve = self.measured if rows is None else self._measured_on(rows)
            if max_effect is not None:
                strength = curve.strength_for("effect", non_negative(max_effect, "max_effect"))
            else:
                strength = curve.strength_for("left", share(vcf, "vcf"))
        elif not (isinstance(strength, float) and strength == math.inf):
            strength = non_negative(strength, "strength")
        return replace(self, strength=strength)

    def strict(self) -> Self:
        """Return the strictly invariant predictor, E[m | u]."""
        return replace(self, strength=math.inf)

    def frontier(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Measure every strength on rows: ``strength``, ``change``, ``vcf``, ``left``, ``effect``."""
        return self._measured_on(rows).table

    def along(self, rows: pd.DataFrame, strengths: Sequence[float]) -> Array:  # (n, strengths, q)
        """Return the predictions at several strengths; the model is asked about each world once."""
        known, parts = self._checked(rows), []
        strengths = [self.at(strength).strength for strength in several(strengths, "strengths")]
        if not strengths:
            raise InputError("strengths names none; pass for example [0, 1].")
        for places in row_chunks(len(known), 1 + len(self.worlds.levels)):
            knob = self.engine.knob(known.iloc[places])
            parts.append(np.stack([knob.at(strength) for strength in strengths], axis=1))
        return np.concatenate(parts) if parts else np.empty((0, len(strengths), self.asked.width))

    def _measured_on(self, rows: pd.DataFrame) -> Curve:
        known = self._checked(rows)
        if known.empty:
            raise InputError("There are no rows to measure on; pass at least one.")
        return Curve.of(self.engine, self.worlds, rows.assign(**known))

    def numbers(self, X: Any) -> Array:  # (n, q)
        """Return predictions as numbers: of two labels the probability of the second."""
        rows = self._checked(X)
        chunks = list(row_chunks(len(rows), self.engine.calls if self.strength else 1))
        if not chunks:
            return np.empty((0, self.asked.width))
        # disable=None: quiet where nobody watches.
        bar = tqdm(chunks, desc="worlds", unit="part", disable=None if len(chunks) > 1 else True, leave=False)
        return np.concatenate([self._of(rows.iloc[places]) for places in bar])

    def _of(self, rows: pd.DataFrame) -> Array:  # (n, q)
        return self.asked(rows) if self.strength == 0 else self.engine.knob(rows).at(self.strength)

    def predict(self, X: Any) -> Array:
        """Return one prediction per row: a number, several, or the likeliest label."""
        if self.asked.classes is not None:
            return np.asarray(self.classes_)[self.predict_proba(X).argmax(axis=1)]
        numbers = self.numbers(X)
        return numbers[:, 0] if numbers.shape[1] == 1 else numbers

    @available_if(_has_classes)
    def predict_proba(self, X: Any) -> Array:  # (n, classes)
        """Return one probability per label."""
        numbers = np.clip(self.numbers(X), 0.0, 1.0)
        return np.column_stack([1 - numbers[:, 0], numbers[:, 0]]) if numbers.shape[1] == 1 else numbers

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:  # (n, 2)
        """Return an interval per row that holds the outcome so often, and is the same in every world.

        It lies around the strict predictor, whatever the strength. Coverage is exact on average over rows if the model
        was not trained on the rows that measure it: those of `repair`, or of `calibrated`.
        """
        if self.asked.classes is None and self.conformal is None:
            raise InputError(_UNMEASURED)
        strict = None if self.asked.classes is not None else self.strict().numbers(X)
        if strict is None or self.conformal is None or strict.shape[1] > 1:
            raise InputError("An interval needs an outcome of one number; for labels use predict_set.")
        radius = self.conformal.radius(coverage)
        return np.hstack([strict - radius, strict + radius])

    def predict_set(self, X: Any, coverage: float = 0.9) -> list[tuple[Any, ...]]:
        """Return the labels per row that hold the outcome so often, and are the same in every world; see above.

        A set is empty where no label is likely enough.
        """
        if self.asked.classes is not None and self.conformal is None:
            raise InputError(_UNMEASURED)
        if self.asked.classes is None or self.conformal is None:
            raise InputError("A set needs an outcome of labels; for numbers use predict_interval.")
        radius = self.conformal.radius(coverage)
        inside = 1 - self.strict().predict_proba(X) <= radius
        return [tuple(self.classes_[row]) for row in inside]

    def distil(self, learner: Any, rows: pd.DataFrame | None = None) -> Distilled:
        """Train a learner to say what this predictor says, for one evaluation per row.

        Parameters
        ----------
        learner : scikit-learn estimator
            A regressor, or for labels a classifier that takes ``sample_weight``; cloned.
        rows : DataFrame, optional
            By default those that `repair` was given; each is shown in other worlds, too.
        """
        shown = self.table if rows is None else rows
        if shown is None:
            raise InputError("A repaired model that was loaded keeps no rows; pass rows=.")
        self._checked(shown)
        advice = "pass a scikit-learn regressor, for labels a classifier that takes sample_weight"
        with in_a_sentence(f"The learner ({type(learner).__name__}) learns nothing from this model", advice):
            return Distilled.of(self, learner, shown)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write it to a folder, as data that is never run; see `load_repaired`."""
        return save_repaired(self, folder, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"Repaired({type(self.asked.model).__name__}, strength={self.strength:g}, rests on the {self.rests_on})"
