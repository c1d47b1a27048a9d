"""The penalties of Veitch et al."""

import numpy as np
import pandas as pd
import pytest

from ciplearn import HSIC, MMD, CausalGraph, Gaussian, baselines, datasets
from ciplearn._core.errors import InputError


@pytest.mark.parametrize(("case", "direction"), [("veitch_causal", "causal"), ("veitch_anticausal", "anticausal")])
def test_penalty_falls_in_the_direction_that_the_graph_has(case, direction):
    scm = getattr(datasets, case)()
    rows = scm.sample(300, random_state=0)
    X, y = rows[["A", "X"]], rows["Y"]
    found = {}
    for gamma in (0.0, 5.0):
        model = baselines.Veitch(
            graph=scm.graph, outcome="Y", protected=["A"], gamma=gamma, epochs=40, learning_rate=3e-3, random_state=0
        ).fit(X, y)
        found[gamma] = model.penalty_value(X, y)
        assert model.direction_ == direction
        assert bool(model.independence_.given) == (direction == "anticausal")
        assert model.inputs_ == ("A", "X")
    assert found[5.0] < 0.5 * found[0.0]


def test_causal_penalty_is_hsic_of_prediction_and_a():
    scm = datasets.veitch_causal()
    rows = scm.sample(200, random_state=0)
    X, y = rows[["A", "X"]], rows["Y"]
    model = baselines.Veitch(graph=scm.graph, outcome="Y", protected=["A"], epochs=2, random_state=0).fit(X, y)
    # From the definition: HSIC = tr(K C L C) / n² on columns scaled to [0, 1].
    scaled = [(part - part.min()) / np.ptp(part) for part in (y.to_numpy(), X["A"].to_numpy())]
    prediction = (model.predict(X) - y.min()) / (y.max() - y.min())
    grams = [np.exp(-((part[:, None] - part) ** 2) / (2 * 0.1**2)) for part in (prediction, scaled[1])]
    centring = np.eye(200) - 1 / 200
    expected = np.trace(grams[0] @ centring @ grams[1] @ centring) / 200**2
    np.testing.assert_allclose(model.penalty_value(X), expected, rtol=1e-4)


def discrete(n=300):
    generator = np.random.default_rng(0)
    a = generator.choice(["f", "m"], n)
    x = (a == "m") + generator.standard_normal(n)
    return pd.DataFrame({"A": a, "X": x}), x + (a == "m") + 0.1 * generator.standard_normal(n)


def test_groups_are_compared_by_mmd_within_the_classes_of_y_where_y_causes_the_inputs():
    X, signal = discrete()
    labels = np.where(signal > signal.mean(), "yes", "no")
    for direction in ("causal", "anticausal"):
        fitted = {
            gamma: baselines.Veitch(
                protected=["A"], direction=direction, gamma=gamma, epochs=40, learning_rate=1e-2, random_state=0
            ).fit(X, labels)
            for gamma in (0.0, 10.0)
        }
        assert isinstance(fitted[10.0].model_.penalty, MMD)
        assert fitted[10.0].penalty_value(X, labels) < 0.3 * fitted[0.0].penalty_value(X, labels)


def test_number_a_takes_hsic_and_own_penalty_is_taken():
    X, signal = discrete()
    model = baselines.Veitch(protected=["X"], direction="causal", epochs=1, random_state=0).fit(X, signal)
    assert isinstance(model.model_.penalty, HSIC)
    own = HSIC(Gaussian(0.5))
    assert (
        baselines.Veitch(protected=["X"], direction="causal", penalty=own, epochs=1).fit(X, signal).model_.penalty
        is own
    )


def test_direction_that_cannot_be_read_is_asked_for(X, y):
    mixed = CausalGraph.from_edges("Z -> Y, Y -> L, A -> L")
    with pytest.raises(InputError, match=r"neither causal nor anti-causal: 'Y' is caused by \{Z\} and causes \{L\}"):
        baselines.Veitch(graph=mixed, outcome="Y", protected=["A"]).fit(X, y)
    with pytest.raises(InputError, match="read off a graph"):
        baselines.Veitch(protected=["A"]).fit(X, y)
    with pytest.raises(InputError, match="direction must be"):
        baselines.Veitch(protected=["A"], direction="up").fit(X, y)
    fitted = baselines.Veitch(protected=["A"], direction="anticausal", epochs=1).fit(X, y)
    with pytest.raises(InputError, match="pass y"):
        fitted.penalty_value(X)
