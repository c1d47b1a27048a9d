"""Training on rows that a causal model imagines."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from ciplearn import (
    CausalGraph,
    CIPClassifier,
    CIPRegressor,
    GammaSearch,
    StructuralCausalModel,
    frontier,
    variance_of_counterfactuals,
)
from ciplearn._core.errors import InputError
from ciplearn.estimators.networks import InvariantPath, Perceptron
from ciplearn.saving import load_model, save_model

GRAPH = CausalGraph.from_edges("A -> L, L -> Y, A -> Y, Z -> L, Z -> Y")


def process(law=None, slope=1.0):
    return StructuralCausalModel(
        GRAPH,
        equations={
            "A": lambda p, u: u,
            "Z": lambda p, u: u,
            "L": lambda p, u: slope * p["A"] + p["Z"] + u,
            "Y": lambda p, u: p["L"] + p["A"] + p["Z"] + 0.1 * u,
        },
        noise={"A": law or stats.norm(), "Z": stats.norm(), "L": stats.norm(), "Y": stats.norm()},
        inverses={
            "A": lambda p, value: value,
            "Z": lambda p, value: value,
            "L": lambda p, value: value - slope * p["A"] - p["Z"],
            "Y": lambda p, value: (value - p["L"] - p["A"] - p["Z"]) / 0.1,
        },
    )


def drawn(scm, n=400, seed=0):
    table = scm.sample(n, random_state=seed)
    return table[["A", "L", "Z"]], table["Y"]


def quick(scm, kind=CIPRegressor, **settings):
    settings = {"gamma": 10.0, "epochs": 80, "batch_size": 64, "learning_rate": 1e-2, "random_state": 0, **settings}
    return kind(graph=scm.graph, outcome="Y", protected=["A"], counterfactuals=scm, **settings)


@pytest.mark.parametrize("law", [stats.norm(), stats.bernoulli(0.4)], ids=["number", "two values"])
def test_what_the_protected_variable_did_not_cause_is_kept(law):
    scm = process(law)
    X, y = drawn(scm)
    model = quick(scm).fit(X, y)
    free = CIPRegressor(epochs=60, learning_rate=1e-2, random_state=0).fit(X, y)
    new, truth = drawn(scm, seed=1)
    vcf = [
        variance_of_counterfactuals(one, scm, new, "A", n_points=100, n_interventions=20, random_state=0).value
        for one in (model, free)
    ]
    assert vcf[0] < 0.05 * vcf[1]
    # CF1 knows Z alone; the noise of L is a third of what an invariant predictor may know.
    residual = truth - model.predict(new)
    assert residual.var() < 0.75 * (truth - 2 * new["Z"]).var()
    assert model.route_ == "counterfactual"
    assert model.independence_ is None


def test_penalty_is_the_variance_between_imagined_rows():
    scm = process()
    X, y = drawn(scm, 60)
    model = quick(scm, epochs=2).fit(X, y)
    worlds = model.penalty_on(X).rows.inputs[0][:, :4]
    with torch.no_grad():
        answers = torch.stack([model.module_.double()(worlds[:, place].double()) for place in range(4)])
    assert model.penalty_value(X) == pytest.approx(float(answers.var(dim=0).mean()), rel=1e-5)


def test_two_values_are_imagined_exactly_and_draws_are_the_same_in_every_world():
    scm = process(stats.bernoulli(0.4))
    X, y = drawn(scm, 50)
    model = quick(scm, epochs=1).fit(X, y)
    rows = model.penalty_on(X).rows
    share = X["A"].mean()
    order = X["A"].drop_duplicates().tolist()
    assert rows.weights.tolist() == pytest.approx([share if value == 1 else 1 - share for value in order])
    imagined = scm.counterfactual(X, {"A": order[1]})
    np.testing.assert_allclose(rows.inputs[0][:, 1], model.encoding_.features(imagined[["A", "L", "Z"]]), atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"early_stopping": True}, {"module": lambda: torch.nn.Linear(3, 1)}])
def test_the_route_works_with_every_way_to_train(settings):
    scm = process()
    X, y = drawn(scm, 120)
    first, second = (quick(scm, epochs=3, **settings).fit(X, y) for _ in range(2))
    assert np.array_equal(first.predict(X), second.predict(X))


@pytest.mark.filterwarnings("ignore:Even the")
def test_searches_and_frontiers_take_the_route():
    scm = process()
    X, y = drawn(scm, 300)
    model = quick(scm, epochs=20)
    table = frontier(model, X, y, gammas=[0, 1, 10], seeds=[0]).table
    assert table["penalty"].is_monotonic_decreasing
    search = GammaSearch(model, tolerance=0.5, max_trials=3, cv=1, random_state=0).fit(X, y)
    assert search.best_gamma_ > 0
    assert search.best_estimator_.route_ == "counterfactual"


def test_a_search_that_ends_without_a_penalty_keeps_the_route_also_where_the_graph_does_not_certify():
    scm = process()
    X, y = drawn(scm, 100)
    hidden = CausalGraph.from_dagitty("dag { H [latent] ; H -> A ; H -> L ; A -> Y ; L -> Y ; Z -> Y }")
    model = quick(scm, epochs=2).set_params(graph=hidden, context=["A"], adjustment=[])
    assert not hidden.criterion(outcome="Y", protected=["A"], context=["A"], adjustment=[]).holds
    with pytest.warns(UserWarning, match="gamma"):
        search = GammaSearch(model, tolerance=1e-9, low=1e3, max_trials=2, cv=1, random_state=0).fit(X, y)
    assert search.best_gamma_ == 0
    assert search.best_estimator_.route_ == "counterfactual"
    free = CIPRegressor(epochs=2, batch_size=64, learning_rate=1e-2, random_state=0).fit(X, y)
    assert np.array_equal(search.predict(X), free.predict(X))
    assert search.penalty_value(X) > 0


def test_classes_and_several_protected_variables():
    graph = CausalGraph.from_edges("A -> L, B -> L, L -> Y")
    scm = StructuralCausalModel(
        graph,
        equations={
            "A": lambda p, u: u,
            "B": lambda p, u: u,
            "L": lambda p, u: p["A"] + p["B"] + u,
            "Y": lambda p, u: p["L"] + u,
        },
        noise={"A": stats.bernoulli(0.5), "B": stats.norm(), "L": stats.norm(), "Y": stats.norm()},
        inverses={
            "A": lambda p, value: value,
            "B": lambda p, value: value,
            "L": lambda p, value: value - p["A"] - p["B"],
            "Y": lambda p, value: value - p["L"],
        },
    )
    table = scm.sample(400, random_state=0)
    X, labels = table[["A", "B", "L"]], np.where(table["Y"] > 0.5, "high", "low")
    common = {"graph": graph, "outcome": "Y", "protected": ["A", "B"], "epochs": 40, "learning_rate": 1e-2}
    model = CIPClassifier(counterfactuals=scm, gamma=30.0, random_state=0, **common).fit(X, labels)
    free = CIPClassifier(epochs=40, learning_rate=1e-2, random_state=0).fit(X, labels)
    moved = scm.counterfactual(X, {"A": 1 - X["A"].to_numpy(), "B": -X["B"].to_numpy()})
    apart = [np.abs(one.predict_proba(moved)[:, 0] - one.predict_proba(X)[:, 0]).mean() for one in (model, free)]
    assert apart[0] < 0.3 * apart[1]


def test_the_worst_of_several_models_counts():
    scm = process()
    X, y = drawn(scm, 200)
    models = [scm, process(slope=3.0)]
    model = quick(scm, epochs=5).set_params(counterfactuals=models).fit(X, y)
    together = model.penalty_value(X)
    alone = [model.set_params(counterfactuals=one).penalty_value(X) for one in models]
    assert together == pytest.approx(max(alone))
    assert max(alone) > 1.1 * min(alone)


def test_saved_models_say_what_made_their_imagined_rows(tmp_path):
    scm = process()
    X, y = drawn(scm, 100)
    model = quick(scm, epochs=2).fit(X, y)
    again = load_model(save_model(model, tmp_path / "model"))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.route_ == "counterfactual"
    assert "imagined by" in (tmp_path / "model" / "README.md").read_text()


def test_worlds_can_be_passed_with_tensors():
    draw = np.random.default_rng(0)
    protected = draw.integers(2, size=80)
    pictures = torch.from_numpy(draw.random((80, 4, 4))).float() + torch.from_numpy(protected)[:, None, None].float()

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(17, 1)

        def forward(self, table, images):
            return self.layer(torch.cat([table, images.flatten(1)], dim=1))

    X, y = pd.DataFrame({"A": protected}), protected + pictures.mean(dim=(1, 2)).numpy()
    shift = torch.from_numpy(protected)[:, None, None].float()
    worlds = [(pd.DataFrame({"A": np.full(80, v)}), [pictures - shift + v]) for v in (0, 1)]
    model = CIPRegressor(module=Network, gamma=100.0, epochs=200, learning_rate=1e-2, random_state=0)
    model.fit(X, y, tensors=[pictures], imagined=worlds)
    first, second = (model.predict(table, tensors=tensors) for table, tensors in worlds)
    assert np.abs(first - second).mean() < 0.1
    assert model.predict(X, tensors=[pictures]).std() > 0.01


def test_the_default_network_has_a_path_for_what_the_protected_variable_leaves_alone():
    scm = process()
    X, y = drawn(scm, 100)
    model = CIPRegressor(graph=GRAPH, outcome="Y", protected=["A"], epochs=1, random_state=0).fit(X, y)
    assert isinstance(model.module_, InvariantPath)
    assert model.roles_.unchanged == ("Z",)
    assert model.module_.places.tolist() == [2]
    plain = CIPRegressor(graph=GRAPH, outcome="Y", protected=["A"], epochs=1, invariant_path=False, random_state=0)
    assert isinstance(plain.fit(X, y).module_, Perceptron)
    own = CIPRegressor(
        graph=GRAPH, outcome="Y", protected=["A"], epochs=1, module=lambda: torch.nn.Linear(3, 1), random_state=0
    )
    assert isinstance(own.fit(X, y).module_, torch.nn.Linear)
    assert isinstance(own.set_params(invariant_path=True).fit(X, y).module_, InvariantPath)


class Strange:
    graph = GRAPH

    def __init__(self, answer):
        self.answer = answer

    def counterfactual(self, rows, interventions):
        return self.answer(rows)


REFUSED = {
    "gamma 0": (lambda scm: quick(scm, gamma=0.0), "with gamma=0, which ignores them"),
    "no model": (lambda scm: CIPRegressor(protected=["A"], counterfactuals=5), "must have a method counterfactual"),
    "no models": (lambda scm: CIPRegressor(protected=["A"], counterfactuals=[]), "holds no model"),
    "nothing protected": (lambda scm: CIPRegressor(counterfactuals=scm), "no protected column was named"),
    "other nodes": (
        lambda scm: CIPRegressor(
            protected=["A"],
            counterfactuals=StructuralCausalModel(
                CausalGraph.from_edges("A -> Q"),
                equations={"A": lambda p, u: u, "Q": lambda p, u: u},
                noise={"A": stats.norm(), "Q": stats.norm()},
            ),
        ),
        "does not know the input 'L'",
    ),
    "not intervened on": (
        lambda scm: CIPRegressor(protected=["L2"], counterfactuals=scm),
        "The protected column 'L2' is not in X",
    ),
    "gaps": (
        lambda scm: CIPRegressor(protected=["A"], counterfactuals=Strange(lambda rows: rows.assign(L=np.nan))),
        "imagines missing values of 'L'",
    ),
    "too large": (
        lambda scm: CIPRegressor(protected=["A"], counterfactuals=Strange(lambda rows: rows.assign(L=1e60))),
        "for single precision",
    ),
    "fewer rows": (
        lambda scm: CIPRegressor(protected=["A"], counterfactuals=Strange(lambda rows: rows[:3])),
        "must return a frame with the 50 rows",
    ),
}


@pytest.mark.parametrize("graph", [None, CausalGraph.from_edges("A -> L, Y -> L, Z -> L")])
def test_several_outcomes_cannot_stand_for_the_one_that_a_model_asks_for(graph):
    X, y = drawn(process(), 50)
    seen = []
    strange = Strange(lambda rows: seen.append(list(rows["Y"])) or rows)
    strange.graph = graph
    model = CIPRegressor(outcome="Y", protected=["A"], counterfactuals=strange, epochs=1, random_state=0)
    for target in (y, y.to_frame()):
        model.fit(X, target)
        assert seen[-1] == list(y)
    with pytest.raises(InputError, match="by its 'Y', which is one value, got a target of 2 columns"):
        model.fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_imagined_is_refused_in_one_sentence(case):
    make, message = REFUSED[case]
    scm = process()
    X, y = drawn(scm, 50)
    with pytest.raises(InputError, match=message) as raised:
        make(scm).fit(X, y)
    assert "\n" not in str(raised.value)
