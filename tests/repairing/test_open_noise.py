"""Where rows leave open the noise behind them: closed form or trees, and a strict end that follows no label."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ciplearn import CausalGraph, load_repaired, repair
from ciplearn._core.errors import InputError
from ciplearn.repairing.correction import Correction
from ciplearn.repairing.formula import Formula
from ciplearn.repairing.measured import Curve
from ciplearn.scm import AdditiveNoise, fit_scm


def with_labels(n, seed=0):
    """A group at the root, a label and a count that follow from it, and an outcome of two labels."""
    draw = np.random.default_rng(seed)
    a, z = draw.integers(2, size=n), draw.normal(size=n)
    job = np.where(draw.random(n) < 1 / (1 + np.exp(-(1.5 * a - 0.7 + 0.5 * z))), "office", "field")
    years = draw.poisson(np.exp(0.5 + 0.4 * a + 0.2 * z))
    score = 1.2 * (job == "office") + 0.3 * years + z + 0.5 * a - 1.5 + draw.logistic(size=n)
    return pd.DataFrame({"a": a, "z": z, "job": job, "years": years, "y": np.where(score > 0, "yes", "no")})


LABELS = CausalGraph.from_edges("a -> job, z -> job, a -> years, z -> years, job -> y, years -> y, z -> y, a -> y")


@pytest.fixture(scope="module")
def open_noise():
    table = with_labels(1500)
    X = table.drop(columns="y")
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough"), LogisticRegression()
    )
    model.fit(X, table["y"])
    return table, X, model, repair(model, table, graph=LABELS, outcome="y", protected="a")


@pytest.fixture(scope="module")
def many_labels():
    """Six labels that follow from a group at the root: a few draws of their noise say little."""
    draw, n = np.random.default_rng(0), 600
    a, z, names = draw.integers(2, size=n), draw.normal(size=n), [f"b{i}" for i in range(6)]
    chance = 1 / (1 + np.exp(-(1.5 * (a - 0.5) + 0.5 * z)))
    X = pd.DataFrame({"a": a, "z": z, **{name: np.where(draw.random(n) < chance, "p", "q") for name in names}})
    score = z + 0.5 * a - ((X[names] == "p") * ([1, -1] * 3)).sum(axis=1)
    table = X.assign(y=score + draw.normal(size=n))
    graph = CausalGraph.from_edges(", ".join(f"a -> {name}, z -> {name}, {name} -> y" for name in names) + ", z -> y")
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), names), remainder="passthrough"), LinearRegression()
    ).fit(X, table["y"])
    return table, X, model, repair(model, table, graph=graph, outcome="y", protected="a")


@pytest.mark.parametrize(("case", "better"), [("open_noise", "formula"), ("many_labels", "correction")])
def test_where_rows_leave_noise_open_the_better_of_two_serves_and_it_is_said(case, better, request):
    table, *_, repaired = request.getfixturevalue(case)
    assert repaired.rests_on == better
    assert any("leave open" in note and f"{better} serves better" in note for note in repaired.notes)
    assert 0 < repaired.floor.left < 0.5
    assert repaired.floor.rows == len(table)
    assert str(repaired.floor) in repaired.notes


def test_correction_loses_effect_along_its_path_and_starts_at_the_model(many_labels):
    _, X, model, repaired = many_labels
    assert np.abs(repaired.at(strength=0).predict(X) - model.predict(X)).max() < 1e-12
    left = repaired.curve["left"].to_numpy()
    assert left[-1] < 0.2
    assert left[10] > left[20] > left[-1]
    assert repaired.at(vcf=0.3).strength < repaired.at(vcf=0.25).strength
    half = repaired.at(strength=5)
    assert half.predict(X.iloc[[7]])[0] == pytest.approx(half.predict(X)[7], abs=1e-12)


def homes(n, seed):
    draw = np.random.default_rng(seed)
    origin, size = draw.integers(2, size=n), draw.normal(size=n)
    district = np.where(draw.random(n) < 1 / (1 + np.exp(1.5 * origin - 0.7)), "centre", "edge")
    built = (2000 - 6 * origin + 2 * size + 5 * draw.normal(size=n)).round()
    rent = 30 * size + 10 * (built - 2000) + 60 * (district == "centre") - 20 * origin + 10 * draw.normal(size=n)
    return pd.DataFrame({"origin": origin, "size": size, "district": district, "built": built, "rent": rent})


def test_correction_does_not_tell_rows_with_whole_numbers_from_imagined_ones():
    table, fresh = homes(1500, 0), homes(6000, 1)
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["district"]), remainder="passthrough"), LinearRegression()
    ).fit(table.drop(columns="rent"), table["rent"])
    graph = CausalGraph.from_edges("origin, size | district, built | rent")
    # Additive noise imagines years such as 1994.3.
    scm = fit_scm(graph, table, mechanisms={"built": AdditiveNoise()})
    repaired = repair(model, table, scm=scm, outcome="rent", protected="origin")
    engine = Correction.of(repaired.asked, repaired.worlds, table, np.random.default_rng(0))
    # Nothing acts on the origin: the difference of two groups of new rows is the effect.
    before, after = (
        np.diff([answers[fresh["origin"] == a].mean() for a in (0, 1)])[0]
        for answers in (model.predict(fresh), engine.knob(fresh).at(np.inf)[:, 0])
    )
    assert before < -90
    assert abs(after) < 10


def test_formula_on_open_noise_does_not_depend_on_the_other_rows(open_noise):
    _, X, _, repaired = open_noise
    engine = Formula(repaired.asked, repaired.worlds)
    assert engine.knob(X.iloc[[7]]).at(2.0)[0] == pytest.approx(engine.knob(X.head(20)).at(2.0)[7], abs=1e-12)
    assert not repaired.worlds.units(X.head(20)).exact


def test_a_row_is_predicted_alike_whichever_types_hold_its_values(open_noise):
    _, X, _, repaired = open_noise
    rows = X.head(30).assign(z=X["z"].head(30).round())
    formula = replace(repaired, engine=Formula(repaired.asked, repaired.worlds), strength=2.0)
    for same in (rows.astype(object), rows.astype({"z": int}), rows.astype({"z": "Int64", "years": "Float32"})):
        assert formula.predict_proba(same) == pytest.approx(formula.predict_proba(rows), abs=1e-12)


@pytest.mark.parametrize(
    ("case", "moved"), [("open_noise", ["job", "years"]), ("many_labels", [f"b{i}" for i in range(6)])]
)
def test_strict_repair_follows_no_label_or_count_that_a_moves(case, moved, request, tmp_path):
    _, X, _, repaired = request.getfixturevalue(case)
    rows, other = X.head(60), X.tail(60).reset_index(drop=True)
    elsewhere = rows.assign(a=1 - rows["a"], **{name: other[name] for name in moved})
    answers = repaired.strict().numbers(rows)
    assert answers.std() > 0.01
    np.testing.assert_allclose(repaired.strict().numbers(elsewhere), answers, atol=1e-6)
    assert repaired.curve["left"].iloc[-1] < 1e-9
    assert repaired.at(max_effect=1e-4).strength > repaired.engine.seeing.sees_to
    assert repaired.strict().is_blind
    assert not repaired.at(strength=5).is_blind
    repaired.save(tmp_path / "kept")
    for strength in (5.0, 300.0, np.inf):
        loaded = load_repaired(tmp_path / "kept", repaired.asked.model).at(strength)
        np.testing.assert_allclose(loaded.numbers(elsewhere), repaired.at(strength).numbers(elsewhere), atol=1e-12)


def test_goal_below_what_can_be_met_is_refused_with_what_is_left(open_noise):
    *_, repaired = open_noise
    floor = Curve(lambda: repaired.curve.assign(effect=repaired.curve["effect"] + 0.01))
    with pytest.raises(InputError, match=r"No strength brings the largest effect to 1e-09: the strict predictor keeps"):
        replace(repaired, measured=floor).at(max_effect=1e-9)
