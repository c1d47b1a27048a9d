"""All routes on the same rows, and the recommendation among them."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ciplearn import (
    CausalGraph,
    CIPClassifier,
    CIPRegressor,
    StructuralCausalModel,
    audit,
    datasets,
    variance_of_counterfactuals,
)
from ciplearn._core.errors import InputError
from ciplearn.routes import Comparison, compare_routes, route
from ciplearn.saving import load_model, save_model
from ciplearn.scm import Additive, fit_scm

GRAPH = CausalGraph.from_edges("A -> L, A -> Y, L -> Y, Z -> Y")
QUICK = {
    "graph": GRAPH,
    "outcome": "Y",
    "protected": ["A"],
    "epochs": 15,
    "batch_size": 128,
    "learning_rate": 2e-2,
}
FEW = {"gammas": (1.0, 10.0), "shares": (0.2, 0.05, 0.0)}


def process():
    """Two groups at the root, and a descendant whose own noise the outcome needs."""
    return StructuralCausalModel(
        GRAPH,
        equations={
            "A": Additive(),
            "Z": Additive(),
            "L": Additive(lambda p: 1.5 * p["A"]),
            "Y": Additive(lambda p: p["L"] + 0.5 * p["A"] + 0.5 * p["Z"]),
        },
        noise={"A": stats.bernoulli(0.4), "Z": stats.norm(), "L": stats.norm(), "Y": stats.norm(0, 0.3)},
    )


@pytest.fixture(scope="module")
def table():
    return process().sample(600, random_state=0)


@pytest.fixture(scope="module")
def comparison(table):
    return compare_routes(CIPRegressor(**QUICK), table[["A", "L", "Z"]], table["Y"], 0.6, **FEW, cv=2, random_state=0)


def test_every_route_and_baseline_is_judged_on_the_same_rows(comparison):
    table = comparison.table
    assert set(table["kind"]) == {"unconstrained", "independence", "counterfactual", "line", "left-out", "baseline"}
    assert table["loss"].notna().all()
    assert table["vcf"].notna().all()
    assert table["name"].is_unique
    assert set(comparison.models) == set(table["name"])


def test_the_recommendation_varies_least_among_what_the_tolerance_allows(comparison):
    table = comparison.table.set_index("name")
    chosen = table.loc[comparison.chosen]
    assert chosen["allowed"]
    floor = 0.01 * table.loc["unconstrained", "vcf"]
    others = table[table["allowed"] & table["kind"].isin(["independence", "line", "left-out"])]
    assert max(chosen["vcf"], floor) <= np.maximum(others["vcf"], floor).min()
    # What the protected variable did not cause is a part of L, and the straight line cannot keep it.
    assert chosen["loss"] < table.loc["CF1", "loss"] - 0.1
    assert comparison.chosen in comparison.reason
    assert chosen["rests_on"] in comparison.reason


def test_the_line_keeps_exactly_its_share_of_vcf(comparison, table):
    scm, rows = process(), table.head(100)
    names = ["unconstrained", "line, 20% of VCF kept", "line, 5% of VCF kept", "line, 0% of VCF kept"]
    models = {name: comparison.models[name] for name in names}
    found = variance_of_counterfactuals(models, scm, rows, "A", n_points=100, n_interventions=20, random_state=0)
    whole = found["unconstrained"].value
    shares = [found[name].value / whole for name in names]
    assert shares == pytest.approx([1.0, 0.2, 0.05, 0.0], abs=1e-6)


def test_vcf_is_judged_given_the_context_as_in_an_audit():
    # X = A Z: who knows the row sees Z, and what A does with it; given nothing, Z has mean zero and A does nothing.
    rng = np.random.default_rng(0)
    A, Z, noise = rng.choice([-1.0, 1.0], size=600), *rng.normal(size=(2, 600))
    table = pd.DataFrame({"A": A, "Z": Z, "X": A * Z, "Y": A * Z + 0.3 * noise})
    graph = CausalGraph.from_edges("A -> X, Z -> X, X -> Y")
    model = CIPRegressor(graph=graph, outcome="Y", protected=["A"], inputs=["X"], context=[], epochs=20)
    found = compare_routes(model, table[["A", "Z", "X"]], table["Y"], routes=["line"], shares=(0.5,), baselines=False)
    free = found.models["unconstrained"]
    vcf = audit(free, found.judge, table, n_points=200, n_interventions=20).vcf
    assert vcf.context == ()
    judged = found.table.set_index("name").loc["unconstrained", "vcf"]
    assert judged == pytest.approx(vcf.value, abs=0.05)
    assert variance_of_counterfactuals(free, found.judge, table, "A", 200, 20, inputs=["X"]).value > judged + 0.3


def test_what_is_just_beyond_the_tolerance_is_named_with_the_tolerance_that_it_needs(table):
    X, y = table[["A", "L", "Z"]], table["Y"]
    model = CIPRegressor(**{**QUICK, "epochs": 30, "learning_rate": 1e-2}, random_state=0)
    few = {"routes": ["line"], "shares": (0.5, 0.1), "baselines": False, "cv": 2, "random_state": 0}
    strict = compare_routes(model, X, y, tolerance=0.0, **few)
    assert strict.chosen == "unconstrained"
    (said,) = (note for note in strict.notes if "would leave" in note)
    needed = float(re.search(r"a tolerance of ([0-9.]+)", said).group(1))
    loose = compare_routes(model, X, y, tolerance=needed, **few)
    assert loose.chosen in said


def test_shares_below_a_percent_are_told_apart(table):
    X, y = table[["A", "L", "Z"]], table["Y"]
    found = compare_routes(
        CIPRegressor(**{**QUICK, "epochs": 1}, random_state=0),
        X,
        y,
        routes=["line"],
        shares=(0.004, 0.0),
        baselines=False,
    )
    assert {"line, 0.4% of VCF kept", "line, 0% of VCF kept"} <= set(found.table["name"])


# What a comparison that was told and changed since holds in the place of an entry.
CHANGED = {
    "rows": [None, "x", -1, [1], math.inf, 10**400],
    "limit": ["x", -1, {}, 10**400],
    "met": [None, "x", 1],
    "free": [None, 1],
    "chosen": ["nobody", None, []],
    "reason": [None, []],
    "notes": [None, "ab", [1]],
    "candidates": [None, [], "x", {"a": 1}, [1]],
}
CHANGED_CELLS = {
    "name": [None, 1, []],
    "learner": [1, []],
    "strict": [None, "x", 1],
    "allowed": ["x", {}],
    "loss": [None, "x", math.inf, True],
    "vcf": ["x", [1], 10**400],
    "keeps": [1],
}


def test_what_was_told_comes_back_and_what_no_comparison_tells_is_refused(comparison):
    told = json.loads(json.dumps(comparison.to_dict()))
    again = Comparison.from_dict(told)
    assert again.chosen == comparison.chosen
    assert list(again.table.columns) == list(comparison.table.columns)
    first, *others = told["candidates"]
    wrong = [{**told, name: value} for name, values in CHANGED.items() for value in values]
    cells = [{**first, name: value} for name, values in CHANGED_CELLS.items() for value in values]
    cells += [{key: value for key, value in first.items() if key != name} for name in CHANGED_CELLS]
    wrong += [{**told, "candidates": [one, *others]} for one in cells]
    for each in wrong:
        with pytest.raises((ValueError, TypeError, KeyError, IndexError, AttributeError)):
            Comparison.from_dict(each)


def test_the_line_is_saved_and_comes_back(comparison, table, tmp_path):
    model = comparison.models["line, 20% of VCF kept"]
    again = load_model(save_model(model, tmp_path / "line"))
    X = table[["A", "L", "Z"]]
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.route_ == "line"
    assert "straight line" in (tmp_path / "line" / "README.md").read_text()


def test_leaving_the_protected_columns_out_is_a_route_that_can_be_taken(tmp_path):
    # Little follows from A: what is left tells all there is.
    rng = np.random.default_rng(0)
    A, Z = rng.integers(2, size=300), rng.normal(size=300)
    table = pd.DataFrame({"A": A, "L": 0.01 * A + rng.normal(size=300), "Z": Z})
    y = table["L"] + Z + 0.3 * A + 0.1 * rng.normal(size=300)
    found = compare_routes(CIPRegressor(**QUICK), table, y, 0.3, routes=["left-out"], baselines=False, random_state=0)
    assert set(found.table["kind"]) == {"unconstrained", "left-out"}
    assert found.chosen == "protected columns left out"
    again = load_model(save_model(found.model, tmp_path / "m"))
    assert again.route_ == found.model.route_ == "left-out"
    assert again.roles_.inputs == ("L", "Z")
    assert np.array_equal(again.predict(table), again.predict(table.assign(A=1 - A)))
    assert "without looking at A" in (tmp_path / "m" / "README.md").read_text()


def test_labels_are_compared_by_their_probabilities(table):
    labels = np.where(table["Y"] > table["Y"].median(), "high", "low")
    model, few = (
        CIPClassifier(**{**QUICK, "epochs": 5}),
        {"gammas": (1.0,), "shares": (0.2,), "cv": 1, "random_state": 0},
    )
    found = compare_routes(model, table[["A", "L", "Z"]], labels, 0.5, "auc", **few, baselines=False)
    assert {"auc", "loss"} <= set(found.table.columns)
    probabilities = found.model.predict_proba(table[["A", "L", "Z"]])
    assert probabilities.shape == (600, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_a_route_whose_model_data_cannot_tell_is_not_offered():
    scm = datasets.scenario_1()
    rows = scm.sample(1000, random_state=0)
    model = CIPRegressor(graph=scm.graph, outcome="Y", protected=["A"], epochs=3)
    X = rows[[name for name in rows.columns if name != "Y"]]
    found = compare_routes(
        model, X, rows["Y"], 0.5, gammas=(1.0,), shares=(0.1,), baselines=False, cv=1, random_state=0
    )
    assert "counterfactual" not in set(found.table["kind"])
    assert any("The counterfactual route is not offered" in note for note in found.notes)


def test_what_cannot_be_compared_is_refused(table):
    X, y = table[["A", "L", "Z"]], table["Y"]
    for twice in ({"shares": (0.2, 0.1, 0.2)}, {"gammas": (1, 1.0)}):
        with pytest.raises(InputError, match="must differ from each other"):
            compare_routes(CIPRegressor(**QUICK), X, y, **twice)
    with pytest.raises(InputError, match="with a graph"):
        compare_routes(CIPRegressor(protected=["A"]), X, y)
    with pytest.raises(InputError, match="one of independence, counterfactual, line, left-out, repair, got"):
        compare_routes(CIPRegressor(**QUICK), X, y, routes=["shortcut"])


def test_folds_that_no_model_can_judge_do_not_silence_the_others(monkeypatch):
    draw = np.random.default_rng(0)
    a = draw.normal(size=600)
    table = pd.DataFrame({"A": a, "L": a + draw.normal(size=600)})
    y = table["L"] + 0.5 * draw.normal(size=600)

    def refuses_one_row(graph, rows, **more):
        if 3 in rows.index:
            raise InputError("Row 3 is refused.")
        return fit_scm(graph, rows, **more)

    monkeypatch.setattr(route, "fit_scm", refuses_one_row)
    graph = CausalGraph.from_edges("A -> L, L -> Y")
    model = CIPRegressor(**(QUICK | {"graph": graph, "epochs": 5, "random_state": 0}))
    quick = {"gammas": (1.0,), "shares": (0.2,), "baselines": False, "routes": ("line",)}
    found = compare_routes(model, table, y, tolerance=0.9, cv=3, **quick)
    assert found.table["vcf"].notna().all()
    said = "In 1 of 3 folds: No causal model could be estimated, so VCF is not judged: Row 3 is refused."
    assert said in found.notes


def test_without_a_judge_the_strictest_of_what_rests_on_the_graph_is_taken():
    draw = np.random.default_rng(0)
    s, a = draw.normal(size=(2, 400))
    table = pd.DataFrame({"S": s, "A": a + s})
    y = s + a + 0.3 * draw.normal(size=400)
    # A latent node with a parent: no causal model of it is estimated.
    graph = CausalGraph.from_edges("S -> A, S -> Y, A -> Y, S -> H, H -> Y", latent=["H"])
    model = CIPRegressor(**(QUICK | {"graph": graph, "epochs": 5, "random_state": 0}))
    settings = {"gammas": (0.1, 1.0, 10.0), "routes": ("independence",), "baselines": False, "cv": 1}
    found = compare_routes(model, table, y, tolerance=0.99, **settings)
    allowed = found.table[found.table["allowed"] & (found.table["kind"] == "independence")]
    assert found.table["vcf"].isna().all()
    assert len(allowed) > 1
    assert found.table.set_index("name").loc[found.chosen, "gamma"] == allowed["gamma"].max()
    assert "no causal model could judge VCF. It rests on" in found.reason


@pytest.mark.parametrize("on_violation", ["raise", "warn"])
def test_statement_that_the_graph_does_not_certify_is_a_route_only_where_it_is_enforced_anyway(on_violation):
    # A and L have a hidden cause in common, and A is held fixed.
    graph = CausalGraph.from_edges("A -> L, L -> Y, A <-> L, Z -> L, Z -> Y")
    roles = {"outcome": "Y", "protected": ["A"], "context": ["A", "Z"]}
    assert not graph.criterion(**roles).holds
    draw = np.random.default_rng(0)
    table = pd.DataFrame(draw.normal(size=(80, 2)), columns=["A", "Z"])
    table["L"] = table.sum(axis=1) + draw.normal(size=80)
    model = CIPRegressor(graph=graph, **roles, epochs=2, on_violation=on_violation, random_state=0)
    asked = {"routes": ["independence", "left-out"], "gammas": (1,), "baselines": False, "cv": 2}
    found = compare_routes(model, table, table["L"] + draw.normal(size=80), 0.5, **asked)
    offered = "independence, gamma 1" in found.models
    assert offered == (on_violation == "warn")
    notes = [note for note in found.notes if "certify" in note]
    assert len(notes) == 1
    assert notes[0].endswith("enforced all the same.") == offered
