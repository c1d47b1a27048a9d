"""Models and calls that cannot be repaired: one sentence each, and no traceback of another library."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from ciplearn import CausalGraph, repair
from ciplearn.errors import CiplearnError, MissingDependencyError
from ciplearn.repairing import correction

GRAPH = CausalGraph.from_edges("A -> L, L -> Y, Z -> Y")


def table(labels=False):
    draw = np.random.default_rng(0)
    a, z, noise = draw.integers(2, size=200), *draw.normal(size=(2, 200))
    rows = pd.DataFrame({"A": a, "L": a + noise, "Z": z, "Y": a + noise + z})
    return rows.assign(Y=np.where(rows["Y"] > 0.5, "yes", "no")) if labels else rows


def refused(model, match, rows=None, **more):
    rows = table() if rows is None else rows
    arguments = {"graph": GRAPH, "outcome": "Y", "protected": ["A"]} | more
    with pytest.raises(CiplearnError, match=match) as found:
        repair(model, rows, **arguments)
    assert "\n" not in str(found.value)


class Chances:
    """A classifier by its face alone."""

    def __init__(self, chances, classes=("no", "yes")):
        self.chances, self.classes_ = chances, np.array(classes)

    def predict_proba(self, X):
        return np.tile(self.chances, (len(X), 1))


def test_model_that_wants_other_columns():
    rows = table().assign(height=1.0)
    refused(LinearRegression().fit(rows[["L", "height"]], rows["Y"]), "reads 'height', which the causal model", rows)
    refused(lambda frame: frame["weight"], "failed on 50 rows with the columns A, L, Z: KeyError: 'weight'")
    unnamed = LinearRegression().fit(table()[["L", "Z"]].to_numpy(), table()["Y"])
    with pytest.warns(UserWarning, match="feature names"):
        refused(unnamed, "failed on 50 rows with the columns A, L, Z: ValueError: X has 3 features")


def test_model_that_returns_nan():
    refused(lambda frame: np.where(frame["L"] > 0, np.nan, 1.0), r"returned NaN or infinity in \d+ of 50 rows")


def test_model_that_returns_another_number_of_rows():
    refused(lambda frame: np.zeros(3), r"returned shape \(3,\) for 50 rows")


def test_labels_in_another_order_stay_in_the_model_s_order():
    rows = table(labels=True)
    model = LogisticRegression().fit(rows[["L", "Z"]], rows["Y"] == "no")

    class Turned:
        classes_ = np.array(["yes", "no"])

        def predict_proba(self, X):
            return model.predict_proba(X[["L", "Z"]])

    repaired = repair(Turned(), rows, graph=GRAPH, outcome="Y", protected="A").at(strength=0)
    assert repaired.classes_.tolist() == ["yes", "no"]
    assert (repaired.predict_proba(rows) == model.predict_proba(rows[["L", "Z"]])).all()
    assert (repaired.predict(rows) == rows["Y"]).mean() > 0.8


def test_labels_that_the_outcome_does_not_hold():
    refused(Chances([0.5, 0.5], ("low", "high")), "none in common", table(labels=True))


def test_probabilities_that_do_not_sum_to_one_or_are_none():
    refused(Chances([0.5, 0.6]), r"sum to 1\.1; they must sum to 1", table(labels=True))
    refused(Chances([-1.0, 2.0]), "which is no probability", table(labels=True))
    refused(Chances([0.2, 0.3, 0.5]), r"shape \(50, 3\) for 2 labels", table(labels=True))


def test_model_that_gives_labels_only():
    rows = table(labels=True)

    class Labels:
        classes_ = np.array(["no", "yes"])

        def predict(self, X):
            return np.full(len(X), "yes")

    refused(Labels(), "gives labels without probabilities", rows)
    refused(lambda frame: np.full(len(frame), "yes"), "returned <U3 values", rows)


def test_model_that_draws_at_random():
    draw = np.random.default_rng(0)
    refused(lambda frame: draw.normal(size=len(frame)), "gave two different answers to the same rows")


def test_model_that_changes_its_frame_changes_nothing_else():
    rows = table()

    def model(frame):
        frame["L"] = 2 * frame["L"]
        return frame["L"].to_numpy()

    repaired = repair(model, rows, graph=GRAPH, outcome="Y", protected="A")
    assert rows.equals(table())
    assert repaired.at(strength=0).predict(rows) == pytest.approx(2 * rows["L"].to_numpy())


def test_protected_variable_that_the_model_never_sees():
    repaired = repair(lambda frame: frame["Z"], table(), graph=GRAPH, outcome="Y", protected="A", inputs=["Z"])
    assert "reads neither A nor anything that A acts on" in repaired.notes[0]
    assert repaired.predict(table()) == pytest.approx(table()["Z"].to_numpy(), abs=1e-12)


def test_graph_in_which_everything_comes_from_the_protected_variable():
    rows = table().drop(columns="Z")
    repaired = repair(
        lambda frame: frame["L"], rows, graph=CausalGraph.from_edges("A -> L, L -> Y"), outcome="Y", protected="A"
    )
    assert "Everything that the model reads comes from A" in repaired.notes[0]
    assert repaired.curve["left"].iloc[-1] < 1e-12


def test_roles_that_are_not_there():
    def model(frame):
        return frame["L"]

    refused(model, "no column of 'Y'", table().drop(columns="Y"))
    refused(model, "no column of 'A'", table().drop(columns="A"))
    refused(model, "Nothing is protected", protected=[])
    refused(model, "graph must be a CausalGraph, got NoneType", graph=None)
    refused(model, "protected", protected=["B"])
    refused(model, "outcome must be the name of a node, got list", outcome=["Y"])
    refused(model, "scm must be a StructuralCausalModel, got int", scm=1)
    refused(model, "table has no rows", table().iloc[:0])
    with pytest.raises(CiplearnError, match="table must be a pandas DataFrame, got list"):
        repair(model, [1], graph=GRAPH, outcome="Y", protected="A")


def test_rows_and_goals_that_do_not_fit():
    repaired = repair(lambda frame: frame["L"], table(), graph=GRAPH, outcome="Y", protected="A", inputs=["L"])
    with pytest.raises(CiplearnError, match="The rows lack 'A'; the repaired model reads L, A"):
        repaired.predict(table()[["L", "Z"]])
    with pytest.raises(CiplearnError, match="reads a DataFrame, got ndarray"):
        repaired.predict(np.zeros((3, 2)))
    with pytest.raises(CiplearnError, match="one of strength, max_effect and vcf"):
        repaired.at(strength=1, vcf=0.1)
    with pytest.raises(CiplearnError, match="strength must not be negative"):
        repaired.at(strength=-1)
    with pytest.raises(CiplearnError, match="vcf must lie between 0 and 1"):
        repaired.at(vcf=5)


def test_without_lightgbm_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(MissingDependencyError, match="LightGBM cannot be loaded") as found:
        correction.boosting()
    assert "\n" not in str(found.value)
