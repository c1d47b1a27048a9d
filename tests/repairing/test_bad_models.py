"""Models and calls that cannot be repaired: one sentence each, and no traceback of another library."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from ciplearn import CausalGraph, repair
from ciplearn._core.errors import CiplearnError, MissingDependencyError
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
        self.chances, self.classes_ = chances, np.array(list(classes))

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


def test_gaps_are_counted_over_the_whole_table_before_anything_is_estimated(monkeypatch):
    monkeypatch.setattr("ciplearn.repairing.flow.fit_scm", None)
    rows = table().assign(extra=np.nan)
    rows.loc[:4, "L"] = rows.loc[3:6, "Z"] = np.nan
    refused(lambda frame: frame.fillna(0).sum(axis=1), "L and Z hold no value in 7 of 200 rows", rows)


def test_model_that_returns_another_number_of_rows():
    refused(lambda frame: np.zeros(3), r"returned shape \(3,\) for 50 rows")


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (lambda frame: frame["L"] + 1j, "returned complex128 values"),
        (lambda frame: pd.to_timedelta(frame["L"], unit="D"), "returned timedelta64"),
        (lambda frame: np.zeros((len(frame), 0)), r"returned shape \(50, 0\) for 50 rows"),
        (lambda frame: 1e300 * frame["L"], "which have no variance that a computer holds"),
        (lambda frame: np.ma.masked_where(frame["L"] > 0, frame["L"]), "returned NaN or infinity"),
    ],
)
def test_answers_that_are_no_numbers(answer, match):
    refused(answer, match)


def test_model_of_several_numbers_has_no_interval():
    rows = table()
    repaired = repair(lambda frame: frame[["L", "Z"]].to_numpy(), rows, graph=GRAPH, outcome="Y", protected="A")
    assert repaired.at(strength=0).predict(rows).shape == (200, 2)
    for measured in (repaired, repaired.calibrated(rows)):
        with pytest.raises(CiplearnError, match=r"need(s)? an outcome of one number"):
            measured.predict_interval(rows)


def test_no_rows_of_three_labels_have_three_probabilities():
    rows = table().assign(Y=lambda rows: np.where(rows["Y"] > 1, "c", np.where(rows["Y"] > 0, "b", "a")))
    repaired = repair(Chances([0.2, 0.3, 0.5], "abc"), rows, graph=GRAPH, outcome="Y", protected="A")
    assert repaired.predict_proba(rows.iloc[:0]).shape == (0, 3)
    assert repaired.along(rows.iloc[:0], [0, 1]).shape == (0, 2, 3)


def test_index_that_has_the_names_of_columns_does_not_matter():
    rows = table().set_index(["A", "L"], drop=False)
    repaired, plain = (
        repair(lambda frame: frame["L"], each, graph=GRAPH, outcome="Y", protected="A") for each in (rows, table())
    )
    assert (repaired.predict(rows) == plain.predict(table())).all()


def test_model_that_looks_at_the_rows_beside():
    refused(lambda frame: frame["L"] - frame["L"].mean(), "gave two different answers to the same rows")
    refused(lambda frame: frame["L"] + np.arange(len(frame)), "gave two different answers to the same rows")


def test_answers_with_the_labels_of_their_rows_are_put_in_order():
    repaired = repair(lambda frame: frame["L"].sort_values(), table(), graph=GRAPH, outcome="Y", protected="A")
    assert repaired.at(strength=0).predict(table()) == pytest.approx(table()["L"].to_numpy())


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
    refused(Chances([0.5, 0.5], ("yes", "yes")), "one of them twice", table(labels=True))


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

    class OfNumbers:
        def predict(self, X):
            return X["L"].to_numpy()

    refused(Labels(), "gives labels without probabilities", rows)
    refused(OfNumbers(), "gives no probabilities, and the outcome holds labels", rows)
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


def test_protected_variable_that_never_varies():
    refused(lambda frame: frame["L"], "'A' is the same in all 200 rows", table().assign(A=1))


def test_rows_that_miss_the_outcome_measure_no_interval(tmp_path):
    rows = table()
    repaired = repair(
        lambda frame: frame["L"],
        rows.assign(Y=rows["Y"].where(rows.index > 9)),
        graph=GRAPH,
        outcome="Y",
        protected="A",
    )
    assert len(repaired.conformal.scores) == 190
    assert np.isfinite(repaired.predict_interval(rows, 0.99)).all()
    repaired.save(tmp_path / "repaired")


@pytest.mark.parametrize("labels", [False, True])
def test_one_protected_variable_acts_on_another(labels):
    rows = table()
    rows = rows.assign(L=np.where(rows["L"] > 0.5, "high", "low")) if labels else rows

    def model(frame):
        return (frame["L"] == "high") + frame["Z"] if labels else frame["L"] + frame["Z"]

    repaired = repair(model, rows, graph=GRAPH, outcome="Y", protected=["A", "L"])
    assert np.ptp(repaired.predict(rows) - rows["Z"].to_numpy()) < 1e-9
    # L follows where A alone is changed, so that the model moves by what A does to L.
    alone = model(rows).groupby(rows["A"]).mean().diff().iloc[1]
    measured = repair(model, rows, graph=GRAPH, outcome="Y", protected=["A"]).curve["effect"].iloc[0]
    assert repaired.curve["effect"].iloc[0] >= measured - 1e-9
    assert measured == pytest.approx(alone, abs=0.2)


def test_one_protected_variable_acts_on_another_through_what_nobody_reads():
    graph = CausalGraph.from_edges("A -> M, M -> L, L -> Y, Z -> Y")
    rows = table().assign(M=lambda rows: rows["L"] + 1)
    repaired = repair(
        lambda frame: frame["A"] + frame["Z"], rows, graph=graph, outcome="Y", protected=["A", "L"], inputs=["A", "Z"]
    )
    assert repaired.curve["effect"].iloc[[0, -1]].tolist() == pytest.approx([1, 0], abs=1e-9)
    assert repaired.inputs_ == ("A", "Z", "L", "M")


@pytest.mark.parametrize("edges", ["Y -> A, A -> L, Z -> Y", "A <-> Y, A -> L, Z -> Y"])
@pytest.mark.parametrize("levels", [2, 100])
def test_outcome_beside_which_the_law_of_the_protected_variable_differs(edges, levels):
    rows = table()
    rows = rows.assign(A=(rows["Y"].rank() * levels // 201).astype(int))
    rows = rows.assign(L=rows["A"] + np.random.default_rng(1).normal(size=200))
    graph = CausalGraph.from_text(edges)
    repaired = repair(lambda frame: frame["L"] + frame["Z"], rows, graph=graph, outcome="Y", protected="A")
    # Nobody knows the outcome when a prediction is made.
    assert "Y" not in repaired.inputs_
    assert len(repaired.predict(rows.drop(columns="Y"))) == 200
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


@pytest.mark.parametrize("labels", [False, True])
def test_hostile_arguments_of_a_repaired_model(labels):
    rows = table(labels)
    model = LogisticRegression().fit(rows[["L", "Z"]], rows["Y"]) if labels else lambda frame: frame["L"]
    repaired = repair(model, rows, graph=GRAPH, outcome="Y", protected="A")
    around = repaired.predict_set if labels else repaired.predict_interval
    calls = [
        *((repaired.at, value) for value in ("1", np.zeros(2), pd.NA, np.timedelta64(1, "s"), np.nan)),
        *((lambda coverage: around(rows, coverage), value) for value in (None, "1", 1j, np.zeros(2), np.nan, 1)),
        *((repaired.frontier, value) for value in (rows.iloc[:0], [1], None, pd.concat([rows, rows[["L"]]], axis=1))),
        *((lambda some: repaired.along(rows, some), value) for value in (None, [], 3, ["a"], [None], [-1], [np.nan])),
        *((repaired.predict, value) for value in (rows["L"], rows.assign(L=[[1]] * 200))),
        *((repaired.calibrated, value) for value in ("rows", None, *([] if labels else [rows.assign(Y="x")]))),
        *((repaired.distil, value) for value in (None, LinearRegression, "x")),
        (repaired.distil, LinearRegression() if labels else LogisticRegression()),
        *((repaired.save, value) for value in (None, 3, "a\0b")),
    ]
    for call, value in calls:
        with pytest.raises(CiplearnError) as found:
            call(value)
        assert "\n" not in str(found.value)
    assert len(repaired.calibrated(rows.iloc[:0]).conformal.scores) == 0


def test_hostile_rows_of_a_distilled_learner():
    rows = table(labels=False)
    repaired = repair(lambda frame: frame["L"], rows, graph=GRAPH, outcome="Y", protected="A")
    assert repaired.along(rows.iloc[:0], [0, 1]).shape == (0, 2, 1)
    taught = repaired.distil(LinearRegression())
    for hostile in (None, rows.to_numpy(), rows.iloc[:0], rows.drop(columns="L"), rows.assign(L="x")):
        with pytest.raises(CiplearnError) as found:
            taught.predict(hostile)
        assert "\n" not in str(found.value)


class Broken(LinearRegression):
    """A learner that answers NaN."""

    def predict(self, X):
        return np.full(len(X), np.nan)


def test_a_learner_that_answers_nan_is_refused_when_it_is_taught():
    repaired = repair(lambda frame: frame["L"], table(), graph=GRAPH, outcome="Y", protected="A")
    with pytest.raises(CiplearnError, match=r"The learner answers NaN or infinity; pass one that"):
        repaired.distil(Broken())


def test_without_lightgbm_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(MissingDependencyError, match="LightGBM cannot be loaded") as found:
        correction.boosting()
    assert "\n" not in str(found.value)
