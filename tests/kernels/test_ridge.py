import pytest
import torch

from ciplearn._core.errors import NumericalError
from ciplearn.kernels import Gaussian
from ciplearn.kernels.ridge import RIDGE_GRID, GramRidge, LeftOut, RidgeSpectrum, loading, ridge_floor

N = 30
GENERATOR = torch.Generator().manual_seed(0)
S = torch.rand(N, 1, dtype=torch.float64, generator=GENERATOR)
TARGETS = torch.cat([torch.sin(5 * S), S**2], 1) + 0.1 * torch.randn(N, 2, dtype=torch.float64, generator=GENERATOR)
K = Gaussian(0.3)(S)
PHI = torch.cat([torch.ones_like(S), S, S**2, S**3], dim=1)
RIDGE = 1e-3


def fitted_by_hand(gram, targets, ridge):
    n = gram.shape[0]
    return gram @ torch.linalg.solve(gram + n * ridge * torch.eye(n, dtype=gram.dtype), targets)


def leave_one_out_by_refitting(gram, targets, load):
    """Fit on all rows but one, keeping the same total load, and predict that one."""
    n, errors = gram.shape[0], []
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        system = gram[rest][:, rest] + load * torch.eye(n - 1, dtype=gram.dtype)
        prediction = gram[i, rest] @ torch.linalg.solve(system, targets[rest])
        errors.append((targets[i] - prediction).square().sum())
    return torch.stack(errors).mean().item()


def test_gram_form_gives_weights_and_residuals():
    ridge = GramRidge(K, RIDGE)
    torch.testing.assert_close(ridge.weights().T @ TARGETS, fitted_by_hand(K, TARGETS, RIDGE))
    residuals = TARGETS - fitted_by_hand(K, TARGETS, RIDGE)
    torch.testing.assert_close(ridge.residual_gram(TARGETS @ TARGETS.T), residuals @ residuals.T)


def test_feature_form_equals_gram_form_of_the_same_features():
    gram = PHI @ PHI.T
    spectrum = RidgeSpectrum.from_moments(PHI.T @ PHI, PHI.T @ TARGETS, N)
    torch.testing.assert_close(PHI @ spectrum.coefficients(RIDGE), fitted_by_hand(gram, TARGETS, RIDGE))
    from_gram, scores = RidgeSpectrum.from_gram(gram, TARGETS)
    torch.testing.assert_close(scores @ from_gram.coefficients(RIDGE), fitted_by_hand(gram, TARGETS, RIDGE))


def error_of(spectrum, scores, ridge):
    loadings = torch.tensor([loading(N, ridge)], dtype=torch.float64)
    return float(LeftOut(scores, spectrum.values, loadings).errors(TARGETS, spectrum.cross).sum())


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 0.1])
def test_closed_form_leave_one_out_error_equals_refitting(ridge):
    expected = leave_one_out_by_refitting(K, TARGETS, loading(N, ridge))
    spectrum, scores = RidgeSpectrum.from_gram(K, TARGETS)
    assert error_of(spectrum, scores, ridge) == pytest.approx(expected, rel=1e-6)
    expected = leave_one_out_by_refitting(PHI @ PHI.T, TARGETS, loading(N, ridge))
    spectrum = RidgeSpectrum.from_moments(PHI.T @ PHI, PHI.T @ TARGETS, N)
    assert error_of(spectrum, PHI @ spectrum.basis, ridge) == pytest.approx(expected, rel=1e-6)


def test_best_ridge_is_the_best_of_the_grid():
    spectrum, scores = RidgeSpectrum.from_gram(K, TARGETS)
    best, error = spectrum.best_ridge(scores, TARGETS)
    errors = {ridge: error_of(spectrum, scores, ridge) for ridge in RIDGE_GRID}
    assert errors[best] == pytest.approx(error, rel=1e-12)
    assert errors[best] == min(errors.values())
    assert 1e-8 < best < 1.0


def test_noise_wants_more_smoothing_than_signal():
    spectrum, scores = RidgeSpectrum.from_gram(K, TARGETS)
    noise = torch.randn(N, 2, dtype=torch.float64, generator=GENERATOR)
    noisy, noisy_scores = RidgeSpectrum.from_gram(K, noise)
    assert noisy.best_ridge(noisy_scores, noise)[0] > spectrum.best_ridge(scores, TARGETS)[0]


def test_same_ridge_smooths_alike_at_every_number_of_rows():
    twice = torch.cat([S, S])
    once = GramRidge(K, RIDGE).weights().T @ TARGETS
    doubled = GramRidge(Gaussian(0.3)(twice), RIDGE).weights().T @ torch.cat([TARGETS, TARGETS])
    torch.testing.assert_close(doubled[:N], once, atol=1e-9, rtol=1e-7)


def test_ridge_of_zero_is_raised_to_the_numerical_floor():
    singular = torch.ones(40, 40, dtype=torch.float64)
    ridge = GramRidge(singular, 0.0)
    assert ridge.ridge == ridge_floor(40.0)
    assert torch.isfinite(ridge.weights()).all()


def test_failed_factorisation_is_loud_and_carries_numbers():
    indefinite = torch.diag(torch.tensor([1.0, -3.0, 1.0], dtype=torch.float64))
    with pytest.raises(NumericalError, match=r"3 rows is not positive definite at row 2: ridge 1\.0e-03"):
        GramRidge(indefinite, 1e-3)
