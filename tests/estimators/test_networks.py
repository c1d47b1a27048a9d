"""Networks that fail, and rows that cannot be predicted, say what they got."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from ciplearn import CausalGraph, CIPRegressor
from ciplearn._core.errors import GraphError, InputError
from ciplearn.baselines import NaivePredictor
from ciplearn.estimators.networks import Constant, InvariantPath, LineNetwork, MeanNetwork, Perceptron, Ramps, outputs
from ciplearn.estimators.tables import FurtherInputs


class Pictured(nn.Module):
    """Reads the table and one picture per row."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3 + 4, 1)

    def forward(self, table, pictures):
        return self.layer(torch.cat([table, pictures], dim=1))


def notes(error):
    return " ".join(getattr(error.value, "__notes__", ()))


def test_network_of_another_width_is_told_what_it_got(X, y):
    table = X.assign(sex=np.where(X["A"] > 0, "f", "m"))
    with pytest.raises(RuntimeError, match="shapes") as error:
        CIPRegressor(module=nn.Linear(2, 1), epochs=1).fit(table, y)
    assert "5 columns wide: Z (1), A (1), L (1), sex (2)" in notes(error)


def test_further_inputs_that_are_missing_at_prediction_are_counted(X, y):
    pictures = torch.zeros(len(X), 4)
    model = CIPRegressor(module=Pictured, epochs=1, random_state=0).fit(X, y, tensors=[pictures])
    assert model.predict(X, tensors=[pictures]).shape == (len(X),)
    with pytest.raises(TypeError) as error:
        model.predict(X)
    assert "with 0 further inputs" in notes(error)


def test_default_network_refuses_further_inputs(X, y):
    with pytest.raises(InputError, match="takes the table alone"):
        CIPRegressor(epochs=1).fit(X, y, tensors=[torch.zeros(len(X), 4)])


@pytest.mark.parametrize("model", [CIPRegressor, NaivePredictor])
def test_gap_at_prediction_is_not_answered_with_what_was_done(model, X, y):
    more = {"protected": ["A"], "task": "regression"} if model is NaivePredictor else {}
    fitted = model(missing="drop", epochs=1, **more).fit(X, y)
    gap = X.copy()
    gap.loc[3, "Z"] = np.nan
    with pytest.raises(InputError, match='train with missing="impute"') as error:
        fitted.predict(gap)
    assert "drop" not in str(error.value).replace("drop or fill", "")


def test_graph_that_certifies_nothing_names_what_speaks_against_it_alone():
    graph = CausalGraph.from_edges("A -> L, L -> Y, A -> Y")
    rows = np.random.default_rng(0).normal(size=(20, 3))
    table = dict(zip("ALY", rows.T, strict=True))
    frame = pd.DataFrame(table)
    with pytest.raises(GraphError) as error:
        CIPRegressor(graph=graph, outcome="Y", protected=["A"], adjustment=["L"], epochs=1).fit(
            frame[["A", "L"]], frame["Y"]
        )
    verdict = graph.criterion(outcome="Y", protected=["A"], adjustment=["L"])
    for finding in verdict.findings:
        assert (finding.sentence in str(error.value)) == (not finding.holds and finding.condition != "paper")


def test_network_answers_in_double_precision_and_stays_as_it_is():
    ramps = Ramps([0], [0.2], [0.5])
    path = InvariantPath(Perceptron(1, (4,), 2), Perceptron(3, (4,), 2, ramps=ramps), [1])
    module = MeanNetwork([LineNetwork(Constant(torch.tensor([0.3, 0.7])), path, [1], 0.5, True), path], labels=True)
    before, rows = copy.deepcopy(module.state_dict()), torch.rand(7, 3)
    answers = outputs(module, rows, FurtherInputs.of((), 7))
    assert torch.equal(answers, copy.deepcopy(module).double()(rows.double()))
    for name, part in module.state_dict().items():
        assert part.dtype == before[name].dtype
        assert torch.equal(part, before[name])
