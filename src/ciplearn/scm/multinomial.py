"""Labels from class probabilities, with Gumbel-max counterfactuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.scm.design import Design
from ciplearn.scm.gumbel import GumbelMax
from ciplearn.scm.kinds import Array, Categories
from ciplearn.scm.mechanism import Mechanism, Parents
from ciplearn.scm.recipe import NodeSample, Recipe
from ciplearn.scm.scoring import label_frequencies


@dataclass(frozen=True)
class Multinomial(Recipe):
    """V = argmax_k (log p̂_k(pa) + G_k) with p̂ a fitted classifier and G standard Gumbel noise.

    Parameters
    ----------
    classifier : scikit-learn classifier with predict_proba, optional
        Cloned before it is fitted. Default: multinomial logistic regression on standardised parents.
    """

    classifier: Any = None

    @property
    def label(self) -> str:
        """The classifier's name."""
        return f"multinomial, {'logistic' if self.classifier is None else type(self.classifier).__name__}"

    def fit(self, sample: NodeSample, generator: Generator) -> Mechanism:
        """Fit the classifier; levels that these rows lack get a vanishing probability."""
        if not isinstance(sample.kind, Categories):
            raise InputError(
                f"{sample.node} holds numbers, which a multinomial cannot make; convert the column to category dtype, "
                "or use AdditiveNoise for this node."
            )
        codes = sample.kind.codes(sample.target, sample.node)
        base = label_frequencies(sample.kind, sample.target, sample.node)
        if len(np.unique(codes)) < 2:
            return GumbelMax(sample.kind.levels, base, sample.node)
        classifier = default_classifier() if self.classifier is None else self._cloned()
        classifier.fit(sample.matrix(), codes)
        probabilities = ClassProbabilities(sample.design, classifier, len(sample.kind.levels))
        return GumbelMax(sample.kind.levels, probabilities, sample.node)

    def _cloned(self) -> Any:
        if not (hasattr(self.classifier, "fit") and hasattr(self.classifier, "predict_proba")):
            raise InputTypeError(
                f"classifier must have fit and predict_proba, got {type(self.classifier).__name__}; pass for example "
                "LogisticRegression()."
            )
        return clone(self.classifier)


def default_classifier() -> Pipeline:
    """Multinomial logistic regression."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


@dataclass(frozen=True)
class ClassProbabilities:
    """p̂(pa) of all levels, whichever of them the classifier has met."""

    design: Design
    classifier: Any
    levels: int

    def __call__(self, parents: Parents) -> Array:  # (n, K)
        """Return the probabilities of some rows."""
        matrix = self.design(parents)
        table = np.zeros((len(matrix), self.levels))
        if len(matrix):
            table[:, np.asarray(self.classifier.classes_, dtype=np.int64)] = self.classifier.predict_proba(matrix)
        return table
