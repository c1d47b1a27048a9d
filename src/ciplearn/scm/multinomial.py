"""Labels by the Gumbel-max trick, from known or fitted probabilities: counterfactuals for labels [oberst2019]."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ciplearn._core.errors import InputError
from ciplearn.scm.kinds import Array, Categories, kept
from ciplearn.scm.mechanism import Design, Mechanism, MechanismRecipe, NodeSample, Parents, cloned
from ciplearn.scm.smooth_ridge import SmoothFeatures, SmoothFunction

# Probabilities are floored here, so that a label the model thinks impossible still has finite noise.
_FLOOR = 1e-12

# Bumps, the widths to choose from, and rows of a smooth regression: its steps cost rows × features × levels.
_CENTRES, _WIDTHS, _SMOOTH_ROWS = 60, (0.1, 0.5, 2.0), 8000

# Below this share of its largest value, the spread of a column is rounding.
_CONSTANT = 1e-9


@kept
@dataclass(frozen=True)
class GumbelMax(Mechanism):
    """V = argmax_k (log p_k(pa) + G_k) with independent standard Gumbel noise G_1, ..., G_K.

    P(V = k | pa) = p_k(pa). Given V = v, the largest of the K sums is standard Gumbel and sits at v, the others are
    Gumbel with location log p_k cut off below it: exact posterior draws, no rejection. A counterfactual keeps the label
    unless some other label became relatively more likely.

    ``probabilities``: a function of the parents by name that returns p, shape (n, K); for a node without parents also a
    plain list.

    >>> import numpy as np
    >>> from ciplearn.scm import GumbelMax
    >>> job = GumbelMax(["cook", "nurse"], [0.25, 0.75])
    >>> job.evaluate({}, np.array([[0.0, 0.0], [2.0, 0.0]])).tolist()
    ['nurse', 'cook']
    """

    levels: Any
    probabilities: Callable[[Parents], Any] | Any
    node: str = "the node"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(Categories(self.levels).levels))

    @property
    def kind(self) -> Categories:
        """The kind of the node."""
        return Categories(self.levels)

    def draw(self, n: int, generator: Generator) -> Array:
        """G, shape (n, K)."""
        return generator.gumbel(size=(n, len(self.levels)))

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """Return the label of the largest sum."""
        return self.kind.labels[(self.log_probabilities(parents, noise.shape[0]) + noise).argmax(axis=1)]

    def recover(self, parents: Parents, value: Array) -> Array | None:
        """Many noises give the same label."""
        return None

    def posterior(self, parents: Parents, value: Array, generator: Generator) -> Array:
        """Top-down: the maximum first, then the others below it."""
        n = value.shape[0]
        logs = self.log_probabilities(parents, n)
        codes = self.kind.codes(value, self.node)
        # Σ_k p_k = 1, so the maximum of the sums is Gumbel with location log 1 = 0, whatever its place.
        top = generator.gumbel(size=(n, 1))
        free = logs + generator.gumbel(size=logs.shape)
        sums = -np.logaddexp(-top, -free)  # Gumbel cut off at top
        sums[np.arange(n), codes] = top[:, 0]
        return np.asarray(sums - logs)

    def log_density(self, parents: Parents, value: Array) -> Array:
        """Return log p_v(pa)."""
        n = value.shape[0]
        return np.asarray(self.log_probabilities(parents, n)[np.arange(n), self.kind.codes(value, self.node)])

    def log_probabilities(self, parents: Parents, n: int) -> Array:  # (n, K)
        """Return log p, checked and normalised."""
        given = self.probabilities(parents) if callable(self.probabilities) else self.probabilities
        table = np.asarray(given, dtype=np.float64)
        if table.ndim == 1:
            table = np.broadcast_to(table, (n, table.size))
        if table.shape != (n, len(self.levels)):
            raise InputError(
                f"The probabilities of {self.node} must have shape {(n, len(self.levels))}, one column per level, got "
                f"{table.shape}; return one row for each row of the parents."
            )
        total = table.sum(axis=1, keepdims=True)
        if not (np.isfinite(table).all() and (table >= 0).all() and np.allclose(total, 1, atol=1e-6)):
            raise InputError(
                f"The probabilities of {self.node} must be non-negative and sum to 1 in every row, but sums from "
                f"{total.min():.3g} to {total.max():.3g} were received; normalise them."
            )
        return np.log(np.maximum(table / total, _FLOOR))


@dataclass(frozen=True)
class Multinomial(MechanismRecipe):
    """V = argmax_k (log p̂_k(pa) + G_k) with p̂ a fitted classifier and G standard Gumbel noise.

    ``classifier``: of scikit-learn, with predict_proba, cloned before it is fitted; by default multinomial logistic
    regression on standardised parents. ``smooth``: whether log p̂ of the default bends where the data do, instead of
    being linear in the parents.

    >>> from ciplearn.scm import Multinomial
    >>> Multinomial(smooth=True).label
    'multinomial, smooth logistic'
    """

    classifier: Any = None
    smooth: bool = False

    @property
    def label(self) -> str:
        """The classifier's name."""
        if self.classifier is not None:
            return f"multinomial, {type(self.classifier).__name__}"
        return f"multinomial, {'smooth ' if self.smooth else ''}logistic"

    def fit(self, sample: NodeSample, generator: Generator, like: Any = None) -> GumbelMax:
        """Fit the classifier; levels that these rows lack get a vanishing probability."""
        if not isinstance(sample.kind, Categories):
            why = f"{sample.node} holds numbers, which a multinomial cannot make"
            raise InputError(f"{why}; convert the column to category dtype, or use AdditiveNoise for this node.")
        codes = sample.kind.codes(sample.target, sample.node)
        probabilities: Any
        if len(np.unique(codes)) == 1:
            probabilities = sample.kind.frequencies(sample.target, sample.node)
        elif self.classifier is None:
            probabilities = self._smooth_probabilities(sample, codes, len(sample.kind.levels), generator)
        else:
            classifier = cloned(self.classifier, "classifier", "predict_proba", "LogisticRegression")
            classifier.fit(sample.matrix, codes)
            probabilities = _ClassifierProbabilities(sample.design, classifier, len(sample.kind.levels))
        return GumbelMax(sample.kind.levels, probabilities, sample.node)

    def _smooth_probabilities(
        self, sample: NodeSample, codes: Array, levels: int, generator: Generator
    ) -> SmoothProbabilities:
        matrix = sample.matrix
        if self.smooth:
            few = np.sort(generator.permutation(sample.n)[:_SMOOTH_ROWS])
            features = sample.smoother.features(np.eye(levels)[codes], _WIDTHS, _CENTRES)
            matrix, codes = matrix[few], codes[few]
        else:
            features = SmoothFeatures.of(matrix, 1.0, 0)
        rows = features(matrix)
        spread = rows.std(axis=0)
        # A column that is constant but for rounding, a level that these rows lack say, would drown all others.
        spread = np.where(spread > _CONSTANT * np.abs(rows).max(axis=0), spread, 1.0)
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
        return self.design.looked_up(self._of_matrix, parents)(slice(None))

    def _of_matrix(self, matrix: Array) -> Array:
        table = np.zeros((len(matrix), self.levels))
        table[:, self.met] = softmax(self.function(matrix), axis=1) if len(matrix) else 0.0
        return table


@dataclass(frozen=True)
class _ClassifierProbabilities:
    """p̂(pa) of all levels, whichever of them a scikit-learn classifier has met."""

    design: Design
    classifier: Any
    levels: int

    def __call__(self, parents: Parents) -> Array:  # (n, K)
        return self.design.looked_up(self._of_matrix, parents)(slice(None))

    def _of_matrix(self, matrix: Array) -> Array:
        table = np.zeros((len(matrix), self.levels))
        if len(matrix):
            table[:, np.asarray(self.classifier.classes_, dtype=np.int64)] = self.classifier.predict_proba(matrix)
        return table
