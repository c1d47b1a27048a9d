"""Columns of any kind with a kernel, and their kernel ridge, whose kernel and ridges leave-one-out error chooses."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import ExtraTreesRegressor
from torch import Tensor

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.kernels import Categorical, Gaussian, Kernel, Laplace, Linear
from ciplearn.kernels.features import Projection
from ciplearn.kernels.kernels import Sum, mixed_kernel
from ciplearn.kernels.ridge import LeftOut, eigenspace, eigh, rest_of

# A range of this share of the largest value is sixteen units in the last place.
_ROUNDING = 16 * np.finfo(np.float64).eps
_TRIAL_ROWS = 500  # rows on which kernels compete; the winner then sees all rows
_ROWS_AT_ONCE = 1024  # rows that are mapped to features at a time

# Ridges as shares of the trace, from almost interpolating to almost constant, two per decade.
_RIDGES = 10.0 ** torch.arange(-7, 0.5, 0.5, dtype=torch.float64)

# The ridge used is the last of these parts of the ridge that predicts best which leaves residuals some freedom.
_UNDERSMOOTHING = (0.5, 0.2, 0.1)
_MOST_FREEDOM = 0.7
_WIDTHS = ((Gaussian("median"), (0.2, 0.5, 1.2)), (Laplace("median"), (0.3, 2.0)))  # multiples of the median distance
_MANY_COLUMNS = 3  # columns of S from which on some may be irrelevant


@dataclass(frozen=True)
class Variable:
    """Columns of any kind as a tensor, with a kernel that fits them."""

    rows: Tensor  # (n, c): numbers standardised, labels as codes
    kernel: Kernel  # Gaussian on the numbers with a median length scale, times the kernel of categories on the codes
    categories: tuple[bool, ...]  # whether each column holds codes of labels
    rounded: bool = False  # whether numbers vary by no more than rounding, so that nothing can be said about them

    @classmethod
    def of(cls, value: Any, name: str) -> Variable:
        """Read a frame, a series, an array or a tensor; labels are columns that do not hold numbers."""
        frame = _as_frame(value, name)
        missing = int(frame.isna().any(axis=1).sum())
        if missing:
            raise InputError(f"{name} holds NaN in {missing} of {len(frame)} rows; drop or impute those rows first.")
        numbers, labels, rounded = [], [], False
        for _, column in frame.items():
            if holds_numbers(column):
                values = column.to_numpy(dtype=np.float64)
                if not np.isfinite(values).all():
                    raise InputError(f"{name} holds infinity; drop or impute those rows first.")
                # Halves, because the range of all finite numbers is not finite.
                half_range = values.max() / 2 - values.min() / 2
                rounded = rounded or bool(0 < half_range <= _ROUNDING * np.abs(values).max() / 2)
                numbers.append(_standardised(values))
            else:
                labels.append(pd.factorize(column.astype(object))[0].astype(np.float64))
        rows = torch.as_tensor(np.stack([*numbers, *labels], axis=1))
        categories = (False,) * len(numbers) + (True,) * len(labels)
        return cls(rows, mixed_kernel(Gaussian("median"), categories), categories, rounded)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.rows.shape[0]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Places of the columns of numbers."""
        return tuple(column for column, is_category in enumerate(self.categories) if not is_category)

    @property
    def labels(self) -> tuple[int, ...]:
        """Places of the columns of labels."""
        return tuple(column for column, is_category in enumerate(self.categories) if is_category)

    @property
    def is_constant(self) -> bool:
        """Whether all rows are the same."""
        return bool((self.rows == self.rows[:1]).all())


def _as_frame(value: Any, name: str) -> pd.DataFrame:
    if isinstance(value, pd.Series):
        value = value.to_frame()
    if not isinstance(value, pd.DataFrame):
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        if array.ndim not in (1, 2) or array.size == 0:
            raise InputTypeError(
                f"{name} must be a frame, or an array of shape (rows,) or (rows, columns), got shape {array.shape}."
            )
        value = pd.DataFrame(array)
    if value.shape[0] == 0 or value.shape[1] == 0:
        raise InputError(f"{name} is empty, got shape {value.shape}; pass at least one column and some rows.")
    return value


def _standardised(values: Any) -> Any:
    """Mean zero and variance one, at every scale and offset that double precision can tell from a constant."""
    _, exponent = np.frexp(np.abs(values).max())
    # A power of two scales exactly; squares then neither overflow nor vanish.
    values = np.ldexp(values, -int(exponent))
    values = values - np.median(values)
    values = values / (np.abs(values).max() or 1.0)
    return (values - values.mean()) / (values.std() or 1.0)


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
        best = torch.where(as_good, places, -1).max(dim=0).values
        return loadings[best], table.gather(0, best[None])[0]


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


class _Entry(NamedTuple):
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
        self._sample = torch.as_tensor(np.sort(generator.choice(given.n, min(given.n, _TRIAL_ROWS), replace=False)))
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
        linear, categories = Linear(columns=self._given.numbers), self._given.categories
        additive = [Categorical(columns=(column,)) for column in self._given.labels]
        weighted = [
            self._entry(Sum(resolved.widened(factor), linear, *additive), rows, mixed)
            for kernel, factors in _WIDTHS
            for resolved in [mixed_kernel(kernel, categories).resolve(rows)]
            for factor in factors
        ]
        menu = copy(self)
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
    additive: list[Kernel] = [Categorical(columns=(column,)) for column in labels]
    if numbers:
        additive.append(Linear(columns=numbers))
    yield Sum(*additive), 1
    if not numbers:
        yield given.kernel, 1
        if len(labels) > 1:
            yield Sum(given.kernel, *additive), 1
        return
    for kernel, factors in _WIDTHS:
        resolved = mixed_kernel(kernel, given.categories).resolve(rows)
        for factor in factors:
            yield Sum(resolved.widened(factor), *additive), len(numbers)
        if rows.shape[1] > 1:
            columns = [type(kernel)("median", columns=(column,)).resolve(rows) for column in numbers]
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
