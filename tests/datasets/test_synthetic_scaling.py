import numpy as np
import pandas as pd
import pytest

from ciplearn import datasets, fit_scm
from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.datasets import MinMaxScaling
from ciplearn.scm import VariationalLatent


def test_scaling_is_onto_zero_and_one_and_can_be_undone():
    rows = datasets.first_synthetic().sample(300, random_state=0).assign(who="x")
    scaling = MinMaxScaling.fit(rows)
    scaled = scaling.transform(rows)
    numbers = scaled.drop(columns="who")
    assert (numbers.min() == 0).all()
    assert (numbers.max() == 1).all()
    pd.testing.assert_frame_equal(scaling.inverse_transform(scaled), rows)


@pytest.mark.parametrize(
    "build", [datasets.first_synthetic, lambda: datasets.multidimensional(3), datasets.veitch_causal]
)
def test_a_scaled_model_does_what_the_model_does_on_scaled_rows(build):
    scm = build()
    rows = scm.sample(100, random_state=0)
    scaling = MinMaxScaling.fit(rows)
    scaled = scaling.model(scm)
    one, other = scaled.sample(50, random_state=1), scaling.transform(scm.sample(50, random_state=1))
    np.testing.assert_allclose(one, other, atol=1e-12)
    columns = scm.columns("A")
    acted = rows[columns].sample(frac=1, random_state=0).reset_index(drop=True)
    there = scaled.counterfactual(scaling.transform(rows), {"A": scaling.transform(acted)})
    here = scaling.transform(scm.counterfactual(rows, {"A": acted}))
    exact = [column for column in rows if column != "Y"] if scm.graph.latent else list(rows)
    np.testing.assert_allclose(there[exact], here[exact], atol=1e-9)


def test_a_scaled_predictor_answers_on_the_scale_of_the_outcome():
    rows = pd.DataFrame({"A": [0.0, 10.0], "Y": [5.0, 25.0]})
    predictor = MinMaxScaling.fit(rows).predictor(lambda r: 2 * r["A"] + 5, "Y")
    np.testing.assert_allclose(predictor.predict(pd.DataFrame({"A": [0.0, 0.5, 1.0]})), [0.0, 0.5, 1.0])


def test_a_scaled_estimated_model_stays_model_based_and_keeps_its_encoder():
    generator = np.random.default_rng(0)
    a, h = generator.normal(size=(2, 100))
    rows = pd.DataFrame({"A": a, "X": a + h, "Y": h + generator.normal(size=100)})
    graph = CausalGraph.from_edges("A -> X, H -> X, H -> Y", latent=["H"])
    fitted = fit_scm(graph, rows, {"H": VariationalLatent(epochs=2)})
    scaling = MinMaxScaling.fit(rows)
    scaled = scaling.model(fitted)
    assert scaled.model_based
    again = scaled.counterfactual(scaling.transform(rows), {"A": scaling.transform(rows)["A"]})
    np.testing.assert_allclose(again, scaling.transform(rows), atol=1e-9)


def test_a_constant_column_maps_to_zero():
    rows = pd.DataFrame({"A": [3.0, 3.0]})
    assert (MinMaxScaling.fit(rows).transform(rows)["A"] == 0).all()


@pytest.mark.parametrize("frame", [pd.DataFrame({"A": [1.0, np.inf]}), pd.DataFrame({"A": []}), [1, 2]])
def test_what_cannot_be_scaled_is_refused(frame):
    with pytest.raises(InputError):
        MinMaxScaling.fit(frame)


def test_an_unknown_outcome_is_refused():
    with pytest.raises(InputError, match="outcome names 'Q'"):
        MinMaxScaling.fit(pd.DataFrame({"A": [1.0, 2.0]})).predictor(len, "Q")
