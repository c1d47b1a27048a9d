"""A test of Ŷ ⊥ R | S on held-out rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from ciplearn._core.arguments import whole
from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.rows import RandomState, as_generator
from ciplearn.evaluation.regression import Menu, Regression, Variable, features_of
from ciplearn.kernels.ridge import eigh

N_BOOTSTRAP, _MOST_RESAMPLES = 999, 1_000_000
MIN_ROWS, MAX_ROWS = 20, 20_000
_BLOCK = 256  # bootstrap signs held at a time are rows times this

# The product of two biases that is left, in units of the product that the second half of the rows took away: one where
# bias falls like 1 / n, six where it falls like n^(−1/2).
_BIAS_LEFT = 2.0

# A rejection counts unless bias may be all of the covariance found and a standard error, or unless both regressions
# want this share of the freedom that they could have.
_BIASED_SHARE, _BIASED_ERRORS, _STARVED = 1.0, 1.0, 0.35
_ROWS_PER_CELL, _INTERVALS, _NOISES = 4, 4, 5
_BIAS = (
    "a dependence is found, but the rows are too few for the regressions on the conditioning variables, whose errors "
    "may have made it"
)

_POWER = 0.8  # a dependence is called detectable if it is found with this probability
_CORRELATIONS = tuple(float(rho) for rho in np.round(np.geomspace(0.005, 0.995, 160), 4))
_NEGLIGIBLE = 2e-3  # directions of a feature space that carry less than this share of its variance are left out
_DIRECTIONS, _WEIGHTS = 10, 6


@dataclass(frozen=True)
class IndependenceTest:
    """The answer of `independence_test`.

    Attributes
    ----------
    p_value, statistic
        How often a statistic this large comes about under independence, NaN where that cannot be judged; and the
        statistic itself, comparable only between tests on the same rows.
    detectable : float
        The smallest partial correlation, between the leading features of the two sides, that the test would have found
        with probability 0.8; NaN where there is none.
    conditional, obstacle
        Whether there was anything to condition on; why the independence cannot be judged, empty where it can.

    Examples
    --------
    >>> from ciplearn import datasets, independence_test
    >>> people = datasets.applicants().sample(500, random_state=0)
    >>> independence_test(people["hours"], people[["region"]], people[["age", "sex"]]).is_judged
    True
    """

    p_value: float
    statistic: float
    conditional: bool
    n_rows: int
    n_bootstrap: int
    detectable: float = math.nan
    obstacle: str = ""

    @property
    def is_judged(self) -> bool:
        """Whether the rows allow an answer."""
        return not self.obstacle

    @property
    def rejects(self) -> bool:
        """Whether independence is rejected at the 5 % level."""
        return self.p_value <= 0.05

    def __str__(self) -> str:
        return self.about(f"y_hat tells nothing about right{' among rows with the same given' * self.conditional}")

    def about(self, statement: str) -> str:
        """Say what came out, with the independence in words: ``the prediction tells nothing about sex``."""
        if self.obstacle:
            return f"On {self.n_rows} rows it cannot be judged whether {statement}: {self.obstacle}."
        verb, ends = "does not reject", "that is no proof of it"
        if self.rejects:
            verb, ends = "rejects", "it still tells something"
        elif not math.isnan(self.detectable):
            ends += ", and the weakest link that it would notice, in 4 cases of 5, is a partial correlation of "
            ends += f"{self.detectable:.2g}"
        return (
            f"On {self.n_rows} rows a test {verb} at the 5 % level (p = {self.p_value:.3g}) that {statement}: {ends}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        return fields_as_data(self, rejects=self.rejects, sentence=str(self))


def independence_test(
    y_hat: Any,
    right: Any,
    given: Any = None,
    *,
    n_bootstrap: int = N_BOOTSTRAP,
    max_rows: int = MAX_ROWS,
    random_state: RandomState = 0,
) -> IndependenceTest:
    """Test Ŷ ⊥ R | S with a kernel statistic of residuals and a wild bootstrap.

    Numbers on both sides are first replaced by what their regression on S leaves, which changes nothing about the
    independence. Then features f of one side and g of the other, leading directions of Gaussian kernels, are regressed
    on S as well. With f̃, g̃ the residuals, s features of S and w independent random signs,

        T = ‖Σ_i f̃_i ⊗ g̃_i ⊗ s_i‖²,   T* = ‖C^(1/2) Σ_i w_i f̃_i ⊗ g̃_i ⊗ s_i‖²,

    and p = (1 + #{T* ≥ T}) / (1 + n_bootstrap), where C makes good the degrees of freedom that the regressions used up.
    Under independence the products of residuals have mean zero given S, so that changing their signs does not change
    their law; an error of one regression is multiplied by the residual of the other, which is why both sides are
    regressed, each with the best of linear, smooth, rough and additive kernels. Permuting rows instead would be wrong:
    both sides depend on S. Without S the rows of Ŷ are permuted, which is exact.
    No test of conditional independence is right for every law. Where a dependence is found that the regressions' own
    errors may have made, because they still learn much from more rows, the answer is that it cannot be judged. Use rows
    that the predictor was not trained on: it may follow the noise of its training rows.

    Parameters
    ----------
    y_hat, right, given : frame, series or array
        Ŷ, of one output or several, R and S. Columns that do not hold numbers are categories.
    n_bootstrap, max_rows, random_state
        More rows than ``max_rows`` are sampled down: cost and memory are linear in their number.

    Examples
    --------
    >>> from ciplearn import datasets, independence_test
    >>> people = datasets.applicants().sample(500, random_state=0)
    >>> independence_test(people["hours"], people[["sex"]], people[["age"]]).p_value < 0.05
    True
    """
    n_bootstrap = whole(n_bootstrap, "n_bootstrap", minimum=19, maximum=_MOST_RESAMPLES)
    max_rows = whole(max_rows, "max_rows", minimum=MIN_ROWS)
    return run_test(Sides.of(y_hat, right, given), as_generator(random_state), n_bootstrap, max_rows)


@dataclass(frozen=True)
class Sides:
    """The three parts of Ŷ ⊥ R | S, encoded, with the same rows; ``given`` is None where nothing is conditioned on."""

    left: Variable
    right: Variable
    given: Variable | None

    @classmethod
    def of(cls, y_hat: Any, right: Any, given: Any) -> Sides:
        """Encode each part and check that they belong together."""
        left, other = Variable.of(y_hat, "y_hat"), Variable.of(right, "right")
        context = None if given is None else Variable.of(given, "given")
        for name, side in (("right", other), ("given", context or left)):
            if side.n != left.n:
                why = f"y_hat and {name} must have the same number of rows, got {left.n} and {side.n}"
                raise InputError(f"{why}; pass the same rows, in the same order.")
        return cls(left, other, context)

    def sampled(self, most: int, generator: Generator) -> Sides:
        """Return a random part of the rows where there are more than ``most``."""
        n = self.left.n
        if n <= most:
            return self
        rows = torch.as_tensor(np.sort(generator.choice(n, most, replace=False)))
        left, right = (replace(side, rows=side.rows[rows]) for side in (self.left, self.right))
        return Sides(left, right, self.given and replace(self.given, rows=self.given.rows[rows]))


def run_test(
    every: Sides, generator: np.random.Generator, n_bootstrap: int = N_BOOTSTRAP, max_rows: int = MAX_ROWS
) -> IndependenceTest:
    """Run the test of `independence_test` on sides that are encoded already."""
    sides = every.sampled(max_rows, generator)
    given = None if sides.given is None else Conditioning(sides.given, generator)
    return PreparedTest(sides.left, sides.right, given).run(generator, n_bootstrap)


@dataclass(frozen=True)
class PreparedTest:
    """One test, for callers that share S between many."""

    left: Variable
    right: Variable
    given: Conditioning | None
    names: tuple[str, str] = ("", "")  # names under which ``given`` remembers the two sides
    level: float = 0.05  # the level at which `IndependenceTest.detectable` is meant

    def run(self, generator: np.random.Generator, n_bootstrap: int = N_BOOTSTRAP) -> IndependenceTest:
        """Return the answer."""
        n, conditional = self.left.n, self.given is not None
        if n < MIN_ROWS:
            raise InputError(f"A test needs at least {MIN_ROWS} rows, got {n}; pass more held-out rows.")
        if self.left.is_constant or self.right.is_constant:
            return IndependenceTest(1.0, 0.0, conditional, n, n_bootstrap)
        if any(side.rounded for side in (self.left, self.right, *(() if self.given is None else [self.given.given]))):
            obstacle = "a column varies by no more than rounding; subtract its offset before it is saved"
            return IndependenceTest(math.nan, math.nan, conditional, n, n_bootstrap, obstacle=obstacle)
        if self.given is None or self.given.given.is_constant:
            resampled, raw = self._by_permutation(n_bootstrap, generator), None
        else:
            sides = zip((self.left, self.right), self.names, strict=True)
            left, right = (self.given.residuals(side, name) for side, name in sides)
            resampled, raw = _by_signs(left, right, self.given.weights, n_bootstrap, generator), (left.raw, right.raw)
        detectable = resampled.detectable(self.level)
        answer = IndependenceTest(resampled.p_value, resampled.statistic, conditional, n, n_bootstrap, detectable)
        if raw is not None and answer.rejects and _may_be_bias(*raw, generator):
            return replace(answer, p_value=math.nan, obstacle=_BIAS)
        return answer

    def _by_permutation(self, n_bootstrap: int, generator: np.random.Generator) -> _Resampled:
        """‖Σ_i f_π(i) ⊗ g_i‖² / n² for the order of the data and for random ones: HSIC of the leading directions."""
        n, (f, g) = self.left.n, (directions(side, generator) for side in (self.left, self.right))
        # One order at a time: all together they would fill the memory.
        orders = (generator.permutation(n) if turn else np.arange(n) for turn in range(1 + n_bootstrap))
        sums = torch.stack([(f[torch.as_tensor(order)].T @ g).flatten() for order in orders], dim=1) / n
        return _Resampled.of(sums[:, 0], sums[:, 1:], _push(f, g, g.T @ g[:, -1]) / n)


@dataclass(frozen=True)
class _Resampled:
    """A statistic T = ‖t‖², its resamples T* = ‖t*‖² under independence, and what a dependence would add."""

    statistic: float
    null: Tensor  # (n_bootstrap,)
    tilt: Tensor  # (n_bootstrap,): 2 t*·m, with m what t grows by per unit of partial correlation
    push: float  # ‖m‖²

    @classmethod
    def of(cls, observed: Tensor, resampled: Tensor, push: Tensor) -> Self:  # (D,), (D, n_bootstrap), (D,)
        null = resampled.square().sum(dim=0)
        return cls(float(observed.square().sum()), null, 2 * push @ resampled, float(push.square().sum()))

    @property
    def p_value(self) -> float:
        # A hair of tolerance: a resample that repeats the data must count as being as large.
        return (1 + int((self.null >= self.statistic * (1 - 1e-10)).sum())) / (1 + len(self.null))

    def detectable(self, level: float) -> float:
        """The smallest ρ with P(‖t* + ρm‖² beyond the null's quantile) ≥ 0.8; NaN if none below one is."""
        threshold = torch.quantile(self.null, 1 - level)
        for correlation in _CORRELATIONS:
            power = (self.null + correlation * self.tilt + correlation**2 * self.push >= threshold).double().mean()
            if power >= _POWER:
                return correlation
        return math.nan


def _by_signs(
    one: Residuals, other: Residuals, weights: Tensor, n_bootstrap: int, generator: np.random.Generator
) -> _Resampled:
    f, g = one.features.residuals, other.features.residuals
    shrunk = one.shrinkage(other).sqrt()[:, :, None].expand(-1, -1, weights.shape[1]).flatten()
    products = torch.einsum("nk,nl,nm->nklm", f, g, weights).flatten(1)
    resampled = []
    for start in range(0, n_bootstrap, _BLOCK):
        size = (len(f), min(_BLOCK, n_bootstrap - start))
        signs = torch.as_tensor(generator.integers(0, 2, size=size) * 2.0 - 1.0)
        resampled.append(shrunk[:, None] * (products.T @ signs))
    push = _push(f, g, (g * g[:, -1:]).T @ weights)
    return _Resampled.of(products.sum(dim=0), torch.cat(resampled, dim=1), push)


def _push(f: Tensor, g: Tensor, of_g: Tensor) -> Tensor:  # (n, q), (n, q'), (q', ...) -> (q * q' * ...,)
    """What a sum of products grows by per unit of correlation of the two leading features."""
    push = torch.zeros(f.shape[1], *of_g.shape, dtype=f.dtype)
    push[-1] = float((f[:, -1].square().sum() / g[:, -1].square().sum()).sqrt()) * of_g
    return push.flatten()


def _may_be_bias(one: Regression, other: Regression, generator: np.random.Generator) -> bool:
    """Whether errors of the regressions, extrapolated from half the rows to all, may be the covariance of residuals.

    The second half of the rows taught the two regressions something at every row. If residuals are uncorrelated, the
    mean product of the two lessons is the product of two changes of bias, and the bias left is a multiple of it. If
    they are correlated, the product also holds a share of their covariance, which the same noise on both sides shows.
    """
    if min(float(one.wanted.max()), float(other.wanted.max())) > _STARVED:
        return True
    n = len(one.targets)
    # The bias of a function of d columns at once falls like n^(−2/(4+d)), and the product of two such biases no faster
    # than a standard error from d = 4 on: they need a few rows in every cell of a coarse grid. Where one side is such a
    # function, the other may be one that was taken for less.
    if _ROWS_PER_CELL * _INTERVALS ** max(one.mixed, other.mixed) > n:
        return True
    half = torch.zeros(n, dtype=torch.bool)
    half[torch.as_tensor(generator.permutation(n)[: n // 2])] = True

    def lessons_and_covariance(first: Regression, second: Regression) -> tuple[Tensor, Tensor]:
        lessons = first.learnt_from_more_rows(half).T @ second.learnt_from_more_rows(half) / n
        return lessons, first.residuals.T @ second.residuals / n

    lessons, covariance = lessons_and_covariance(one, other)
    noises = torch.as_tensor(generator.normal(size=(_NOISES, n)))
    of_noise = [lessons_and_covariance(one.of_noise(noise), other.of_noise(noise)) for noise in noises]
    expected = sum(lesson for lesson, _ in of_noise) / sum(cov for _, cov in of_noise)
    bias = _BIAS_LEFT * (lessons - expected * covariance)
    share = float((bias * covariance).sum() / covariance.square().sum())
    error = (one.variances.outer(other.variances).sum() / n).sqrt()
    return share > _BIASED_SHARE and float(bias.square().sum().sqrt() / error) > _BIASED_ERRORS


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
        numbers, rows = list(side.numbers), side.rows.clone()
        indicators = [(rows[:, column, None] == rows[:, column].unique()).double() for column in side.labels]
        plain = torch.cat([rows[:, numbers], *indicators], dim=1)
        plain = plain - plain.mean(dim=0)
        menu = self._menu.weighted_for(plain)
        raw = Regression.of(plain, menu)
        left = raw.residuals[:, : len(numbers)]
        # Directions are those of the residuals of numbers, at unit spread.
        rows[:, numbers] = left / left.square().mean(dim=0).sqrt().clamp_min(1e-12)
        made = Residuals(raw, Regression.of(directions(replace(side, rows=rows), self._generator), menu))
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
    features = features - features.mean(dim=0) if centred else features
    values, vectors = eigh(features.T @ features)
    count = max(1, min(most, int((values > _NEGLIGIBLE * values.sum()).sum())))
    return features @ vectors[:, -count:]
