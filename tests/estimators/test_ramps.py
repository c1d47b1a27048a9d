"""What the default network sees of a number beside the number itself."""

import numpy as np
import pandas as pd
import torch

from ciplearn import CausalGraph, CIPRegressor, load_model, save_model
from ciplearn.estimators.networks import InvariantPath, Perceptron, Ramps


def rows(n=2000):
    """A bend in a number, most of which is zero; and two groups."""
    generator = np.random.default_rng(0)
    gain = np.where(generator.uniform(size=n) < 0.9, 0.0, generator.exponential(1000, n))
    table = pd.DataFrame({"gain": gain, "age": generator.uniform(18, 80, n), "sex": generator.choice(["f", "m"], n)})
    return table, (gain > 300) + 0.05 * np.abs(table["age"] - 40) + 0.1 * generator.normal(size=n)


def test_ramps_are_what_the_definition_says():
    inputs = torch.rand(5, 2, dtype=torch.float64)
    ramps = Ramps([0, 1, 1], [0.2, 0.0, 0.5], [0.4, 0.5, 0.5]).double()
    found = ramps(inputs).numpy()
    for row, seen in zip(inputs.numpy(), found, strict=True):
        wanted = [
            *row,
            min(max((row[0] - np.float32(0.2)) / np.float32(0.4), 0), 1),
            min(row[1] / 0.5, 1),
            max((row[1] - 0.5) / 0.5, 0),
        ]
        np.testing.assert_allclose(seen, wanted, rtol=0, atol=1e-7)


def test_pieces_of_an_input_join_and_span_its_rows():
    inputs = torch.rand(3000, 3) ** 2
    ramps = Ramps.of(inputs)
    for place in range(3):
        own = ramps.source == place
        start, length = ramps.start[own], ramps.length[own]
        torch.testing.assert_close(start[1:], (start + length)[:-1])
        assert start[0] == inputs[:, place].min()
        torch.testing.assert_close((start + length)[-1], inputs[:, place].max())


def test_few_rows_and_indicators_have_no_ramps_and_many_inputs_share_them():
    assert len(Ramps.of(torch.rand(150, 2))) == 0
    assert len(Ramps.of(torch.randint(2, (5000, 4)).float())) == 0
    assert len(Ramps.of(torch.rand(2000, 100))) == 0
    assert 0 < len(Ramps.of(torch.rand(2000, 25))) <= 2 * 2000 // 20


def test_values_that_few_rows_hold_are_told_apart():
    column = torch.zeros(10_000, 1)
    column[:50, 0] = torch.linspace(0.01, 1, 50)
    assert len(Ramps.of(column)) > 12


def test_training_starts_from_the_function_without_ramps():
    inputs = torch.rand(1000, 2)
    made = [
        Perceptron(2, (8,), 1, generator=torch.Generator().manual_seed(0), ramps=ramps)
        for ramps in (None, Ramps.of(inputs))
    ]
    torch.testing.assert_close(made[0](inputs), made[1](inputs))


def test_they_are_used_but_where_dependence_is_penalised_and_come_back_from_a_folder(tmp_path):
    X, y = rows()
    free, held = (
        CIPRegressor(protected=["sex"], gamma=gamma, epochs=2, random_state=0).fit(X, y) for gamma in (0.0, 1.0)
    )
    assert free.module_.ramps is not None
    assert held.module_.ramps is None
    again = load_model(save_model(free, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), free.predict(X))


def test_the_invariant_path_has_them():
    X, y = rows()
    X = X.assign(region=np.random.default_rng(1).uniform(size=len(X)))
    graph = "sex -> gain, sex -> Y, gain -> Y, age -> Y, region -> Y"
    model = CIPRegressor(graph=CausalGraph.from_edges(graph), outcome="Y", protected=["sex"], epochs=1, gamma=1.0)
    module = model.fit(X, y).module_
    assert isinstance(module, InvariantPath)
    assert module.path.ramps is not None
    assert module.rest.ramps is None


def test_a_step_in_a_number_is_learnt():
    X, y = rows(4000)
    model = CIPRegressor(epochs=30, random_state=0).fit(X[:3000], y[:3000])
    assert model.score(X[3000:], y[3000:]) > 0.97
