import numpy as np
import pandas as pd
import pytest
import torch

from ciplearn import fit_scm
from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.scm import AdditiveNoise, VariationalLatent

GRAPH = CausalGraph.from_edges("A -> X, A -> T, H -> X, H -> T, X -> Y, T -> Y", latent=["H"])


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    a, h = generator.normal(size=(2, 600))
    x = a + h + 0.3 * generator.normal(size=600)
    t = np.array(["low", "mid", "high"], dtype=object)[np.digitize(h + 0.5 * a, [-0.7, 0.7])]
    return pd.DataFrame({"A": a, "X": x, "T": t, "Y": x + (t == "high") + generator.normal(size=600)})


@pytest.fixture(scope="module")
def fitted(rows):
    return fit_scm(GRAPH, rows, {"H": VariationalLatent(epochs=40)})


def test_the_defaults_are_the_papers():
    recipe = VariationalLatent()
    assert (recipe.size, recipe.hidden, recipe.epochs, recipe.batch_size, recipe.learning_rate) == (
        10,
        20,
        100,
        128,
        1e-2,
    )


def test_consistency_holds_for_every_draw_of_the_latent_node(fitted, rows):
    again = fitted.counterfactual(rows, {"A": rows["A"]}, n_draws=3)
    for draw in range(3):
        one = again.xs(draw, level="draw")
        np.testing.assert_allclose(one[["A", "X", "Y"]], rows[["A", "X", "Y"]], atol=1e-10)
        assert (one["T"].astype(str) == rows["T"]).all()


def test_the_encoder_finds_the_latent_node(fitted, rows):
    units = fitted.abduct(rows, n_draws=50, random_state=0)
    assert not units.exact
    h = units.values["H"].reshape(len(rows), 50, 10).mean(axis=1)
    design = np.column_stack([h, np.ones(len(h))])
    residual = rows["X"] - rows["A"]
    explained = design @ np.linalg.lstsq(design, residual, rcond=None)[0]
    assert np.corrcoef(explained, residual)[0, 1] > 0.9


def test_draws_differ_and_repeat_with_the_seed(fitted, rows):
    first, again, other = (
        fitted.counterfactual(rows.head(5), {"A": 1.0}, n_draws=2, random_state=seed) for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_the_fit_leaves_torchs_global_state_alone(rows):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    fit_scm(GRAPH, rows.head(100), {"H": VariationalLatent(epochs=1)})
    assert torch.equal(torch.rand(3), expected)


def test_the_report_says_that_data_cannot_confirm_it(fitted):
    assert "H is a latent law learned with T, X; data cannot confirm it." in str(fitted.report)
    score = {fit.node: fit.score for fit in fitted.report.nodes}
    assert 0.2 < score["X"] < 0.7  # A alone explains about half of X
    assert score["T"] > -0.1


def test_a_mechanism_for_a_child_is_refused(rows):
    with pytest.raises(InputError, match="X comes about through its latent parent H"):
        fit_scm(GRAPH, rows, {"X": AdditiveNoise()})
    with pytest.raises(InputError, match="H is latent"):
        fit_scm(GRAPH, rows, {"H": AdditiveNoise()})


def test_the_encoder_needs_all_it_reads(fitted, rows):
    with pytest.raises(InputError, match="encoder of H reads"):
        fitted.counterfactual(rows[["A", "X"]], {"A": 1.0})


@pytest.mark.parametrize("setting", [{"size": 0}, {"epochs": -1}, {"learning_rate": 0.0}])
def test_bad_settings_are_refused(setting):
    with pytest.raises(InputError):
        VariationalLatent(**setting)
