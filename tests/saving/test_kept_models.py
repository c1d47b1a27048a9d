"""What made the imagined rows travels with a saved model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ciplearn import CIPRegressor, datasets, fit_scm
from ciplearn._core.errors import InputError
from ciplearn.estimators.preparation import Prepared
from ciplearn.saving import load_model, save_model
from ciplearn.scm import EstimatedModel


@pytest.fixture(scope="module")
def table():
    return datasets.first_synthetic().sample(150, random_state=0)


@pytest.fixture(scope="module")
def estimated(table):
    return fit_scm(datasets.first_synthetic().graph, table, random_state=0)


def trained(table, counterfactuals):
    roles = {"graph": datasets.first_synthetic().graph, "outcome": "Y", "protected": ["A"], "hidden": (8,)}
    model = CIPRegressor(**roles, counterfactuals=counterfactuals, gamma=1.0, epochs=2, random_state=0)
    return model.fit(table[["Z", "A", "L"]], table["Y"])


def test_the_causal_model_comes_back_and_a_new_fit_is_the_same(table, estimated, tmp_path):
    model = trained(table, estimated)
    folder = save_model(model, tmp_path / "model")
    assert "kept in `counterfactuals-1.safetensors`" in (folder / "README.md").read_text()
    again = load_model(folder, counterfactuals=EstimatedModel.load)
    rows, values = table.head(20), {"A": np.linspace(0, 3, 20)}
    known, read = (one.counterfactual(rows, values) for one in (estimated, again.counterfactuals))
    pd.testing.assert_frame_equal(known, read)
    X = table[["Z", "A", "L"]]
    np.testing.assert_array_equal(again.fit(X, table["Y"]).predict(X), model.predict(X))


def test_the_penalty_comes_back_also_from_a_folder_of_an_earlier_version(table, estimated, tmp_path):
    model, X = trained(table, estimated), table[["Z", "A", "L"]]
    folder = save_model(model, tmp_path / "model")
    again = load_model(folder, counterfactuals=EstimatedModel.load)
    assert again.penalty_value(X) == model.penalty_value(X)
    description = json.loads((folder / "model.json").read_text())
    del description["preparation_seed"]
    (folder / "model.json").write_text(json.dumps(description))
    (folder / "SHA256SUMS").unlink()
    again = load_model(folder, counterfactuals=EstimatedModel.load)
    assert again.penalty_value(X) == model.penalty_value(X)


def test_a_penalty_of_rows_that_a_generator_drew_comes_back(table, estimated, tmp_path):
    X = table[["Z", "A", "L"]]
    model = trained(table, estimated).set_params(random_state=np.random.default_rng(5)).fit(X, table["Y"])
    again = load_model(save_model(model, tmp_path / "model"), counterfactuals=EstimatedModel.load)
    assert again.penalty_value(X) == model.penalty_value(X)


def test_a_line_comes_back_with_its_share(table, tmp_path):
    X = table[["Z", "A", "L"]]
    base = CIPRegressor(graph=datasets.first_synthetic().graph, outcome="Y", protected=["A"], epochs=2, random_state=0)
    prepared = Prepared.of(base, X, table["Y"])
    (line,) = prepared.line(prepared.trained(0.0), [0.2])
    again = load_model(save_model(line, tmp_path / "model"))
    assert again.share_ == line.share_ == 0.2
    np.testing.assert_array_equal(again.predict(X), line.predict(X))


def test_a_model_predicts_without_it(table, estimated, tmp_path):
    model = trained(table, estimated)
    again = load_model(save_model(model, tmp_path / "model"))
    assert again.counterfactuals is None
    np.testing.assert_array_equal(again.predict(table[["Z", "A", "L"]]), model.predict(table[["Z", "A", "L"]]))


def test_several_models_come_back_in_their_order(table, estimated, tmp_path):
    other = fit_scm(datasets.first_synthetic().graph, table.tail(100), random_state=1)
    folder = save_model(trained(table, [estimated, other]), tmp_path / "model")
    found = load_model(folder, counterfactuals=EstimatedModel.load).counterfactuals
    rows, values = table.head(5), {"A": np.zeros(5)}
    for kept, read in zip((estimated, other), found, strict=True):
        pd.testing.assert_frame_equal(kept.counterfactual(rows, values), read.counterfactual(rows, values))


def test_what_cannot_be_written_as_data_is_named(table, tmp_path):
    folder = save_model(trained(table, datasets.first_synthetic()), tmp_path / "model")
    (entry,) = json.loads((folder / "model.json").read_text())["counterfactuals"]
    assert entry == {
        "said": "StructuralCausalModel(4 nodes, known equations)",
        "kind": "StructuralCausalModel",
        "file": None,
        "sha256": None,
    }
    assert load_model(folder, counterfactuals=EstimatedModel.load).counterfactuals is None


def test_a_mechanism_that_is_no_data_is_refused_and_left_out_only_if_asked(table, tmp_path):
    foreign = fit_scm(datasets.first_synthetic().graph, table, {"L": LinearRegression()}, random_state=0)
    model = trained(table, foreign)
    with pytest.raises(InputError, match=r"mechanism of L holds a RegressorMoments.*counterfactuals=False"):
        save_model(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    folder = save_model(model, tmp_path / "model", counterfactuals=False)
    assert "on rows imagined by EstimatedModel" in (folder / "README.md").read_text()


def test_trials_need_no_copy(table, estimated, tmp_path):
    folder = save_model(trained(table, estimated), tmp_path / "model", counterfactuals=False)
    assert not list(folder.glob("counterfactuals*"))
    assert "on rows imagined by EstimatedModel" in (folder / "README.md").read_text()


@pytest.mark.parametrize("how", ["bytes", "name"])
def test_a_changed_folder_is_refused(table, estimated, tmp_path, how):
    folder = save_model(trained(table, estimated), tmp_path / "model")
    (folder / "SHA256SUMS").unlink()
    if how == "bytes":
        with (folder / "counterfactuals-1.safetensors").open("ab") as stream:
            stream.write(b"more")
    else:
        description = json.loads((folder / "model.json").read_text())
        description["counterfactuals"][0]["file"] = "../elsewhere.safetensors"
        (folder / "model.json").write_text(json.dumps(description))
    with pytest.raises(InputError, match="was changed"):
        load_model(folder, counterfactuals=EstimatedModel.load)
