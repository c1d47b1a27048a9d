import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciplearn.repairing.formula import MeanOfDraws, Parts


def solution_of_quadratic_program(p, w, m, gamma):
    """The least of Σ_k p_k w_k (m_k − f_k)² + γ (Σ_k p_k f_k² − (Σ_k p_k f_k)²), from its normal equations."""
    hessian = np.diag(p * w) + gamma * (np.diag(p) - np.outer(p, p))
    return np.linalg.solve(hessian, (p * w)[:, None] * m)


def random_model(seed):
    draw = np.random.default_rng(seed)
    levels, outputs = draw.integers(2, 7), draw.integers(1, 4)
    p, w = draw.dirichlet(np.ones(levels)) + 1e-3, draw.exponential(size=levels) + 1e-3
    p = p / p.sum()
    return p, w / (p @ w), draw.normal(size=(levels, outputs))


def parts_of(p, w, m):
    """One row per level of A, all of one u."""
    levels = len(p)
    return Parts(m, w, np.broadcast_to(m, (levels, *m.shape)), np.tile(w, (levels, 1)), np.tile(p, (levels, 1)))


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_formula_is_the_solution_of_the_quadratic_program(seed, gamma):
    p, w, m = random_model(seed)
    assert np.abs(parts_of(p, w, m).at(gamma) - solution_of_quadratic_program(p, w, m, gamma)).max() < 1e-10


@given(st.integers(0, 2**32 - 1))
def test_ends_are_the_model_and_its_mean_given_what_a_did_not_cause(seed):
    p, w, m = random_model(seed)
    parts = parts_of(p, w, m)
    assert (parts.at(0.0) == m).all()
    assert np.abs(parts.at(np.inf) - (p * w) @ m).max() < 1e-12
    assert np.abs(parts.at(1e12) - parts.at(np.inf)).max() < 1e-9


def test_probabilities_stay_probabilities():
    p, w, _ = random_model(0)
    m = np.random.default_rng(1).dirichlet(np.ones(3), size=len(p))
    for gamma in (0.1, 1.0, 100.0, np.inf):
        mixed = parts_of(p, w, m).at(gamma)
        assert mixed.min() >= 0
        assert mixed.sum(axis=1) == pytest.approx(1)


def test_mean_of_draws_is_that_of_each_row():
    class Numbers:
        def at(self, gamma):
            return np.array([[1.0], [3.0], [5.0], [9.0]])

    assert MeanOfDraws(Numbers(), 2).at(1.0).tolist() == [[2.0], [7.0]]
