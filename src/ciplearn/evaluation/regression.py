"""What S leaves of the two sides of a test, by kernel ridge whose kernel and ridges leave-one-out error chooses."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from sklearn.ensemble import ExtraTreesRegressor
from torch import Tensor

from ciplearn.evaluation.encoding import Variable
from ciplearn.kernels import Categorical, Gaussian, Kernel, Laplace, Linear
from ciplearn.kernels.combined import Sum, mixed_kernel
from ciplearn.kernels.features import Projection
from ciplearn.kernels.ridge import LeftOut, eigenspace, eigh, rest_of

# Rows on which kernels compete; the winner then sees all rows.
_TRIAL_ROWS = 500

# Rows that are mapped to features at a time.
_ROWS_AT_ONCE = 1024

# Ridges as shares of the trace, from almost interpolating to almost constant, two per decade.
_RIDGES = 10.0 ** torch.arange(-7, 0.5, 0.5, dtype=torch.float64)

# The ridge used is the last of these parts of the ridge that predicts best which leaves residuals some freedom.
_UNDERSMOOTHING = (0.5, 0.2, 0.1)
_MOST_FREEDOM = 0.7

# Multiples of the median distance.
_SMOOTH = (0.2, 0.5, 1.2)
_ROUGH = (0.3, 2.0)

# Columns of S from which on some may be irrelevant.
_MANY_COLUMNS = 3

# Directions of a feature space that carry less than this share of its variance are left out.
_NEGLIGIBLE = 2e-3
_DIRECTIONS = 10
_WEIGHTS = 6


def tie(n: int) -> float:
    """By how much of itself an error may be larger and still count as equal: a bias too small to look like dependence.

    The product of two biases that are each this share of the noise's variance is a fifth of a standard error.
    """
    return 0.2 / n**0.5


def landmarks_for(n: int) -> int:
    """How many of n rows span a feature space: all of a few, and a number that keeps cost near linear in many."""
    return min(n, max(300, 3 * int(n**0.5)))


def features_of(kernel: Kernel, rows: Tensor, generator: np.random.Generator) -> Tensor:  # (n, d) -> (n, m)
    """Features Φ with ΦΦᵀ the Gram matrix, projected on what a uniform sample of the rows spans."""
    n = rows.shape[0]
    landmarks = rows[torch.as_tensor(np.sort(generator.choice(n, landmarks_for(n), replace=False)))]
    projection = Projection(kernel, landmarks)
    # Some rows at a time: a whole matrix would be held several times over.
    return torch.cat([projection(part) for part in rows.split(_ROWS_AT_ONCE)])


@dataclass(frozen=True)
class Basis:
    """The eigenvectors U and eigenvalues e of a Gram matrix K = U diag(e) Uᵀ, or of its Nyström approximation."""

    vectors: Tensor  # (n, m)
    values: Tensor  # (m,)

    @classmethod
    def of(cls, kernel: Kernel, rows: Tensor, generator: np.random.Generator) -> Self:  # (n, d)
        """Decompose; more rows than landmarks are projected on a uniform sample of them."""
        if landmarks_for(len(rows)) == len(rows):
            values, vectors = eigenspace(kernel.gram(rows, rows))
            return cls(vectors, values)
        features = features_of(kernel, rows, generator)
        values, vectors = eigenspace(features.T @ features)
        return cls(features @ (vectors / values.sqrt()), values)

    @cached_property
    def scores(self) -> Tensor:  # (n, m)
        """Z = U diag(√e): the rows of a linear regression with K = Z Zᵀ."""
        return self.vectors * self.values.sqrt()

    @cached_property
    def squares(self) -> Tensor:  # (n, m)
        """The squared entries of U, which weigh leverages."""
        return self.vectors.square()

    def freedom(self, loadings: Tensor) -> Tensor:  # (k,) -> (k,)
        """Degrees of freedom tr H at each nλ."""
        return (self.values[:, None] / (self.values[:, None] + loadings)).sum(dim=0)

    def best_ridges(self, targets: Tensor) -> tuple[Tensor, Tensor]:  # (n, q) -> (q,), (q,)
        """Return nλ per target with the smallest leave-one-out error, or the largest nλ that does as well; its error.

        Ridges that leave residuals too little freedom do not compete: without residuals there is nothing to test.
        """
        n = len(targets)
        loadings = _RIDGES * self.values.sum()
        loadings = loadings[(self.freedom(loadings) <= _MOST_FREEDOM * n) | (loadings == loadings[-1])]
        table = LeftOut(self.scores, self.values, loadings).errors(targets, self.scores.T @ targets)  # (ridges, q)
        as_good = table <= table.min(dim=0).values * (1 + tie(n))
        places = torch.arange(len(loadings))[:, None].expand_as(table)
        place = torch.where(as_good, places, -1).max(dim=0).values
        return loadings[place], table.gather(0, place[None])[0]


@dataclass(frozen=True)
class Regression:
    """Ridge regression T ≈ H T with H = U diag(e / (e + nλ)) Uᵀ, one ridge per target.

    The ridge is a tenth of the one that predicts best. That one balances bias and variance of a prediction; here
    variance does no harm, while the biases of two regressions multiply and look like dependence.
    """

    basis: Basis  # of the kernel with the smallest leave-one-out error
    loadings: Tensor  # (q,): nλ per target
    targets: Tensor  # (n, q)
    # (q,): degrees of freedom per landmark at the ridge that predicts best, near one where rows are too few for S
    wanted: Tensor
    mixed: float  # how many columns of numbers the kernel takes together

    @classmethod
    def of(cls, targets: Tensor, menu: Menu) -> Self:  # (n, q)
        """Choose the kernel on a sample of the rows and the ridges on all of them."""
        basis, mixed = menu.winner(targets)
        best, _ = basis.best_ridges(targets)
        loadings = best
        for less in _UNDERSMOOTHING:
            allowed = basis.freedom(less * best) <= _MOST_FREEDOM * len(targets)
            loadings = torch.where(allowed, less * best, loadings)
        return cls(basis, loadings, targets, basis.freedom(best) / landmarks_for(len(targets)), mixed)

    @cached_property
    def kept(self) -> Tensor:  # (m, q)
        """The eigenvalues of H per target."""
        values = self.basis.values[:, None]
        return values / (values + self.loadings)

    @cached_property
    def residuals(self) -> Tensor:  # (n, q)
        """T − H T on the rows themselves: left-out residuals are mostly bias where S is sparse, and both share it."""
        return self.targets - self.basis.vectors @ (self.kept * (self.basis.vectors.T @ self.targets))

    @property
    def variances(self) -> Tensor:  # (q,)
        """Of the noise, per target, made good for the degrees of freedom."""
        n = len(self.targets)
        return self.residuals.square().sum(dim=0) / (n - self.kept.sum(dim=0))

    @property
    def removed(self) -> Tensor:  # (m, q)
        """The eigenvalues of I − (I − H)², what residuals lack of the noise's variance."""
        return 2 * self.kept - self.kept.square()

    def shrinkage(self, other: Regression) -> Tensor:  # (q, q')
        """How much larger Var Σ_i f̃_i g̃_i is than Σ_i E f̃_i² g̃_i², per pair of targets, for homoscedastic noise.

        With A = I − H it is tr(A_f² A_g²) / Σ_i (A_f²)_ii (A_g²)_ii, which is n / (n − d) for one projection of rank d.
        """
        overlap = (self.basis.vectors.T @ other.basis.vectors).square()
        together = self.removed.sum(0)[:, None] + other.removed.sum(0)
        trace = len(self.targets) - together + self.removed.T @ overlap @ other.removed
        mine, theirs = (1 - side.basis.squares @ side.removed for side in (self, other))
        return trace / (mine.T @ theirs)

    def of_noise(self, noise: Tensor) -> Regression:  # (n,)
        """The same regression, ridge by ridge, of one target."""
        return replace(self, targets=noise[:, None].expand(-1, len(self.loadings)))

    def learnt_from_more_rows(self, half: Tensor) -> Tensor:  # (n,) of bool -> (n, q)
        """Left-out fitted values from all rows less those from the half that a row is not in."""
        fitted = self.targets - self.residuals / rest_of(self.basis.squares @ self.kept)
        features = self.basis.scores
        from_half = torch.empty_like(self.targets)
        for rows in (half, ~half):
            values, vectors = eigh(features[rows].T @ features[rows])
            scores = vectors.T @ (features[rows].T @ self.targets[rows])
            loadings = self.loadings * (rows.sum() / len(rows))
            from_half[~rows] = features[~rows] @ (vectors @ (scores / (values[:, None] + loadings)))
        return fitted - from_half


@dataclass(frozen=True)
class _Entry:
    """A kernel that competes."""

    kernel: Kernel
    rows: Tensor  # of S
    trial: Basis  # its decomposition on the rows of the competition
    mixed: float  # how many columns it takes together: one for a sum over columns


class Menu:
    """Kernels of S that compete.

    They are linear, smooth (Gaussian) and rough (Laplace), of all columns together or summed over columns, and of
    columns weighted by how much they matter to one side. Every kernel has a linear part, so that trends beyond the bulk
    of the data cost nothing.
    """

    def __init__(self, given: Variable, generator: np.random.Generator) -> None:
        self._given, self._generator = given, generator
        size = min(given.n, _TRIAL_ROWS)
        self._sample = torch.as_tensor(np.sort(generator.choice(given.n, size, replace=False)))
        self._entries = [self._entry(kernel, given.rows, mixed) for kernel, mixed in _plain(given)]

    def _entry(self, kernel: Kernel, rows: Tensor, mixed: float) -> _Entry:
        return _Entry(kernel, rows, Basis.of(kernel, rows[self._sample], self._generator), mixed)

    def weighted_for(self, side: Tensor) -> Self:  # (n, q)
        """Return this menu with kernels of S's columns weighted by their importance to ``side``, if they are many."""
        if self._given.rows.shape[1] < _MANY_COLUMNS or not self._given.numbers:
            return self
        weights = _importance(self._given, side, self._sample, self._generator)
        rows = self._given.rows * weights
        mixed = float(weights.square().sum() ** 2 / weights.square().square().sum())
        menu = copy(self)
        weighted = [self._entry(kernel, rows, mixed) for kernel in _of_weighted(self._given, rows)]
        menu._entries = [*self._entries, *weighted]
        return menu

    def winner(self, targets: Tensor) -> tuple[Basis, float]:  # (n, q)
        """Decompose the kernel with the smallest leave-one-out error over all targets; how many columns it mixes."""
        trial = targets[self._sample]
        scores = []
        for entry in self._entries:
            loadings, errors = entry.trial.best_ridges(trial)
            scores.append((float(errors.sum()), float(entry.trial.freedom(loadings).sum()), entry))
        enough = min(error for error, _, _ in scores) * (1 + tie(len(trial)))
        _, _, best = min((score for score in scores if score[0] <= enough), key=lambda score: score[1])
        if len(trial) == len(targets):
            return best.trial, best.mixed
        return Basis.of(best.kernel, best.rows, self._generator), best.mixed


def _plain(given: Variable) -> Iterator[tuple[Kernel, float]]:
    rows, numbers, labels = given.rows, given.numbers, given.labels
    additive: list[Kernel] = [Categorical(columns=(place,)) for place in labels]
    if numbers:
        additive.append(Linear(columns=numbers))
    yield Sum(*additive), 1
    if not numbers:
        yield given.kernel, 1
        if len(labels) > 1:
            yield Sum(given.kernel, *additive), 1
        return
    for kernel, factors in ((Gaussian("median"), _SMOOTH), (Laplace("median"), _ROUGH)):
        resolved = mixed_kernel(kernel, given.categories).resolve(rows)
        for factor in factors:
            yield Sum(resolved.widened(factor), *additive), len(numbers)
        if rows.shape[1] > 1:
            columns = [type(kernel)("median", columns=(place,)).resolve(rows) for place in numbers]
            yield Sum(*(column.widened(0.5) for column in columns), *additive), 1


def _importance(given: Variable, side: Tensor, sample: Tensor, generator: np.random.Generator) -> Tensor:  # (d,)
    """The root of each column's importance in a forest, largest one; labels keep their codes."""
    forest = ExtraTreesRegressor(
        30, min_samples_leaf=5, max_features=0.5, random_state=int(generator.integers(2**31 - 1))
    )
    importance = forest.fit(given.rows[sample].numpy(), side[sample].squeeze(1).numpy()).feature_importances_
    weights = np.sqrt(importance / max(importance.max(), 1e-300))
    weights[list(given.labels)] = 1
    return torch.as_tensor(weights)


def _of_weighted(given: Variable, rows: Tensor) -> Iterator[Kernel]:
    linear = Linear(columns=given.numbers)
    additive = [Categorical(columns=(place,)) for place in given.labels]
    for kernel, factors in ((Gaussian("median"), _SMOOTH), (Laplace("median"), _ROUGH)):
        resolved = mixed_kernel(kernel, given.categories).resolve(rows)
        for factor in factors:
            yield Sum(resolved.widened(factor), linear, *additive)


class Conditioning:
    """S, prepared once for many tests: the kernels that compete on it, and the directions s that weigh products."""

    def __init__(self, given: Variable, generator: np.random.Generator) -> None:
        self.given, self._generator = given, generator
        self._residuals: dict[str, Residuals] = {}

    @cached_property
    def _menu(self) -> Menu:
        return Menu(self.given, self._generator)

    @cached_property
    def weights(self) -> Tensor:  # (n, m)
        """Leading directions of S."""
        return directions(self.given, self._generator, _WEIGHTS, centred=False)

    def residuals(self, side: Variable, name: str = "") -> Residuals:
        """Regress one side on S; a side with a name is regressed once."""
        if name and name in self._residuals:
            return self._residuals[name]
        plain = _numbers_and_indicators(side)
        menu = self._menu.weighted_for(plain)
        raw = Regression.of(plain, menu)
        made = Residuals(raw, Regression.of(directions(_without_trend(side, raw), self._generator), menu))
        if name:
            self._residuals[name] = made
        return made


@dataclass(frozen=True)
class Residuals:
    """What S leaves of one side: of its numbers and labels, and of features of that."""

    raw: Regression
    features: Regression

    @cached_property
    def followed(self) -> Tensor:  # (q,)
        """The share of each feature's variance that is linear in the raw residuals."""
        features, raw = self.features.residuals, self.raw.residuals
        fitted = raw @ (torch.linalg.pinv(raw, rtol=1e-6) @ features)
        return (fitted.square().sum(dim=0) / features.square().sum(dim=0).clamp_min(1e-300)).clamp(max=1)

    def shrinkage(self, other: Residuals) -> Tensor:  # (q, q')
        """`Regression.shrinkage` of features: what their own regression used up, or the one before it, if more.

        Degrees of freedom of the raw regression are missing in what is linear in its residuals.
        """
        raw = self.raw.shrinkage(other.raw).max() - 1
        return torch.maximum(self.features.shrinkage(other.features), 1 + raw * self.followed.outer(other.followed))


def directions(
    variable: Variable, generator: np.random.Generator, most: int = _DIRECTIONS, centred: bool = True
) -> Tensor:  # (n, q)
    """Leading directions of the kernel's feature space, which a sample of the rows spans."""
    features = features_of(variable.kernel.resolve(variable.rows), variable.rows, generator)
    features = _centred(features) if centred else features
    values, vectors = eigh(features.T @ features)
    count = max(1, min(most, int((values > _NEGLIGIBLE * values.sum()).sum())))
    return features @ vectors[:, -count:]


def _numbers_and_indicators(variable: Variable) -> Tensor:  # (n, q)
    """Numbers as they are and an indicator per label, centred."""
    indicators = [
        (variable.rows[:, place, None] == variable.rows[:, place].unique()).double() for place in variable.labels
    ]
    return _centred(torch.cat([variable.rows[:, list(variable.numbers)], *indicators], dim=1))


def _without_trend(variable: Variable, regression: Regression) -> Variable:
    """The variable with its numbers replaced by their residuals, at unit spread."""
    residuals = regression.residuals[:, : len(variable.numbers)]
    rows = variable.rows.clone()
    rows[:, list(variable.numbers)] = residuals / residuals.square().mean(dim=0).sqrt().clamp_min(1e-12)
    return replace(variable, rows=rows)


def _centred(columns: Tensor) -> Tensor:  # (n, q)
    return columns - columns.mean(dim=0)
