"""`CIPClassifier`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from torch import Tensor

from ciplearn._core.column_sums import ColumnSum
from ciplearn._core.columns import CategoryColumn, number_classes
from ciplearn._core.errors import InputError
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.tables import read_labels
from ciplearn.kernels import Gaussian
from ciplearn.learning import BinaryCrossEntropy, CrossEntropy, Objective


class CIPClassifier(ClassifierMixin, CIPEstimator):
    """Classification that would have said the same had the protected variables been different.

    Minimises cross-entropy + gamma · scale · penalty(p̂, right | given), where p̂ are the class probabilities. Parameters
    and attributes: see `CIPRegressor`; also ``classes_``.

    Examples
    --------
    >>> from ciplearn import CausalGraph, CIPClassifier, datasets
    >>> people = datasets.applicants().sample(200, random_state=0)
    >>> y = people.pop("income") > 43
    >>> graph = CausalGraph.from_edges("sex -> training, sex -> granted, training -> granted")
    >>> model = CIPClassifier(graph=graph, outcome="granted", protected=["sex"], gamma=1, epochs=5, random_state=0)
    >>> model.fit(people, y).predict_proba(people).shape
    (200, 2)
    >>> model.classes_
    array([False,  True])
    """

    def predict_proba(self, X: Any, tensors: Sequence[Any] = ()) -> np.ndarray:
        """Return class probabilities, shape (n, classes); only the inputs' columns are needed."""
        output = self._output(X, tensors)
        probabilities = self._objective().prediction(output).cpu().numpy().astype(float)
        if len(self.classes_) == 2:
            return np.column_stack([1 - probabilities[:, 0], probabilities[:, 0]])
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: Any, tensors: Sequence[Any] = ()) -> np.ndarray:
        """Return the most probable classes."""
        best = self.predict_proba(X, tensors).argmax(axis=1)
        return self.classes_[best]

    def _read_target(self, y: Any) -> np.ndarray:
        return read_labels(y)

    def _learn_target(self, target: np.ndarray) -> None:
        self.classes_ = np.unique(target)
        if len(self.classes_) < 2:
            raise InputError(
                f"The target has only one class, got {str(self.classes_[0])!r} in all {len(target)} rows; "
                f"pass rows of at least two classes."
            )

    def _learn_summed_target(self, outcome: ColumnSum) -> None:
        column = outcome.encoding()
        if isinstance(column, CategoryColumn):
            self._learn_target(np.array(column.levels))
            return
        if outcome.has_many_values:
            raise InputError(
                f"The target {outcome.name!r} has more than {len(outcome.values) - 1} different numbers; name it among "
                f"the categories, or use CIPRegressor."
            )
        self._learn_target(number_classes(np.array(sorted(outcome.values))))

    def _encode_target(self, target: np.ndarray) -> Tensor:
        return torch.from_numpy(np.searchsorted(self.classes_, target))

    def _outcome(self, target: Tensor) -> tuple[Tensor, float]:
        shares = target.bincount(minlength=len(self.classes_)) / len(target)
        entropy = float(-torch.xlogy(shares, shares).sum())
        certain = torch.nn.functional.one_hot(target, len(self.classes_)).float()
        return certain[:, 1:] if len(self.classes_) == 2 else certain, entropy

    def _output_units(self) -> tuple[int, None, None]:
        return 1 if len(self.classes_) == 2 else len(self.classes_), None, None

    def _constant_output(self, target: Tensor) -> Tensor:
        shares = target.bincount(minlength=len(self.classes_)) / len(target)
        return torch.logit(shares[1:])[None] if len(self.classes_) == 2 else shares.log()[None]

    def _prediction_kernel(self) -> Gaussian:
        # Wider, and it sees little but means; much narrower, and it bars the way from the constant that training starts
        # at, because it punishes any spread that chance correlates.
        return Gaussian(0.3)

    def _objective(self) -> Objective:
        return BinaryCrossEntropy() if len(self.classes_) == 2 else CrossEntropy(len(self.classes_))
