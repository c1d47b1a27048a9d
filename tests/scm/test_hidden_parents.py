import numpy as np
import pandas as pd
import pytest
from scipy.stats import bernoulli, norm

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, StructuralCausalModel
from tests.scm import models


def test_a_latent_parent_is_drawn_from_its_law_given_the_row():
    # H ~ N(0,1), A = H + e, Y − A = 2H + e/2: the posterior of H is normal with precision 1 + 1 + 16.
    scm = models.hidden()
    rows = pd.DataFrame({"A": [1.0, -0.5], "Y": [2.2, 0.3]})
    units = scm.abduct(rows, n_draws=4000, n_candidates=50_000, random_state=0)
    h = units.values["H"].reshape(2, -1)
    precision = 1 + 1 + 4 / 0.25
    mean = (rows["A"] + 2 * (rows["Y"] - rows["A"]) / 0.25) / precision
    np.testing.assert_allclose(h.mean(axis=1), mean, atol=0.02)
    np.testing.assert_allclose(h.std(axis=1), precision**-0.5, atol=0.01)
    assert (units.effective_draws > 1000).all()
    assert not units.exact


def test_discrete_evidence_about_a_latent_parent_is_used():
    scm = StructuralCausalModel(
        CausalGraph.from_edges("H -> A, H -> B, A -> B", latent=["H"]),
        {
            "H": lambda p, u: u,
            "A": lambda p, u: np.where(p["H"] + u > 1, 1.0, 0.0),
            "B": lambda p, u: p["H"] + p["A"] + u,
        },
        {"H": bernoulli(0.5), "A": norm(), "B": norm()},
    )
    rows = pd.DataFrame({"A": [1.0], "B": [1.0]})
    h = scm.abduct(rows, n_draws=8000, n_candidates=20_000, random_state=0).values["H"]
    odds = (norm.sf(0) * norm.pdf(1 - 1 - 1)) / (norm.sf(1) * norm.pdf(1 - 0 - 1))
    assert abs(h.mean() - odds / (1 + odds)) < 0.03


def test_a_latent_parent_without_a_density_below_it_is_an_error_that_names_the_child():
    scm = StructuralCausalModel(
        CausalGraph.from_edges("H -> A, H -> Y, A -> Y", latent=["H"]),
        {"H": Additive(), "A": Additive(lambda p: p["H"]), "Y": lambda p, u: p["H"] + p["A"] + u**3},
        {"H": norm(), "A": norm(), "Y": norm()},
    )
    with pytest.raises(InputError, match="hidden parents of Y cannot be inferred"):
        scm.counterfactual(scm.sample(3, random_state=0), {"A": 0.0})


def test_an_inverse_gives_the_density_by_change_of_variables():
    # Y = exp(H + u): the posterior of H given Y is normal with mean log(Y) / 2 and variance 1/2.
    scm = StructuralCausalModel(
        CausalGraph.from_edges("H -> Y, H -> Q", latent=["H"]),
        {"H": Additive(), "Y": lambda p, u: np.exp(p["H"] + u), "Q": Additive(lambda p: 0 * p["H"])},
        {"H": norm(), "Y": norm(), "Q": norm()},
        inverses={"Y": lambda p, v: np.log(v) - p["H"]},
    )
    rows = pd.DataFrame({"Y": [3.0], "Q": [0.0]})
    h = scm.abduct(rows, n_draws=5000, n_candidates=20_000, random_state=0).values["H"]
    assert abs(h.mean() - np.log(3) / 2) < 0.03
    assert abs(h.var() - 0.5) < 0.03


def test_rows_that_no_candidate_explains_are_refused():
    scm = StructuralCausalModel(
        CausalGraph.from_edges("H -> A, H -> B", latent=["H"]),
        {"H": lambda p, u: u, "A": lambda p, u: p["H"] + u, "B": lambda p, u: p["H"] + 0 * u},
        {"H": bernoulli(0.5), "A": bernoulli(0.5), "B": bernoulli(0.5)},
    )
    rows = pd.DataFrame({"A": [2.0], "B": [0.0]})
    with pytest.raises(InputError, match="No value of H among 1000 candidates explains"):
        scm.abduct(rows)


@pytest.mark.parametrize("solved", [True, False])
def test_a_spread_that_depends_on_the_latent_parent_is_counted_in_its_density(solved):
    # Y = (1 + 3H) u with H a coin: the odds of H = 1 are φ(y/4) / 4 against φ(y).
    scm = StructuralCausalModel(
        CausalGraph.from_edges("H -> Y, H -> Q", latent=["H"]),
        {"H": lambda p, u: u, "Y": lambda p, u: (1 + 3 * p["H"]) * u, "Q": Additive(lambda p: 0 * p["H"])},
        {"H": bernoulli(0.5), "Y": norm(), "Q": norm()},
        inverses=None if solved else {"Y": lambda p, v: v / (1 + 3 * p["H"])},
    )
    rows = pd.DataFrame({"Y": [1.0], "Q": [0.0]})
    h = scm.abduct(rows, n_draws=4000, n_candidates=20_000, random_state=0).values["H"]
    odds = norm.pdf(0.25) / 4 / norm.pdf(1)
    assert abs(h.mean() - odds / (1 + odds)) < 0.02
