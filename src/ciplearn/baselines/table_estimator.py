"""Any scikit-learn estimator in place of the network, where no gradient is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from ciplearn._core.columns import CLASSIFICATION, REGRESSION, TableEncoding
from ciplearn._core.errors import InputError, InputTypeError, in_one_sentence
from ciplearn.estimators.tables import read_labels, read_numbers


@dataclass(frozen=True)
class TableEstimator:
    """A fitted scikit-learn estimator behind the encoding of a table."""

    estimator: Any
    encoding: TableEncoding | None  # None where the estimator is a Pipeline: it takes the frame itself
    answer: tuple[int, ...] = ()  # the shape of one row's prediction: () for a number or a label

    @classmethod
    def fitted(cls, estimator: Any, table: pd.DataFrame, y: Any, weights: Any, *, seed: int) -> Self:
        """Fit a clone to a table; random states that the estimator leaves open get the seed."""
        encoding = None if isinstance(estimator, Pipeline) else TableEncoding.of(table, table.columns)
        rows = table if encoding is None else encoding.features(table)
        return cls.fitted_on_rows(estimator, rows, y, weights, encoding, seed=seed)

    @classmethod
    def fitted_on_rows(
        cls, estimator: Any, rows: Any, y: Any, weights: Any, encoding: TableEncoding | None, *, seed: int
    ) -> Self:
        """Fit a clone to rows that are encoded already."""
        own = clone(estimator)
        states = [name for name in own.get_params() if f"__{name}".endswith("__random_state")]
        own.set_params(**{name: seed for name in states if own.get_params()[name] is None})
        target = read_labels(y) if is_classifier(own) else read_numbers(y)
        with in_one_sentence(f"{type(own).__name__} cannot be fitted", "pass another estimator, or other rows"):
            own.fit(rows, target, **_weighted(own, weights))
        return cls(own, encoding, target.shape[1:])

    @property
    def classes_(self) -> np.ndarray:
        """The classes of a classifier, in order."""
        return self.estimator.classes_

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        """Ask the estimator."""
        said = np.asarray(self.estimator.predict(self._rows(table)))
        return said.reshape(len(table), *self.answer)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, table: pd.DataFrame) -> np.ndarray:
        """Ask the estimator for class probabilities, where it has them."""
        return np.asarray(self.estimator.predict_proba(self._rows(table)))

    def _rows(self, table: pd.DataFrame) -> Any:
        return table if self.encoding is None else self.encoding.features(table)


def task_of_estimator(estimator: Any) -> str:
    """Return what an estimator does, or refuse what is no scikit-learn regressor or classifier."""
    if not isinstance(estimator, type) and hasattr(estimator, "get_params"):
        if is_classifier(estimator):
            return CLASSIFICATION
        if is_regressor(estimator):
            return REGRESSION
    raise InputTypeError(
        f"estimator must be a scikit-learn regressor or classifier, got {estimator!r}; pass for example "
        f"HistGradientBoostingRegressor()."
    )


def _weighted(estimator: Any, weights: Any) -> dict[str, Any]:
    if weights is None:
        return {}
    step, last = estimator.steps[-1] if isinstance(estimator, Pipeline) else ("", estimator)
    if not has_fit_parameter(last, "sample_weight"):
        raise InputError(
            f"{type(last).__name__} takes no sample_weight, but weights were passed; leave them out, or pass another "
            f"estimator."
        )
    return {f"{step}__sample_weight" if step else "sample_weight": weights}
