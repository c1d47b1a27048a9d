"""Tables on which a goal must still end in a model and a sentence: many labels, rare ones, gaps, hidden causes."""

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph, CIPClassifier, CIPRegressor, fit_scm, paired_effects
from ciplearn.learners import Linear
from ciplearn.routes import ShareOfVCF, Strict, WithinLimits, compare_routes

EDGES = "A -> X, S -> X, X -> Y, W -> Y"
QUICK = {"learners": {"linear": Linear()}, "routes": ["repair", "left-out"], "baselines": False, "cv": 2}


@pytest.fixture
def table():
    generator = np.random.default_rng(0)
    n = 300
    group, cause, other = generator.choice(["f", "m"], n), generator.normal(size=n), generator.normal(size=n)
    between = cause + (group == "m") + generator.normal(size=n)
    outcome = between + other + generator.normal(size=n)
    return pd.DataFrame({"S": cause, "A": group, "X": between, "W": other, "Y": outcome})


def compared(table, goal=None, edges=EDGES, latent=(), kind=CIPRegressor, **settings):
    model = kind(graph=CausalGraph.from_edges(edges, latent=latent), outcome="Y", protected=["A"], **settings)
    return compare_routes(model, table.drop(columns="Y"), table["Y"], goal or WithinLimits(), **QUICK)


def test_effects_on_three_labels_do_not_cancel_between_halves(table):
    labels = table.assign(Y=np.select([table["Y"] > 1.5, table["Y"] > 0], ["c", "a"], "b"))
    found = compared(labels, kind=CIPClassifier)
    scm = fit_scm(CausalGraph.from_edges(EDGES), labels, random_state=0)
    naive = paired_effects(found.models[found.free], scm, labels.drop(columns="Y"), ["A"]).table
    said = found.table.set_index("name").loc[found.free]
    assert abs(said["effect"]) == pytest.approx(naive["effect"].abs().max(), rel=0.25)
    assert said["moved"] == pytest.approx(naive["moved"].max(), abs=0.1)


def test_level_that_one_half_lacks_is_imagined_all_the_same(table):
    table.loc[0, "A"] = "d"
    found = compared(table)
    assert found.table.set_index("name").loc[found.chosen, "kind"] == "repair"
    assert np.isfinite(found.table["effect"]).all()


def test_label_of_a_cause_of_the_protected_column_that_one_half_lacks_is_no_hindrance(table):
    table = table.assign(S=np.where(table["S"] > 0, "north", "south"))
    table.loc[0, "S"] = "abroad"
    found = compared(table, Strict(), f"{EDGES}, S -> A")
    assert found.table.set_index("name").loc[found.chosen, "kind"] == "repair"


@pytest.mark.parametrize("goal", [WithinLimits(), ShareOfVCF(0.05), Strict()])
def test_without_a_causal_model_the_protected_columns_are_left_out_and_it_is_said(table, goal):
    found = compared(table.assign(L="same"), goal, f"{EDGES}, L -> Y")
    assert not found.met
    assert found.chosen == "linear, protected columns left out"
    assert "nan" not in found.reason
    assert "may still follow the protected variables" in found.reason


@pytest.mark.parametrize("goal", [WithinLimits(), ShareOfVCF(0.05), Strict()])
def test_without_a_causal_model_or_a_protected_input_the_free_predictor_is_left(table, goal):
    found = compared(table.assign(L="same"), goal, f"{EDGES}, L -> Y", inputs=["X", "W"])
    assert (found.chosen, found.met) == (found.free, False)
    assert "nothing keeps its predictions from following the protected variables" in found.reason


def test_hidden_cause_of_the_outcome_is_no_hindrance(table):
    found = compared(table, edges=f"{EDGES}, U -> X, U -> Y", latent=["U"], epochs=2)
    taken = found.table.set_index("name").loc[found.chosen]
    assert taken["kind"] == "repair"
    assert taken["vcf"] < found.table.set_index("name").loc[found.free, "vcf"]
    assert np.isfinite(found.model.predict(table.drop(columns="Y"))).all()


def test_rows_that_miss_a_value_train_and_do_not_judge_what_imagines_their_worlds(table):
    generator = np.random.default_rng(1)
    for name in ("A", "X", "W"):
        table.loc[generator.random(len(table)) < 0.1, name] = np.nan
    found = compared(table, missing="impute")
    whole = compared(table, missing="drop")
    assert found.table.set_index("name").loc[found.chosen, "kind"] == "repair"
    assert found.rows > whole.rows
    assert np.isfinite(found.table["loss"]).all()
