"""A test of Ŷ ⊥ R | S on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import whole
from ciplearn._core.random import RandomState, as_generator
from ciplearn.evaluation.encoding import Sides, Variable
from ciplearn.kernels import Kernel
from ciplearn.kernels.cholesky import pivoted_cholesky
from ciplearn.kernels.ridge import RidgeSpectrum
from ciplearn.penalties import CIRCE, HSIC

# Directions of the prediction's feature space that carry less than this share of its variance are left out.
_NEGLIGIBLE = 1e-3
_MAX_DIRECTIONS = 64

N_BOOTSTRAP = 999
MAX_ROWS = 1000
_MIN_ROWS = 20

# The ridge used, as a part of the ridge that predicts best.
_UNDERSMOOTHING = 0.1

# A factor with up to this many columns a row is cheaper to permute than its matrix.
_SHORT = 0.2

# The share of a trace that a factor may lack: the statistic is a small part of the product of two traces.
_ROUNDING = 1e-14

# Bootstrap signs held at a time are rows times this.
_BLOCK = 256


@dataclass(frozen=True)
class IndependenceTest:
    """The answer of `independence_test`.

    Attributes
    ----------
    p_value : float
        How often a statistic this large comes about under independence.
    statistic : float
        The kernel statistic itself; comparable only between tests on the same rows.
    conditional : bool
        Whether there was anything to condition on.
    n_rows, n_bootstrap : int
    """

    p_value: float
    statistic: float
    conditional: bool
    n_rows: int
    n_bootstrap: int

    @property
    def rejects(self) -> bool:
        """Whether independence is rejected at the 5 % level."""
        return self.p_value <= 0.05

    def __str__(self) -> str:
        what = "conditional independence" if self.conditional else "independence"
        verdict = "is not rejected at the 5 % level, which is no proof of it"
        if self.rejects:
            known = " when the conditioning variables are known" if self.conditional else ""
            verdict = f"is rejected at the 5 % level: the prediction still tells of the right-hand side{known}"
        return f"On {self.n_rows} rows {what} has p = {self.p_value:.3g} and {verdict}."

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        return {
            "p_value": self.p_value,
            "statistic": self.statistic,
            "conditional": self.conditional,
            "n_rows": self.n_rows,
            "n_bootstrap": self.n_bootstrap,
            "rejects": self.rejects,
            "sentence": str(self),
        }


def independence_test(
    y_hat: Any,
    right: Any,
    given: Any = None,
    *,
    n_bootstrap: int = N_BOOTSTRAP,
    max_rows: int = MAX_ROWS,
    random_state: RandomState = 0,
) -> IndependenceTest:
    """Test Ŷ ⊥ R | S with the operator of CIRCE and a wild bootstrap.

    Both sides are regressed on S in their feature spaces, by kernel ridge with settings from leave-one-out error.
    With K̃_Ŷ, K̃_R the Gram matrices of the residuals and w independent random signs,

        T = Σ_ij M_ij,   T* = Σ_ij w_i w_j M_ij,   M = K̃_Ŷ ∘ K̃_R ∘ K_S,

    and p = (1 + #{c T* ≥ T}) / (1 + n_bootstrap), c² = n / (n − degrees of freedom). Under independence the products of
    residuals have mean zero given S, so that changing their signs does not change their law; an error of one regression
    is multiplied by the residual of the other, which is why both sides are regressed. Permuting rows instead would be
    wrong: both sides depend on S. Without S the rows of Ŷ are permuted, which is exact.

    Use rows that the predictor was not trained on: it may follow the noise of its training rows.

    Parameters
    ----------
    y_hat : array, series or frame
        Predictions: numbers, several outputs, or labels.
    right, given : frame, series or array
        R and S. Columns that do not hold numbers are categories.
    n_bootstrap : int
    max_rows : int
        More rows than this are sampled down: cost grows with the cube of their number.
    random_state : int or Generator
    """
    n_bootstrap = whole(n_bootstrap, "n_bootstrap", minimum=19)
    max_rows = whole(max_rows, "max_rows", minimum=_MIN_ROWS)
    return judged(Sides.of(y_hat, right, given), as_generator(random_state), n_bootstrap, max_rows)


def judged(
    every: Sides, generator: np.random.Generator, n_bootstrap: int = N_BOOTSTRAP, max_rows: int = MAX_ROWS
) -> IndependenceTest:
    """Do the test of `independence_test` on sides that are encoded already."""
    if every.n < _MIN_ROWS:
        raise InputError(f"A test needs at least {_MIN_ROWS} rows, got {every.n}; pass more held-out rows.")
    sides = every.sampled(max_rows, generator)
    conditional = sides.given is not None
    if sides.left.is_constant or sides.right.is_constant:
        return IndependenceTest(1.0, 0.0, conditional, sides.n, n_bootstrap)
    if sides.given is None or sides.given.is_constant:
        statistic, null = _by_permutation(sides.left, sides.right, n_bootstrap, generator)
    else:
        statistic, null = _by_signs(sides.left, sides.right, sides.given, n_bootstrap, generator)
    # A hair of tolerance: a resample that repeats the data must count as being as large.
    p_value = (1 + int((null >= statistic * (1 - 1e-10)).sum())) / (1 + n_bootstrap)
    return IndependenceTest(p_value, statistic, conditional, sides.n, n_bootstrap)


def _by_permutation(
    left: Variable, other: Variable, n_bootstrap: int, generator: np.random.Generator
) -> tuple[float, Tensor]:
    operator = HSIC(right_kernel=other.kernel, exact_rows=None).prepare(other.rows).matrix().double()
    value = _under_orders(operator, _gram(left))
    statistic = value(torch.arange(left.n))
    null = [value(torch.as_tensor(generator.permutation(left.n))) for _ in range(n_bootstrap)]
    return statistic, torch.tensor(null, dtype=torch.float64)


def _under_orders(operator: Tensor, gram: Tensor) -> Callable[[Tensor], float]:  # (n, n), (n, n)
    """Return the function π -> Σ_ij Q_ij K_π(i)π(j).

    With Q = V Vᵀ and K = F Fᵀ it is ‖Vᵀ F_π‖², which for short factors takes a small part of the n² terms.
    """
    v, f = _short_factor(operator), _short_factor(gram)
    if v is None or f is None:
        return lambda order: float((gram[order][:, order] * operator).sum())
    return lambda order: float((v.T @ f[order]).square().sum())


def _short_factor(matrix: Tensor) -> Tensor | None:  # (n, n) -> (n, r)
    """Return F with F Fᵀ the matrix up to rounding, or None where F would not be short."""
    longest = int(_SHORT * len(matrix))
    _, factor = pivoted_cholesky(matrix.diagonal(), lambda place: matrix[:, place], longest, _ROUNDING)
    return None if factor.shape[1] == longest else factor


def _by_signs(
    left: Variable, other: Variable, context: Variable, n_bootstrap: int, generator: np.random.Generator
) -> tuple[float, Tensor]:
    one, two = (_Regression.of(_directions(_gram(side)), context) for side in (left, other))
    circe = CIRCE(right_kernel=other.kernel, given_kernel=two.kernel, ridge=two.ridge, exact_rows=None)
    operator = circe.prepare(other.rows, context.rows).matrix().double()  # K_S ∘ K̃_R / n²
    residuals = one.residuals
    # Residuals are smaller than the noise they stand for by the degrees of freedom that the regression used up. T lost
    # part of that as well; the root lies between no correction (levels up to 7.5 %) and a full one (down to 2 %).
    shrunk = (left.n / (left.n - min(one.freedom, two.freedom))) ** 0.5
    products = (residuals @ residuals.T) * operator  # M / n²
    null = []
    for start in range(0, n_bootstrap, _BLOCK):
        size = (left.n, min(_BLOCK, n_bootstrap - start))
        signs = torch.as_tensor(generator.integers(0, 2, size=size) * 2.0 - 1.0)
        null.append((signs * (products @ signs)).sum(dim=0))
    return float(products.sum()), shrunk * torch.cat(null)


def _gram(variable: Variable) -> Tensor:  # (n, n)
    return variable.kernel.resolve(variable.rows).gram(variable.rows, variable.rows)


def _directions(gram: Tensor) -> Tensor:  # (n, n) -> (n, q)
    """Features whose inner products are the centred Gram matrix, in its leading directions."""
    means = gram.mean(dim=0)
    values, vectors = torch.linalg.eigh(gram - means - means[:, None] + means.mean())
    values, vectors = values.flip(0).clamp_min(0), vectors.flip(1)
    kept = int((values > _NEGLIGIBLE * values.sum()).sum())
    size = max(1, min(kept, _MAX_DIRECTIONS))
    return vectors[:, :size] * values[:size].sqrt()


@dataclass(frozen=True)
class _Regression:
    """Kernel ridge regression of one side's features on S.

    Attributes
    ----------
    kernel : Kernel
        Of S, with the length scale of smallest leave-one-out error.
    ridge : float
        A tenth of the ridge of smallest leave-one-out error. That one balances bias and variance of a prediction; here
        variance does no harm, while the biases of the two sides multiply and look like dependence.
    freedom : float
        Degrees of freedom, the trace of the smoother K (K + nλI)⁻¹.
    residuals : Tensor, shape (n, q)
        In-sample ones, not left-out ones: where S is sparse the latter are mostly bias, which both sides share.
    """

    kernel: Kernel
    ridge: float
    freedom: float
    residuals: Tensor

    @classmethod
    def of(cls, targets: Tensor, context: Variable) -> _Regression:  # (n, q)
        trials = []
        for kernel in context.kernel.candidates(context.rows):
            spectrum, scores = RidgeSpectrum.from_gram(kernel.gram(context.rows, context.rows), targets)
            ridge, error = spectrum.best_ridge(scores, targets)
            trials.append((error, ridge, kernel, spectrum, scores))
        _, ridge, kernel, spectrum, scores = min(trials, key=lambda trial: trial[0])
        ridge = _UNDERSMOOTHING * ridge
        inverse = spectrum.inverse(ridge)
        freedom = float((spectrum.values * inverse).sum())
        return cls(kernel, ridge, freedom, targets - (scores * inverse) @ spectrum.cross)
