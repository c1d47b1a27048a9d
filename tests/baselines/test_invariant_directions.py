import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

from ciplearn import CausalGraph, StructuralCausalModel
from ciplearn._core.errors import InputError
from ciplearn.baselines import CF1, InvariantDirections
from ciplearn.scm import Additive


def process(first=2.0, second=-1.0):
    """A moves L by ``first`` and M by ``second``; Z moves neither, and Y follows all three."""
    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> Y, A -> L, A -> M, L -> Y, M -> Y"),
        equations={
            "Z": Additive(),
            "A": Additive(),
            "L": Additive(lambda p: first * p["A"]),
            "M": Additive(lambda p: second * p["A"]),
            "Y": Additive(lambda p: p["L"] + p["M"] + p["Z"]),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(), "M": norm(), "Y": norm(0, 0.1)},
    )


INPUTS = ["Z", "A", "L", "M"]


def trained(models, rows, **more):
    settings = {"estimator": LinearRegression(), "random_state": 0, **more}
    model = InvariantDirections(outcome="Y", protected=["A"], counterfactuals=models, **settings)
    return model.fit(rows[INPUTS], rows["Y"])


@pytest.fixture(scope="module")
def rows():
    return process().sample(500, random_state=0)


def weights_of(model, rows):
    """The linear predictor's weights on the raw columns."""
    base = rows[INPUTS].mean().to_frame().T
    steps = [model.predict(base + np.eye(4)[place]) - model.predict(base) for place in range(4)]
    return np.concatenate(steps)


def test_it_is_least_squares_under_the_constraint_that_no_model_moves_it(rows):
    moved = [np.array([0, 1, 2, -1.0]), np.array([0, 1, 0.5, 3.0])]
    found = weights_of(trained([process(), process(0.5, 3.0)], rows), rows)
    # The same by Lagrange multipliers.
    x = rows[INPUTS].to_numpy() - rows[INPUTS].to_numpy().mean(axis=0)
    y = rows["Y"].to_numpy() - rows["Y"].mean()
    constraints = np.stack(moved)
    system = np.block([[x.T @ x, constraints.T], [constraints, np.zeros((2, 2))]])
    expected = np.linalg.solve(system, np.concatenate([x.T @ y, np.zeros(2)]))[:4]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("estimator", [LinearRegression(), None])
def test_predictions_do_not_differ_between_worlds_of_any_model(rows, estimator):
    models = [process(), process(0.5, 3.0)]
    model = trained(models, rows, estimator=estimator, epochs=3)
    for scm in models:
        said = [model.predict(scm.counterfactual(rows, {"A": value})[INPUTS]) for value in (-1.0, 2.0)]
        np.testing.assert_allclose(said[0], said[1], atol=1e-4 * rows["Y"].std())


def test_it_keeps_what_leaving_descendants_out_loses(rows):
    fresh = process().sample(500, random_state=1)
    left_out = CF1(
        graph=process().graph, outcome="Y", protected=["A"], estimator=LinearRegression(), random_state=0
    ).fit(rows[INPUTS], rows["Y"])
    model = trained(process(), rows)
    assert model.unchanged_ == ("Z",)
    assert model.directions_.shape == (3, 2)
    assert model.score(fresh[INPUTS], fresh["Y"]) > left_out.score(fresh[INPUTS], fresh["Y"]) + 0.2


def test_an_outcome_that_acts_on_an_input_is_shown_to_the_model(rows):
    graph = CausalGraph.from_edges("A -> Y, Y -> L, Z -> L")
    scm = StructuralCausalModel(
        graph,
        equations={
            "A": Additive(),
            "Z": Additive(),
            "Y": Additive(lambda p: p["A"]),
            "L": Additive(lambda p: 2 * p["Y"] + p["Z"]),
        },
        noise=dict.fromkeys("AZYL", norm()),
    )
    table = scm.sample(300, random_state=0)
    columns = ["A", "Z", "L"]
    model = InvariantDirections(
        outcome="Y", protected=["A"], counterfactuals=scm, estimator=LinearRegression(), random_state=0
    ).fit(table[columns], table["Y"])
    said = [model.predict(scm.counterfactual(table, {"A": value})[columns]) for value in (-1.0, 2.0)]
    np.testing.assert_allclose(said[0], said[1], atol=1e-4)
    assert model.unchanged_ == ("Z",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"counterfactuals": None}, "got counterfactuals=None"),
        ({"counterfactuals": []}, "holds no model"),
        ({"counterfactuals": 5}, "must have a method counterfactual"),
        ({"tolerance": 0}, "tolerance must be"),
        ({"inputs": ["A", "L"], "counterfactuals": [process(), process(0.5)]}, "Nothing is left to predict from"),
    ],
)
def test_what_cannot_be_learnt_is_refused_in_one_sentence(rows, change, words):
    arguments = {"models": change.pop("counterfactuals", process()), **change}
    with pytest.raises(InputError, match=words):
        trained(arguments.pop("models"), rows, **arguments)


def test_rows_with_gaps_teach_the_predictor_but_not_the_directions(rows):
    gaps = rows.copy()
    gaps.loc[:99, "L"] = np.nan
    model = trained(process(), gaps, missing="impute", estimator=None, epochs=2)
    assert model.directions_.shape == (3, 2)
    empty = rows.assign(L=np.where(np.arange(500) % 2, rows["L"], np.nan), M=np.where(np.arange(500) % 2, np.nan, 1.0))
    with pytest.raises(InputError, match="No row is complete"):
        trained(process(), empty, missing="impute", estimator=None, epochs=2)
