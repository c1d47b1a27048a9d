"""The naive predictor and CF1."""

import numpy as np
import pytest
import torch
from torch import nn

from ciplearn import CausalGraph, CIPRegressor, baselines, datasets, variance_of_counterfactuals
from ciplearn._core.errors import InputError

CASES = {
    "first synthetic": datasets.first_synthetic,
    "scenario 1": datasets.scenario_1,
    "scenario 2": datasets.scenario_2,
    "vector": lambda: datasets.multidimensional(3),
}


def vcf(model, scm, rows, protected="A"):
    found = variance_of_counterfactuals(model, scm, rows, protected=[protected], n_points=40, n_interventions=30)
    return found.value


@pytest.mark.parametrize("case", CASES)
def test_cf1_never_varies(case):
    scm = CASES[case]()
    rows = scm.sample(200, random_state=0)
    model = baselines.CF1(graph=scm.graph, outcome="Y", protected=["A"], epochs=5, random_state=0)
    model.fit(rows.drop(columns="Y"), rows["Y"])
    assert model.inputs_ == ("Z",)
    assert vcf(model, scm, rows) == 0.0
    assert np.ptp(model.predict(rows)) > 0


class Drifting(nn.Module):
    """A network whose answer to a row depends on the rows before it, as rounding in single precision does."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, inputs):
        return self.layer(inputs) + torch.arange(len(inputs))[:, None] * 1e-3


def test_cf1_never_varies_even_if_its_network_depends_on_neighbours(scm, X, y, table, roles):
    model = baselines.CF1(**roles, module=Drifting, epochs=2).fit(X, y)
    few = X.assign(Z=0.0)[["Z"]].head(100)
    assert len(np.unique(model.model_.predict(few))) == len(few)
    assert vcf(model, scm, table) == 0.0


def test_naive_predictor_ignores_a_and_still_varies_with_it(scm, X, y, table, roles):
    model = baselines.NaivePredictor(**roles, epochs=100, learning_rate=1e-2).fit(X, y)
    assert set(model.inputs_) == {"Z", "L"}
    assert np.array_equal(model.predict(X), model.predict(X.assign(A=0.0)))
    assert vcf(model, scm, table) > 1e-3 * y.var()


def test_both_are_the_plain_network_on_their_columns(X, y, roles):
    for baseline in (baselines.NaivePredictor, baselines.CF1):
        model = baseline(**roles, epochs=3).fit(X, y)
        seen = X[list(model.inputs_)]
        plain = CIPRegressor(epochs=3, random_state=0).fit(seen, y)
        assert np.array_equal(model.predict(X), plain.predict(seen))


def test_prediction_needs_only_what_is_seen(X, y, roles):
    model = baselines.CF1(**roles, epochs=1).fit(X, y)
    assert np.array_equal(model.predict(X[["Z"]]), model.predict(X))
    with pytest.raises(InputError, match=r"needs the columns \['Z'\]"):
        model.predict(X[["A"]])


def test_descendants_through_hidden_variables_are_descendants(table, y):
    graph = CausalGraph.from_dagitty("dag { H [latent] ; A -> H -> L -> Y ; Z -> Y ; A <-> Z }")
    model = baselines.CF1(graph=graph, outcome="Y", protected=["A"], epochs=1).fit(table[["A", "L", "Z"]], y)
    assert model.inputs_ == ("Z",)


def test_cf1_says_when_everything_descends_from_a(X, y):
    graph = CausalGraph.from_edges("A -> L, L -> Y, A -> Z, Z -> Y")
    with pytest.raises(InputError, match=r"every input descends from \{A\}.*use CF2"):
        baselines.CF1(graph=graph, outcome="Y", protected=["A"]).fit(X, y)


def test_naive_predictor_needs_no_graph_and_says_when_nothing_is_left(X, y):
    model = baselines.NaivePredictor(protected=["A"], epochs=1, random_state=0).fit(X, y)
    assert model.inputs_ == ("Z", "L")
    with pytest.raises(InputError, match="Nothing is left to predict from"):
        baselines.NaivePredictor(protected=["A"], inputs=["A"], epochs=1).fit(X, y)
