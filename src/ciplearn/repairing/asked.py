"""Any fitted model as one checked function from a frame to numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import CLASSIFICATION, holds_numbers, task_of
from ciplearn._core.errors import InputError
from ciplearn._core.rows import alike
from ciplearn.evaluation.any_model import Foreign, Numbers, Probabilities, check_classes, from_onnx
from ciplearn.evaluation.predictors import Predictor, finite_numbers
from ciplearn.scm.kinds import Array

_ROUNDING = 1e-4  # how far probabilities may sum from one, rounded to six digits as some models do
_TRIED = 50  # rows by which a model is tried out
_SINGLE = 1e-5  # how far answers in single precision may differ with the rows beside them


@dataclass(frozen=True, eq=False)
class Asked:
    """A model with the columns it reads, and the labels where it gives probabilities."""

    model: Any  # what was passed
    foreign: Foreign  # how it is asked; what goes wrong in there is said in one sentence
    inputs: tuple[str, ...]
    kinds: Mapping[str, Any]  # of the labels it reads, as it was trained: an imagined row shows them as categories
    classes: Array | None

    @classmethod
    def of(
        cls, model: Any, table: pd.DataFrame, outcome: str, ignored: Sequence[Any], inputs: Sequence[str] | None
    ) -> Asked:
        """Find out how to ask a model, and try it out on some rows."""
        columns = [column for column in table.columns if column != outcome]
        labels = table[outcome].dropna().unique() if outcome in table.columns else np.array([])
        classifies = outcome in table.columns and task_of(table[outcome]) == CLASSIFICATION
        if isinstance(model, str | Path):
            if not os.path.exists(model):  # unlike a Path's, this one takes every name
                raise InputError(f"The model is the path {str(model)[:80]!r}, and there is no such file; check it.")
            foreign = from_onnx(Path(model), inputs, columns)
            read = foreign.inputs or ()
            classes = _in_order(labels) if classifies else None
        else:
            predictor = Predictor.of(model, columns, inputs, None, ignored)
            read, foreign = predictor.inputs, cls.restored(model, predictor.inputs, {}, None).foreign
            classes = _classes(model, predictor.method, labels, classifies, foreign.name)
        kinds = {name: table[name].dtype for name in columns if not holds_numbers(table[name])}
        asked, rows = cls(model, foreign, read, kinds, classes), table.head(_TRIED)
        # Some of the rows in another order: a row is predicted alike whichever rows stand beside it.
        first, second = asked(rows), asked(rows.iloc[::-2])
        apart = np.abs(first[::-2] - second).max()
        if apart > _SINGLE * np.abs(first).max():
            raise InputError(
                f"{foreign.name} gave two different answers to the same rows, {apart:.3g} apart; pass a model that "
                "draws nothing when it predicts, and reads a row by itself."
            )
        return asked

    def __call__(self, frame: pd.DataFrame) -> Array:  # (n, q)
        """Return numbers: of two labels the probability of the second."""
        # Imagined rows repeat one another, and a model may be slow: of rows that are alike it is asked about one.
        first, like = alike([frame[name] for name in self.inputs], len(frame))
        if 2 * len(first) < len(like):
            return self(frame.iloc[first])[like]
        # Labels that tell rows apart, also those of one row in several worlds: an answer may come in another order.
        shown = self.as_trained(frame[list(self.inputs)]).reset_index(drop=True)
        answer = finite_numbers(self.foreign.answer(shown), self.foreign.name)
        return answer.reshape(len(answer), -1) if self.classes is None else self._probabilities(answer)

    @property
    def width(self) -> int:
        """How many numbers answer a row, as far as labels tell."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    def as_trained(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Show labels in the kind of column that the model was trained on."""
        other = {name: kind for name, kind in self.kinds.items() if name in frame and frame[name].dtype != kind}
        return frame.astype(other) if other else frame.copy()

    @classmethod
    def restored(cls, model: Any, inputs: tuple[str, ...], kinds: Mapping[str, Any], classes: Array | None) -> Asked:
        """Ask a model anew of which all is known."""
        if isinstance(model, str | Path):
            return cls(model, from_onnx(Path(model), inputs, inputs), inputs, kinds, classes)
        method = Predictor.of(model, inputs, inputs, None).method
        ask = model if method == "call" else getattr(model, method)
        name = model.name if isinstance(model, Numbers | Probabilities) else f"The model ({type(model).__name__})"
        return cls(model, Foreign(name, ask, None, inputs), inputs, kinds, classes)

    def _probabilities(self, answer: Array) -> Array:  # (n, q)
        name, classes = self.foreign.name, np.asarray(self.classes)
        if answer.min(initial=0) < -_ROUNDING or answer.max(initial=0) > 1 + _ROUNDING:
            worst = float(answer.flat[np.abs(answer - 0.5).argmax()])
            raise InputError(f"{name} returned {worst:.4g}, which is no probability; return numbers from 0 to 1.")
        if answer.ndim == 1 and len(classes) == 2:
            return answer[:, None]
        if answer.ndim == 1 or answer.shape[1] != len(classes):
            raise InputError(f"{name} returned shape {answer.shape} for {len(classes)} labels; return one per label.")
        sums = answer.sum(axis=1)
        if np.abs(sums - 1).max(initial=0) > _ROUNDING:
            raise InputError(
                f"{name} returned probabilities that sum to {sums[np.abs(sums - 1).argmax()]:.4g}; they must sum to 1."
            )
        return answer[:, 1:] if len(classes) == 2 else answer


def _classes(model: Any, method: str, labels: Array, classifies: bool, name: str) -> Array | None:
    """The labels that columns of probabilities stand for: the model's own, in its own order."""
    if method == "predict_proba":
        own = getattr(model, "classes_", None)
        classes = _in_order(labels) if own is None else np.asarray(own)
        check_classes(name, classes, labels)
        return classes
    if method == "predict" and classifies and (hasattr(model, "classes_") or not holds_numbers(pd.Series(labels))):
        gives = "labels without" if hasattr(model, "classes_") else "no"
        raise InputError(f"{name} gives {gives} probabilities, and the outcome holds labels; pass predict_proba.")
    return _in_order(labels) if method == "call" and classifies else None


def _in_order(labels: Array) -> Array:
    """Labels as a model that names none has learnt them: numbers by size, so that 10 comes after 2."""
    try:
        return np.asarray(sorted(labels))
    except TypeError:
        return np.array(sorted(labels, key=str), dtype=object)
