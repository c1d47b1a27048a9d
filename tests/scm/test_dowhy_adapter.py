import networkx
import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import InputTypeError
from ciplearn.scm import from_dowhy


class Root:
    """A stand-in for a fitted root mechanism of dowhy.gcm: draws from numpy's global state, as a column."""

    def draw_samples(self, num_samples):
        return np.random.normal(size=(num_samples, 1))  # noqa: NPY002


class Linear:
    """A stand-in for a fitted additive noise model of dowhy.gcm."""

    def __init__(self, weights):
        self.weights = np.asarray(weights)[:, None]

    def draw_noise_samples(self, num_samples):
        return np.random.normal(size=(num_samples, 1))  # noqa: NPY002

    def evaluate(self, parent_samples, noise_samples):
        return parent_samples @ self.weights + noise_samples

    def estimate_noise(self, target_samples, parent_samples):
        return target_samples - parent_samples @ self.weights


class Model:
    """A stand-in for dowhy.gcm.InvertibleStructuralCausalModel."""

    def __init__(self, mechanisms):
        self.graph = networkx.DiGraph([("b", "y"), ("a", "y"), ("a", "b")])
        for node, mechanism in mechanisms.items():
            self.graph.nodes[node]["causal_mechanism"] = mechanism

    def causal_mechanism(self, node):
        return self.graph.nodes[node]["causal_mechanism"]


@pytest.fixture
def model():
    return Model({"a": Root(), "b": Linear([2.0]), "y": Linear([1.0, 10.0])})


def test_counterfactuals_follow_the_fitted_mechanisms(model):
    scm = from_dowhy(model)
    found = scm.counterfactual(pd.DataFrame({"a": [1.0], "b": [2.5], "y": [27.0]}), {"a": 2.0})
    # b' = 4 + 0.5; y = a + 10 b + 1, parents in sorted order.
    np.testing.assert_allclose(found[["b", "y"]].to_numpy(), [[4.5, 48.0]])
    assert scm.model_based
    assert "fitted by dowhy.gcm" in str(scm.report)


def test_samples_repeat_with_the_seed_and_leave_the_global_state_alone(model):
    scm = from_dowhy(model)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    pd.testing.assert_frame_equal(scm.sample(10, random_state=0), scm.sample(10, random_state=0))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_what_is_no_invertible_model_is_refused(model):
    with pytest.raises(InputTypeError, match="must be a fitted dowhy"):
        from_dowhy("model")
    broken = Model({"a": Root(), "b": Root(), "y": Linear([1.0, 1.0])})
    with pytest.raises(InputTypeError, match="mechanism of b cannot be inverted"):
        from_dowhy(broken)
