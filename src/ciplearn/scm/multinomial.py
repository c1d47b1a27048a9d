"""Labels from class probabilities, with Gumbel-max counterfactuals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ciplearn._core.errors import InputError
from ciplearn.scm.design import Design
from ciplearn.scm.gumbel import GumbelMax
from ciplearn.scm.kept import kept
from ciplearn.scm.kinds import Array, Categories
from ciplearn.scm.mechanism import Parents
from ciplearn.scm.recipe import NodeSample, Recipe, cloned
from ciplearn.scm.scoring import label_frequencies
from ciplearn.scm.smooth_ridge import SmoothFeatures, SmoothFunction

# Bumps, the widths to choose from, and rows of a smooth regression: its steps cost rows × features × levels.
_CENTRES = 60
_WIDTHS = (0.1, 0.5, 2.0)
_SMOOTH_ROWS = 8000


@dataclass(frozen=True)
class Multinomial(Recipe):
    """V = argmax_k (log p̂_k(pa) + G_k) with p̂ a fitted classifier and G standard Gumbel noise.

    Parameters
    ----------
    classifier : scikit-learn classifier with predict_proba, optional
        Cloned before it is fitted. Default: multinomial logistic regression on standardised parents.
    smooth : bool
        Without a classifier: whether log p̂ bends where the data do, instead of being linear in the parents.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ciplearn import CausalGraph, fit_scm
    >>> from ciplearn.scm import Multinomial
    >>> draw = np.random.default_rng(0)
    >>> sex = draw.choice(["f", "m"], 300)
    >>> job = np.where(draw.random(300) < np.where(sex == "f", 0.7, 0.3), "nurse", "cook")
    >>> rows = pd.DataFrame({"sex": sex, "job": job})
    >>> scm = fit_scm(CausalGraph.from_edges("sex -> job"), rows, mechanisms={"job": Multinomial()}, random_state=0)
    >>> share = scm.do({"sex": "f"}).sample(2000, random_state=0)["job"].eq("nurse").mean()
    >>> bool(0.6 < share < 0.8)
    True
    """

    classifier: Any = None
    smooth: bool = False

    @property
    def label(self) -> str:
        """The classifier's name."""
        if self.classifier is not None:
            return f"multinomial, {type(self.classifier).__name__}"
        return f"multinomial, {'smooth ' if self.smooth else ''}logistic"

    def fit(self, sample: NodeSample, generator: Generator) -> GumbelMax:
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
        probabilities = self._probabilities(sample, codes, len(base), generator)
        return GumbelMax(sample.kind.levels, probabilities, sample.node)

    def _probabilities(self, sample: NodeSample, codes: Array, levels: int, generator: Generator) -> Any:
        matrix = sample.matrix
        if self.classifier is not None:
            classifier = cloned(self.classifier, "classifier", "predict_proba", "LogisticRegression")
            classifier.fit(matrix, codes)
            return ClassifierProbabilities(sample.design, classifier, levels)
        if self.smooth:
            few = np.sort(generator.permutation(sample.n)[:_SMOOTH_ROWS])
            features = sample.smoother.features(np.eye(levels)[codes], _WIDTHS, _CENTRES)
            matrix, codes = matrix[few], codes[few]
        else:
            features = SmoothFeatures.of(matrix, 1.0, 0)
        rows = features(matrix)
        spread = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
        with warnings.catch_warnings():
            # A regression that is stopped early is judged on held-out rows like any other.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = LogisticRegression(max_iter=200 if self.smooth else 1000).fit(rows / spread, codes)
        slope, level = fitted.coef_.T, fitted.intercept_
        if slope.shape[1] == 1:
            # Two levels share one line: the first has 0.
            slope, level = np.hstack([np.zeros_like(slope), slope]), np.append(0.0, level)
        function = features.function(slope / spread[:, None], level)
        return SmoothProbabilities(sample.design, function, fitted.classes_.astype(np.int64), levels)


@kept
@dataclass(frozen=True)
class SmoothProbabilities:
    """p̂(pa) = softmax f(pa) over the levels that the fit has met, 0 for all others."""

    design: Design
    function: SmoothFunction  # one output per level that was met
    met: Array  # codes of those levels
    levels: int

    def __call__(self, parents: Parents) -> Array:  # (n, K)
        """Return the probabilities of some rows."""
        scores = self.function(self.design(parents))
        table = np.zeros((len(scores), self.levels))
        table[:, self.met] = softmax(scores, axis=1) if len(scores) else 0.0
        return table


@dataclass(frozen=True)
class ClassifierProbabilities:
    """p̂(pa) of all levels, whichever of them a scikit-learn classifier has met."""

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
