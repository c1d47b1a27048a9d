import numpy as np
import pytest

from ciplearn.scm.smooth_ridge import RIDGES, RidgeSystem, Smoother, SmoothFeatures

WIDTHS = (0.1, 0.5, 2.0, 8.0)


def fitted(x, y, n_centres=60):
    features = Smoother(x).features(y, WIDTHS, n_centres)
    coefficients, level, left = RidgeSystem(features(x)).fit(y)
    return features.function(coefficients, level), left


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_function_is_the_linear_function_of_its_features(generator, outputs):
    x = generator.normal(size=(5000, 3))
    features = SmoothFeatures.of(x, 0.5, 40)
    coefficients, level = generator.normal(size=(features(x).shape[1], outputs)), generator.normal(size=outputs)
    function = features.function(coefficients, level)
    np.testing.assert_allclose(function(x), features(x) @ coefficients + level, atol=1e-8)
    again = function.features()
    np.testing.assert_allclose(np.abs(again(x)), np.abs(features(x)), atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_and_leave_one_out_residuals_are_those_of_the_definition(generator, weighted):
    phi, y = generator.normal(size=(30, 4)), generator.normal(size=(30, 2))
    weights = generator.uniform(0.5, 2, size=30) if weighted else None
    system = RidgeSystem(phi, weights)
    ridge, left = system.best_ridge(y)
    w = system.weights

    def naive(rows, strength):
        # Normal equations with a column of ones that bears no penalty.
        design = np.column_stack([phi[rows], np.ones(len(rows))])
        penalty = np.diag([30 * strength * system.scale] * 4 + [0.0])
        return np.linalg.solve(design.T @ (w[rows, None] * design) + penalty, design.T @ (w[rows, None] * y[rows]))

    coefficients, level = system.solve(y, ridge)
    np.testing.assert_allclose(np.vstack([coefficients, level]), naive(np.arange(30), RIDGES[ridge]), atol=1e-10)
    for row in (0, 7, 29):
        others = np.delete(np.arange(30), row)
        predicted = np.append(phi[row], 1.0) @ naive(others, RIDGES[ridge])
        np.testing.assert_allclose(left[row], y[row] - predicted, atol=1e-10)


def test_one_smoother_serves_many_targets_as_one_each_would(generator):
    x = generator.normal(size=(300, 2))
    shared = Smoother(x)
    for target in (np.sin(3 * x[:, :1]), x @ np.ones((2, 1)), np.abs(x)):
        alone, together = (smoother.features(target, WIDTHS, 30) for smoother in (Smoother(x), shared))
        np.testing.assert_array_equal(together.spread, alone.spread)
        assert together.bump == alone.bump


def test_bends_are_the_spread_of_the_slopes(generator):
    x = generator.normal(size=(200, 2))
    function, _ = fitted(x, (np.sin(2 * x[:, 0]) + 3 * x[:, 1])[:, None])
    step = 1e-5
    slopes = [
        (function(x + step * function.spread * unit) - function(x - step * function.spread * unit))[:, 0] / (2 * step)
        for unit in np.eye(2)
    ]
    np.testing.assert_allclose(function.bends(x), [slope.std() for slope in slopes], rtol=1e-4, atol=1e-6)


def test_a_line_is_continued_where_there_is_no_data():
    x = np.linspace(-1, 1, 200)[:, None]
    assert fitted(x, 3 * x)[0](np.array([[4.0]]))[0, 0] == pytest.approx(12, rel=0.05)


def test_columns_that_do_not_matter_drop_out(generator):
    x = generator.normal(size=(1500, 8))
    y = np.sin(2 * x[:, 0]) + x[:, 0] * x[:, 1]
    function, _ = fitted(x, (y + 0.3 * generator.normal(size=1500))[:, None], 100)
    fresh = generator.normal(size=(500, 8)) * 0.8
    error = function(fresh)[:, 0] - np.sin(2 * fresh[:, 0]) - fresh[:, 0] * fresh[:, 1]
    assert np.sqrt(np.square(error).mean()) < 0.15
    assert function.spread[2:].min() > 5 * function.spread[0]


def test_a_bend_that_shows_only_once_columns_are_stretched_is_found():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(1500, 12))
    y = np.sin(3 * x[:, :1]) + 0.3 * draw.normal(size=(1500, 1))

    def error(features):
        return RidgeSystem(features(x)).fit(y)[2].var()

    line = error(lambda rows: rows)
    assert min(error(SmoothFeatures.of(x, width, 40)) for width in (0.2, 1.0)) > 0.999 * line
    assert error(Smoother(x).features(y, (0.2, 1.0), 40)) < 0.2 * line


def test_bumps_that_do_not_help_a_line_are_left_out(generator):
    x = generator.normal(size=(500, 3))
    noisy = x @ np.ones((3, 1)) + generator.normal(size=(500, 1))
    assert len(Smoother(x).features(noisy, WIDTHS, 60).centres) == 0


def test_an_indicator_keeps_its_unit_and_a_constant_column_does_no_harm(generator):
    rare = (generator.uniform(size=400) < 0.02).astype(float)
    x = np.column_stack([generator.normal(size=400), rare, np.full(400, 3.0)])
    assert SmoothFeatures.of(x, 1.0, 20).spread[1:].tolist() == [1.0, 1.0]
    assert np.isfinite(fitted(x, x[:, :1])[0](x)).all()
