import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from scipy.stats import norm, uniform
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from ciplearn import CausalGraph, CIPRegressor, StructuralCausalModel, fit_scm, load_repaired, repair
from ciplearn.errors import CiplearnError, FarOutsideWarning, InputError, UnseenLevelsWarning
from ciplearn.repairing.correction import Correction
from ciplearn.repairing.measured import Conformal
from ciplearn.scm import Additive, AdditiveNoise, LocationScale, Log, SimultaneousQuantiles

GRAPH = CausalGraph.from_edges("Z -> A, A -> L, A -> Y, L -> Y, Z -> Y")


def world(group=True):
    """A group, or a number, with a cause; a descendant whose noise the rows determine; an outcome."""
    return StructuralCausalModel(
        GRAPH,
        equations={
            "Z": Additive(),
            "A": (lambda p, u: (u < 1 / (1 + np.exp(-p["Z"]))).astype(float)) if group else Additive(lambda p: p["Z"]),
            "L": Additive(lambda p: 1.5 * p["A"]),
            "Y": Additive(lambda p: p["L"] + 0.5 * p["A"] + 0.5 * p["Z"]),
        },
        noise={"Z": norm(), "A": uniform() if group else norm(), "L": norm(), "Y": norm(0, 0.3)},
    )


def labels(table):
    return table.assign(Y=np.where(table["Y"] > 1, "high", "low"))


@pytest.fixture(scope="module")
def numbers():
    scm = world()
    train, table = scm.sample(500, random_state=1), scm.sample(1000, random_state=0)
    model = LinearRegression().fit(train.drop(columns="Y"), train["Y"])
    return scm, table, model, repair(model, table, graph=GRAPH, outcome="Y", protected="A")


@pytest.fixture(scope="module")
def classes():
    scm = world()
    train, table = (labels(scm.sample(n, random_state=n)) for n in (500, 1000))
    # Threads that wait for one another on busy cores take a hundred times as long as one.
    model = LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1).fit(train.drop(columns="Y"), train["Y"])
    return scm, table, model, repair(model, table, graph=GRAPH, outcome="Y", protected="A")


def test_radius_is_the_score_that_a_new_row_stays_below():
    conformal = Conformal(lambda: np.arange(1.0, 20.0))  # 19 scores
    assert conformal.radius(0.9) == 18  # ⌈20 · 0.9⌉
    assert conformal.radius(0.95) == 19
    assert conformal.radius(0.96) == np.inf
    with pytest.raises(InputError, match="coverage must lie between 0 and 1, got 1"):
        conformal.radius(1.0)


def test_intervals_cover_and_are_the_same_in_every_world(numbers):
    scm, _, model, repaired = numbers
    fresh = scm.sample(4000, random_state=7)
    found = repaired.predict_interval(fresh)
    assert ((fresh["Y"] >= found[:, 0]) & (fresh["Y"] <= found[:, 1])).mean() == pytest.approx(0.9, abs=0.025)
    there = repaired.at(strength=1).predict_interval(scm.counterfactual(fresh, {"A": 1 - fresh["A"]}))
    assert np.abs(there - found).mean() < 0.02 * np.ptp(found, axis=1).mean()
    # A plain interval around the model itself moves by the whole effect.
    read = list(model.feature_names_in_)
    moved = model.predict(scm.counterfactual(fresh, {"A": 1 - fresh["A"]})[read])
    assert np.abs(moved - model.predict(fresh[read])).mean() > 1


def test_sets_cover_and_hold_labels(classes):
    scm, _, _, repaired = classes
    fresh = labels(scm.sample(4000, random_state=7))
    found = repaired.predict_set(fresh, coverage=0.8)
    assert np.mean([label in one for label, one in zip(fresh["Y"], found, strict=True)]) == pytest.approx(0.8, abs=0.03)
    assert {len(one) for one in found} <= {0, 1, 2}


def test_calibrated_on_other_rows_covers_those(numbers):
    scm, _, _, repaired = numbers
    wide = scm.sample(500, random_state=3).assign(Y=lambda rows: rows["Y"] + 10)
    radius = np.ptp(repaired.calibrated(wide).predict_interval(wide), axis=1)[0] / 2
    assert radius == pytest.approx(10, abs=3)
    with pytest.raises(InputError, match="lack the outcome 'Y'"):
        repaired.calibrated(wide.drop(columns="Y"))


def test_intervals_are_of_numbers_and_sets_of_labels(numbers, classes):
    with pytest.raises(InputError, match="use predict_set"):
        classes[-1].predict_interval(classes[1])
    with pytest.raises(InputError, match="use predict_interval"):
        numbers[-1].predict_set(numbers[1])


def test_distilled_learner_says_about_the_same_in_one_evaluation(numbers, classes):
    _, table, _, repaired = numbers
    strict = repaired.strict()
    small = strict.distil(HistGradientBoostingRegressor(max_iter=50))
    assert np.corrcoef(small.predict(table), strict.predict(table))[0, 1] > 0.98
    assert 0 < small.left < 0.1
    assert small.change < 0.1 * strict.predict(table).var()
    _, table, _, repaired = classes
    taught = repaired.distil(LogisticRegression(max_iter=1000), rows=table)
    assert taught.predict_proba(table).shape == (len(table), 2)
    assert np.corrcoef(taught.predict_proba(table)[:, 1], repaired.predict_proba(table)[:, 1])[0, 1] > 0.9


def same(repaired, again, table):
    assert again.strength == repaired.strength
    assert again.notes == repaired.notes
    assert again.floor == repaired.floor
    assert again.at(vcf=0.1).strength == repaired.at(vcf=0.1).strength
    said = [each.at(strength=2).numbers(table) for each in (repaired, again)]
    assert (said[0] == said[1]).all()


def test_model_that_is_no_data_is_passed_again(numbers, tmp_path):
    _, table, model, repaired = numbers
    repaired.at(strength=3).save(tmp_path / "kept")
    with pytest.raises(InputError, match="does not hold the model that was repaired"):
        load_repaired(tmp_path / "kept")
    again = load_repaired(tmp_path / "kept", model=model)
    same(repaired.at(strength=3), again, table)
    assert (again.predict_interval(table) == repaired.predict_interval(table)).all()
    with pytest.raises(InputError, match="keeps no rows"):
        again.distil(LinearRegression())


def test_boosted_model_is_kept_whole(classes, tmp_path):
    _, table, _, repaired = classes
    repaired.save(tmp_path / "kept")
    again = load_repaired(tmp_path / "kept")
    same(repaired, again, table)
    assert (again.predict(table) == repaired.predict(table)).all()
    assert again.predict_set(table) == repaired.predict_set(table)


def test_network_is_kept_whole(tmp_path):
    table = world(group=False).sample(300, random_state=0)
    model = CIPRegressor(epochs=2, random_state=0).fit(table.drop(columns="Y"), table["Y"])
    repaired = repair(model, table, graph=GRAPH, outcome="Y", protected="A")
    repaired.save(tmp_path / "network")
    same(repaired, load_repaired(tmp_path / "network"), table)


def test_table_without_a_cause_that_a_known_model_imagines_rows_from_is_refused_by_its_name():
    scm = StructuralCausalModel(
        CausalGraph.from_edges("Z -> X, X -> L, A -> L, L -> Y"),
        equations={name: Additive(lambda p: sum(p.values(), 0.0)) for name in "ZXALY"},
        noise={name: norm() for name in "ZXALY"},
    )
    table = scm.sample(60, random_state=0).drop(columns="Z")
    with pytest.raises(InputError, match="lack the column 'Z'"):
        repair(lambda frame: frame["L"], table, scm=scm, outcome="Y", protected=["A"], inputs=["L"])


def test_onnx_file_whose_weights_lie_beside_it_is_not_kept_in_halves(tmp_path):
    onnx = pytest.importorskip("onnx")
    column = {name: onnx.helper.make_tensor_value_info(name, 1, [None, 1]) for name in ("L", "sum")}
    weight = onnx.numpy_helper.from_array(np.ones(1, dtype=np.float32), "weight")
    node = onnx.helper.make_node("Add", ["L", "weight"], ["sum"])
    graph = onnx.helper.make_graph([node], "g", [column["L"]], [column["sum"]], [weight])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    repaired = repair(
        tmp_path / "model.onnx", world().sample(60, random_state=0), scm=world(), outcome="Y", protected="A"
    )
    with pytest.raises(InputError, match="keeps its weights in files beside it"):
        repaired.save(tmp_path / "kept")
    (tmp_path / "model.onnx").write_text("something else by now")
    with pytest.raises(InputError, match=rf"{tmp_path}/model\.onnx cannot be read as ONNX"):
        repaired.save(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_onnx_file_is_repaired_and_kept_whole(tmp_path):
    onnx = pytest.importorskip("onnx")
    column = {name: onnx.helper.make_tensor_value_info(name, 1, [None, 1]) for name in ("A", "L", "sum")}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["A", "L"], ["sum"])], "g", [column["A"], column["L"]], [column["sum"]]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    scm = world()
    table = scm.sample(400, random_state=0)
    repaired = repair(tmp_path / "model.onnx", table, graph=GRAPH, outcome="Y", protected="A")
    assert repaired.at(strength=0).predict(table) == pytest.approx((table["A"] + table["L"]).to_numpy(), abs=1e-5)
    assert repaired.curve["left"].iloc[-1] < 1e-6
    repaired.save(tmp_path / "onnx")
    (tmp_path / "model.onnx").unlink()
    same(repaired, load_repaired(tmp_path / "onnx"), table)


def test_correction_is_kept(tmp_path):
    draw = np.random.default_rng(0)
    a = draw.integers(2, size=600)
    job = np.where(draw.random(600) < 0.3 + 0.4 * a, "office", "field")
    y = (job == "office") + a + draw.normal(size=600)
    table = pd.DataFrame({"A": a, "job": job, "Y": y})
    graph = CausalGraph.from_edges("A -> job, A -> Y, job -> Y")

    def model(frame):
        return (frame["job"] == "office").to_numpy(dtype=float) + frame["A"].to_numpy(dtype=float)

    repaired = repair(model, table, graph=graph, outcome="Y", protected="A")
    trees = Correction.of(repaired.asked, repaired.worlds, table, draw)
    repaired = replace(repaired, engine=trees, rests_on="correction")
    repaired.save(tmp_path / "kept")
    same(repaired, load_repaired(tmp_path / "kept", model=model), table)
    (tmp_path / "kept" / "SHA256SUMS").unlink()
    described = json.loads((tmp_path / "kept" / "repaired.json").read_text())
    whole = described["correction"]
    one, *others = whole["encoding"]["columns"]
    columns = [[], None, "ab", [1], [one], [{**one, "name": None}, *others], [{**one, "name": "Q"}, *others]]
    changed = [{"encoding": {**whole["encoding"], "columns": each}} for each in columns]
    changed += [{"encoding": None}, {"encoding": [1]}]
    changed += [{"ends": each} for each in (None, [], [1], whole["ends"][::-1], [0, 0, 0, 0, 10**6], "abcde")]
    changed += [{"spread": each} for each in (None, [], [0], ["x"], [1, 2, 3], [math.inf])]
    for change in changed:
        (tmp_path / "kept" / "repaired.json").write_text(json.dumps({**described, "correction": {**whole, **change}}))
        with pytest.raises(CiplearnError, match=r"fits no repaired model|does not fit"):
            load_repaired(tmp_path / "kept", model=model)


def test_changed_folder_is_refused(numbers, tmp_path):
    *_, model, repaired = numbers
    folder = repaired.save(tmp_path / "kept")
    text = (folder / "repaired.json").read_text()
    (folder / "repaired.json").write_text(text.replace('"seed"', '"sead"'))
    with pytest.raises(InputError, match="changed since"):
        load_repaired(folder, model=model)
    with pytest.raises(InputError, match="is no repaired model"):
        load_repaired(tmp_path)
    with pytest.raises(InputError, match="overwrite"):
        repaired.save(folder)


def test_known_causal_model_is_passed_again(tmp_path):
    scm = world(group=False)
    table = scm.sample(200, random_state=0)
    repaired = repair(lambda frame: frame["L"], table, scm=scm, outcome="Y", protected="A")
    repaired.save(tmp_path / "kept")
    with pytest.raises(InputError, match="pass it as scm="):
        load_repaired(tmp_path / "kept", model=lambda frame: frame["L"])
    same(repaired, load_repaired(tmp_path / "kept", model=lambda frame: frame["L"], scm=scm), table)


def test_a_label_that_training_never_saw_is_taken_for_the_usual_one():
    graph = CausalGraph.from_edges("sex -> x, sex -> y, town -> x, town -> y, x -> y")
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"sex": generator.choice(["f", "m"], 300), "town": generator.choice(["a", "b", "b"], 300)})
    table["x"] = (table["sex"] == "m") + (table["town"] == "b") + generator.normal(size=300)
    table["y"] = table["x"] + (table["town"] == "b") + generator.normal(size=300)

    def model(rows):
        return rows["x"] + rows["town"].map({"a": 0.0, "b": 1.0}).astype(float)

    repaired = repair(model, table, graph=graph, outcome="y", protected="sex")
    new = table.head(6).assign(town=["a", "c", "a", "b", "c", "b"])
    with pytest.warns(UnseenLevelsWarning, match="in 2 rows: 'c'; they are predicted as the usual level, 'b'"):
        answers = repaired.predict(new)
    np.testing.assert_array_equal(answers, repaired.predict(new.replace({"town": {"c": "b"}})))
    with pytest.warns(UnseenLevelsWarning):
        assert len(repaired.frontier(new)) > 1
    with pytest.raises(InputError, match="sex cannot be 'd'"):
        repaired.predict(table.head(6).assign(sex="d"))


@pytest.mark.parametrize("recipe", [AdditiveNoise(link=Log()), SimultaneousQuantiles(LocationScale(Log()))])
def test_number_that_the_causal_model_holds_for_impossible_is_taken_for_the_nearest(recipe):
    draw = np.random.default_rng(0)
    a = draw.integers(2, size=300)
    table = pd.DataFrame({"A": a, "L": np.exp(0.5 * a + draw.normal(size=300)), "Y": draw.normal(size=300)})
    graph = CausalGraph.from_edges("A -> L, L -> Y")
    scm = fit_scm(graph, table, {"L": recipe}, random_state=0)
    repaired = repair(lambda frame: frame["L"], table, scm=scm, outcome="Y", protected="A")
    rows = table.head(3).assign(L=[-5.0, 1.0, 2.0])
    with pytest.warns(FarOutsideWarning, match="deems impossible, in 1 rows"):
        answers = repaired.predict(rows)
    assert np.isfinite(answers).all()
    np.testing.assert_allclose(answers[1:], repaired.predict(rows[1:]))
    with pytest.raises(InputError, match="Column 'L' must hold numbers"):
        repaired.predict(rows.assign(L=["few", "some", "many"]))


def test_numbers_of_another_unit_are_named_whatever_model_is_repaired(numbers):
    _, table, _, repaired = numbers
    with pytest.warns(FarOutsideWarning, match="Column 'L' lies far outside .* in 3 rows"):
        repaired.predict(table.head(3).assign(L=5e6))


@pytest.mark.parametrize("size", [1e36, 1e300])
def test_numbers_too_large_to_imagine_are_refused_with_their_column(size, numbers):
    _, table, _, repaired = numbers
    with pytest.raises(InputError, match=r"Column 'L' holds numbers up to 1e\+\d+ in size"):
        repaired.predict(table.head(3).assign(L=[1.0, -size, 2.0]))


CHANGED = {
    "strength": [-1, "1", math.nan, True, {}],
    "shares": [[1, 10**400], [1, 1], [-1, 2], [math.nan, math.nan], [0.5], [], "ab", [0, 0]],
    "levels": [
        {},
        [],
        {"A": []},
        {"A": [0]},
        {"B": [0, 1]},
        {"A": [0, 0]},
        {"A": [0, None]},
        {"A": [0, ["x"]]},
        {"A": [0, 10**400]},
    ],
    "kinds": [[], {"A": []}, {"A": None}],
    "seed": [-1, "1", 1.5, None],
    "rests_on": ["correction", "trees", 3],
    "notes": ["ab", [1], None],
    "floor": [{"left": math.nan, "typical": 1, "n_rows": 1}, {"left": 1, "typical": 1, "n_rows": 1e308}, 5, {}],
    "scores": [[math.nan], ["a"], [3, 1, 2], [-1, 2], 5],
    "curve": [{}, {"strength": [0]}, []],
    "classes": [[], ["a"], 5, {"a": 1, "b": 2}, "ab", ["a", "a"], [["a"], ["b"]]],
    "inputs": ["AL", [], ["A", "A"], [1], ["A", "L", "Y"]],
    "outcome": ["A", "L"],
    "protected": [[], "A", ["Q"], ["Z"]],
    "ratio": [{"kind": "Foo"}, {"kind": "OfNumbers", "grid": None, "causes": {}}, {"kind": "OfPairs"}, 5],
    "listed": [False, "no", None],
    "format": [2, "1", None],
}


@pytest.mark.parametrize("name", CHANGED)
def test_description_that_no_repair_leaves_is_refused_when_it_is_read(name, numbers, tmp_path):
    *_, model, repaired = numbers
    folder = repaired.save(tmp_path / "kept")
    (folder / "SHA256SUMS").unlink()
    described = json.loads((folder / "repaired.json").read_text())
    for value in CHANGED[name]:
        (folder / "repaired.json").write_text(json.dumps({**described, name: value}))
        with pytest.raises(CiplearnError, match=r"fits no repaired model|has format|inputs must|is not in the graph"):
            load_repaired(folder, model=model)


def test_trees_that_were_changed_are_refused_and_do_not_end_the_process(classes, tmp_path):
    folder = classes[-1].save(tmp_path / "kept")
    (folder / "SHA256SUMS").unlink()
    text = (folder / "model.txt").read_text()
    for wrong in (text[:2000], text.replace("num_leaves=", "num_leaves=9", 1), text.replace("left_child=", "gone=", 1)):
        (folder / "model.txt").write_text(wrong)
        with pytest.raises(InputError, match="is no model of LightGBM"):
            load_repaired(folder)


def test_model_whose_intervals_no_rows_have_measured_says_so(numbers, classes):
    for _, table, _, repaired in (numbers, classes):
        bare = replace(repaired, conformal=None)
        with pytest.raises(InputError, match=r"No rows have measured .* pass rows on which .* calibrated"):
            (bare.predict_interval if repaired.asked.classes is None else bare.predict_set)(table.head(3))


def test_frame_of_another_library_is_told_how_to_become_one_of_pandas(numbers):
    *_, repaired = numbers
    frame = type("DataFrame", (), {"to_pandas": None, "__module__": "polars.dataframe"})()
    with pytest.raises(CiplearnError, match=r"must be a pandas DataFrame, got polars\.dataframe\.DataFrame"):
        repaired.predict(frame)


def test_intervals_are_measured_when_they_are_first_asked_for(numbers):
    scm, table, model, _ = numbers
    shown = []

    def counted(frame):
        shown.append(len(frame))
        return model.predict(frame)

    repaired = repair(counted, table, scm=scm, outcome="Y", protected="A", inputs=[*table.columns.drop("Y")])
    shown.clear()
    radius = repaired.conformal.radius(0.9)
    assert sum(shown) >= len(table)
    shown.clear()
    assert repaired.conformal.radius(0.9) == radius
    assert not shown
