import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, StructuralCausalModel
from tests.scm import models


def enumerated(row, action):
    """P(X', Y' | row, do(A = action)) of `models.coins` from the definition: all noises that fit, by weight."""
    law: dict[tuple[str, str], float] = {}
    total = 0.0
    for ux, uy in itertools.product((0, 1), repeat=2):
        weight = (0.3 if ux else 0.7) * (0.2 if uy else 0.8)
        x = (row["A"] == "yes") or ux == 1
        y = x ^ (row["A"] == "yes") ^ (uy == 1)
        if (x, y) != (row["X"] == "yes", row["Y"] == "yes"):
            continue
        total += weight
        new_x = (action == "yes") or ux == 1
        new_y = new_x ^ (action == "yes") ^ (uy == 1)
        key = ("yes" if new_x else "no", "yes" if new_y else "no")
        law[key] = law.get(key, 0.0) + weight
    return {key: weight / total for key, weight in law.items()}


@pytest.mark.parametrize("action", ["no", "yes"])
@pytest.mark.parametrize(
    "row", [("yes", "yes", "no"), ("yes", "yes", "yes"), ("no", "yes", "yes"), ("no", "no", "yes")]
)
def test_posterior_draws_follow_exact_enumeration(row, action):
    rows = pd.DataFrame([row], columns=["A", "X", "Y"])
    found = models.coins().counterfactual(rows, {"A": action}, n_draws=20_000, random_state=0)
    shares = found.astype(str).value_counts(["X", "Y"], normalize=True)
    expected = enumerated(rows.iloc[0], action)
    assert set(shares.index) == set(expected)
    for key, share in expected.items():
        assert abs(shares[key] - share) < 0.012  # three standard errors of 20 000 draws


def test_rejection_draws_the_noise_from_its_law_given_the_value():
    scm = models.rounded()
    rows = pd.DataFrame({"A": [0.4], "K": [1.0], "B": [1.0]})
    units = scm.abduct(rows, n_draws=20_000, random_state=0)
    u = units.noise["K"]
    # round(0.4 + u) = 1 is u in (0.1, 1.1): a truncated normal.
    assert u.min() > 0.099
    assert u.max() < 1.101
    mean = (norm.pdf(0.1) - norm.pdf(1.1)) / (norm.cdf(1.1) - norm.cdf(0.1))
    assert abs(u.mean() - mean) < 0.008
    assert not units.exact


def test_a_row_that_no_noise_explains_is_named():
    rows = pd.DataFrame({"A": ["yes"], "X": ["no"], "Y": ["no"]})
    with pytest.raises(InputError, match="No noise of X reproduces its observed value in 1 of 1 rows"):
        models.coins().counterfactual(rows, {"A": "no"})


def test_continuous_noise_without_an_inverse_is_an_error_that_names_the_node():
    scm = StructuralCausalModel(
        CausalGraph.from_edges("A -> Y"),
        {"A": Additive(), "Y": lambda p, u: p["A"] + u**2},
        {"A": norm(), "Y": norm()},
    )
    with pytest.raises(InputError, match=r"noise of Y cannot be read back.*inverses"):
        scm.counterfactual(scm.sample(5, random_state=0), {"A": 0.0})


def test_the_absolute_value_is_not_taken_for_linear():
    # On positive noise |u| looks linear; both signs have to be tried.
    scm = StructuralCausalModel(
        CausalGraph.from_edges("A -> Y"),
        {"A": Additive(), "Y": lambda p, u: p["A"] + np.abs(u)},
        {"A": norm(), "Y": norm()},
    )
    with pytest.raises(InputError, match="noise of Y"):
        scm.counterfactual(scm.sample(3, random_state=0), {"A": 0.0})


def test_rare_rows_are_explained_too():
    # round(u) = 5 has a probability of 3e-6.
    rows = pd.DataFrame({"A": [0.0], "K": [5.0], "B": [1.0]})
    units = models.rounded().abduct(rows, nodes=["K"], random_state=0)
    assert 4.5 <= units.noise["K"][0] <= 5.5


def _twice_the_cause(parents, noise):
    return 2 * parents["A"] + noise


def _by_function(n, generator):
    return generator.standard_normal(n)


@pytest.mark.parametrize("noise", [norm(0, 1), _by_function, 0])
def test_a_model_of_functions_that_can_be_pickled_can_be_pickled(noise):
    scm = StructuralCausalModel(
        CausalGraph.from_edges("A -> Y"),
        equations={"A": Additive(), "Y": _twice_the_cause},
        noise={"A": norm(0, 1), "Y": noise},
    )
    again = pickle.loads(pickle.dumps(scm))
    pd.testing.assert_frame_equal(again.sample(5, random_state=0), scm.sample(5, random_state=0))
