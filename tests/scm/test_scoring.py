import numpy as np
import pytest

from ciplearn.scm.kinds import Categories, Scalar, Vector
from ciplearn.scm.mechanism import Mechanism, NodeSample
from ciplearn.scm.report import crps_of_draws, marginal_losses, row_losses, score


def sample(kind, values):
    return NodeSample("V", kind, (), {"V": np.asarray(values)}, {"V": kind})


class Known(Mechanism):
    """A law that is the same in every row, by its quantile function."""

    def __init__(self, law):
        self.law = law

    def quantiles(self, parents, levels):
        return np.broadcast_to(self.law(levels), (len(parents["V"]), len(levels)))

    draw = evaluate = recover = posterior = None


Known.__abstractmethods__ = frozenset()


def test_crps_of_a_uniform_law_is_the_integral_of_its_definition():
    # ∫ (F(t) − 1[v ≤ t])² dt = (v³ + (1 − v)³) / 3 on [0, 1].
    v = np.array([0.0, 0.3, 0.5, 1.0])
    scores = row_losses(Known(lambda levels: levels), sample(Scalar(), v), v)
    np.testing.assert_allclose(scores, (v**3 + (1 - v) ** 3) / 3, atol=1e-3)


def test_crps_of_draws_is_that_of_their_law():
    v = np.array([0.2, 0.9])
    draws = np.tile((np.arange(2000) + 0.5) / 2000, (2, 1))
    held_out = sample(Scalar(), v)
    scores = row_losses(Known(lambda q: q), held_out, v)
    np.testing.assert_allclose(crps_of_draws(draws, held_out), scores, atol=1e-3)


def test_a_law_that_ignores_the_parents_scores_zero_and_a_sharp_one_nearly_one():
    seen = np.random.default_rng(0).normal(size=400)
    reference = marginal_losses(sample(Scalar(), seen), seen)
    assert score(reference, reference, Scalar()) == 0
    assert score(reference / 100, reference, Scalar()) == pytest.approx(0.99)
    both = sample(Vector(2), np.column_stack([seen, 1000 * seen]))
    np.testing.assert_allclose(marginal_losses(both, both.target), reference / seen.std())


def test_gain_of_labels_is_over_their_smoothed_frequencies():
    kind = Categories(["a", "b"])
    held_out = sample(kind, np.array(["a", "a", "b"], dtype=object))
    frequencies = np.array([2.5, 2.5, 1.5]) / 4
    reference = marginal_losses(held_out, held_out.target)
    np.testing.assert_allclose(reference, -np.log(frequencies))
    assert score(np.zeros(3), reference, kind) == pytest.approx(-np.log(frequencies).mean())
