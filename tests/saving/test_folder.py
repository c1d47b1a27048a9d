import contextlib
import copy
import json
import re

import numpy as np
import pytest
import torch
from torch import nn

from ciplearn import HSCIC, Categorical, CIPClassifier, CIPRegressor, GammaSearch, Gaussian, Independence, Product
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn.baselines import CF1
from ciplearn.saving import load_model, save_model
from tests.estimators.mixed_table import mixed_table


@pytest.fixture
def saved(scm, X, y, tmp_path):
    model = CIPRegressor(graph=scm.graph, outcome="Y", protected=["A"], gamma=0.5, epochs=3, random_state=0).fit(X, y)
    return model, save_model(model, tmp_path / "model", scores={"r2": 0.5})


def test_loaded_model_predicts_the_same_and_knows_its_roles(saved, X):
    model, folder = saved
    again = load_model(folder)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.independence_ == model.independence_
    assert again.verdict_.holds
    assert again.penalty_value(X) == model.penalty_value(X)
    assert again.graph == model.graph
    assert "gamma = 0.5" in (folder / "README.md").read_text()


def test_classifier_with_mixed_columns_and_own_kernels_survives(tmp_path):
    X, signal = mixed_table()
    kernel = Product(Gaussian("median", columns=[0]), Categorical(columns=[1]))
    model = CIPClassifier(
        protected=["age", "sex"], adjustment=["region"], penalty=HSCIC(right_kernel=kernel), epochs=2, random_state=0
    ).fit(X, np.where(signal > signal.mean(), "yes", "no"))
    again = load_model(save_model(model, tmp_path / "model"))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.penalty == model.penalty
    assert again.penalty_value(X) == model.penalty_value(X)


def test_several_statements_come_back_all(X, y, tmp_path):
    statements = [Independence(right=["A"]), Independence(right=["L"], given=["Z"])]
    model = CIPRegressor(independence=statements, gamma=0.5, epochs=1, random_state=0).fit(X, y)
    again = load_model(save_model(model, tmp_path / "model"))
    assert again.independence == statements
    assert again.fit(X, y).penalty_value(X) == model.penalty_value(X)


def test_model_of_an_array_survives(X, y, tmp_path):
    model = CIPRegressor(protected=[1], epochs=2, random_state=0).fit(X.to_numpy(), y)
    again = load_model(save_model(model, tmp_path / "model"))
    assert np.array_equal(again.predict(X.to_numpy()), model.predict(X.to_numpy()))


def test_own_network_is_asked_for(X, y, tmp_path):
    model = CIPRegressor(module=nn.Sequential(nn.Linear(3, 1)), epochs=2, random_state=0).fit(X, y)
    folder = save_model(model, tmp_path / "model")
    with pytest.raises(InputError, match="pass one as module="):
        load_model(folder)
    again = load_model(folder, module=nn.Sequential(nn.Linear(3, 1)))
    assert np.allclose(again.predict(X), model.predict(X))
    with pytest.raises(InputError, match="same architecture"):
        load_model(folder, module=nn.Linear(2, 1))


class Small(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 1))


def test_own_network_comes_as_an_instance_or_as_what_makes_one(X, y, tmp_path):
    model = CIPRegressor(module=Small, epochs=2, random_state=0).fit(X, y)
    folder = save_model(model, tmp_path / "model")
    for module in (Small, lambda: Small(), Small()):
        assert np.array_equal(load_model(folder, module=module).predict(X), model.predict(X))
    with pytest.raises(InputError, match="module must be a torch"):
        load_model(folder, module=5)


def test_truncated_changed_newer_or_missing_files_are_named(saved, tmp_path):
    _, folder = saved
    weights, description = folder / "weights.safetensors", folder / "model.json"
    whole, text = weights.read_bytes(), description.read_text()
    weights.write_bytes(whole[:-10])
    with pytest.raises(InputError, match="truncated or was changed"):
        load_model(folder)
    weights.write_bytes(whole)
    description.write_text(text.replace("0.5", "0.6", 1))
    with pytest.raises(InputError, match="truncated or was changed"):
        load_model(folder)
    (folder / "SHA256SUMS").unlink()
    description.write_text(text[:100])
    with pytest.raises(InputError, match="damaged"):
        load_model(folder)
    description.write_text(json.dumps(json.loads(text) | {"format": 99}))
    with pytest.raises(InputError, match="format 99"):
        load_model(folder)
    description.write_text(json.dumps(json.loads(text) | {"penalty": {"kind": "os.system"}}))
    with pytest.raises(InputError, match=r"unknown kind 'os\.system'"):
        load_model(folder)
    with pytest.raises(InputError, match="no saved model"):
        load_model(tmp_path / "nowhere")


def test_saving_replaces_a_model_but_nothing_else(saved, tmp_path):
    model, folder = saved
    (folder / "thesis.txt").write_text("years of work")
    assert save_model(model, folder) == folder
    assert (folder / "thesis.txt").read_text() == "years of work"
    with pytest.raises(InputError, match="--overwrite"):
        save_model(model, folder, overwrite=False)
    with pytest.raises(InputError, match="overwrite must be True or False"):
        save_model(model, folder, overwrite="no")
    (folder / "README.md").write_text("my own words")
    with pytest.raises(InputError, match=r"README.md is not what ciplearn has written"):
        save_model(model, folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds no model"):
        save_model(model, other)
    assert (other / "thesis.txt").exists()


NOT_SAVED = {
    "not fitted": (CIPRegressor(), "got a CIPRegressor; fit it first"),
    "a search": (GammaSearch(CIPRegressor()), "got a GammaSearch; pass its best_estimator_"),
    "a baseline": (CF1(), "got a CF1; joblib.dump keeps other models"),
}


@pytest.mark.parametrize("case", NOT_SAVED)
def test_what_is_no_fitted_model_gets_its_own_advice(case, tmp_path):
    model, words = NOT_SAVED[case]
    with pytest.raises(InputError, match=words):
        save_model(model, tmp_path / "model")


def test_parameters_come_back_as_they_were(X, y, tmp_path):
    model = CIPRegressor(protected=["A"], hidden=(8, 8), epochs=1, random_state=7).fit(X, y)
    again = load_model(save_model(model, tmp_path / "model"))
    assert again.get_params() == model.get_params() | {"independence": again.independence}
    drawn = model.set_params(random_state=np.random.RandomState(7)).fit(X, y)
    assert load_model(save_model(drawn, tmp_path / "model")).random_state is None


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": np.int64(1), "batch_size": np.int32(64)},
        {"gamma": np.float32(0.5), "learning_rate": np.float32(1e-3)},
        {"hidden": (np.int64(3),), "verbose": np.bool_(False)},
        {"protected": {"A"}},
        {"protected": np.array(["A"])},
        {"device": torch.device("cpu")},
    ],
)
def test_numbers_of_numpy_and_other_lists_are_saved_too(settings, X, y, tmp_path):
    model = CIPRegressor(**{"protected": ["A"], "epochs": 1, "random_state": 0} | settings).fit(X, y)
    save_model(model, tmp_path / "model", scores={"mse": np.float32(1)})
    assert np.array_equal(load_model(tmp_path / "model").predict(X), model.predict(X))


def test_what_cannot_be_saved_leaves_nothing_behind(X, y, tmp_path):
    dates = np.array(["2020", "2021"] * 300, dtype="datetime64[D]")
    with pytest.raises(InputError, match="cannot be saved"):
        save_model(CIPClassifier(epochs=1).fit(X, dates), tmp_path / "model")
    assert not list(tmp_path.iterdir())
    for place in (None, 5):
        with pytest.raises(InputError, match="must be a path"):
            save_model(CIPRegressor(epochs=1).fit(X, y), place)
        with pytest.raises(InputError, match="must be a path"):
            load_model(place)


def entries(value, path=()):
    """Yield the paths of all entries of JSON data, two of each list."""
    places = value if isinstance(value, dict) else range(min(len(value), 2)) if isinstance(value, list) else ()
    for place in places:
        yield (*path, place)
        yield from entries(value[place], (*path, place))


@pytest.mark.parametrize("change", ["left out", None, "text", -1, 0, [], {}])
def test_changed_description_is_refused_or_still_predicts(change, saved, X):
    _, folder = saved
    (folder / "SHA256SUMS").unlink()
    description = folder / "model.json"
    whole = json.loads(description.read_text())
    for path in entries(whole):
        broken = copy.deepcopy(whole)
        around = broken
        for place in path[:-1]:
            around = around[place]
        if change == "left out":
            del around[path[-1]]
        else:
            around[path[-1]] = change
        description.write_text(json.dumps(broken))
        with contextlib.suppress(CiplearnError):
            assert len(load_model(folder).predict(X)) == len(X), path


def test_what_was_trained_is_saved_whatever_was_set_since(saved, X, tmp_path):
    model, _ = saved
    model.set_params(gamma=100, hidden=(3,), missing="impute", penalty=HSCIC())
    again = load_model(save_model(model, tmp_path / "later"))
    assert (again.gamma, again.gamma_, again.hidden, again.missing, again.penalty) == (
        0.5,
        0.5,
        (64, 64),
        "error",
        None,
    )
    assert model.gamma == 100
    assert "gamma = 0.5" in (tmp_path / "later" / "README.md").read_text()
    assert json.loads((tmp_path / "later" / "model.json").read_text())["parameters"]["gamma"] == 0.5
    again.set_params(gamma=100)
    assert load_model(save_model(again, tmp_path / "again")).gamma == 0.5


WRONG = {
    "format of no version": (["format"], -1, "format -1, which no ciplearn writes"),
    "format that is true": (["format"], True, "format True, which no ciplearn writes"),
    "gamma as text": (["gamma"], "1", "gamma must be a number"),
    "gamma that is negative": (["gamma"], -1, "gamma must not be negative"),
    "asked gamma as text": (["parameters", "gamma"], "1", "gamma must be a number"),
    "epochs as text": (["parameters", "epochs"], "1", "epochs must be"),
    "scale of zero": (["gamma_scale"], 0, "gamma_scale must be"),
    "other columns": (["columns"], ["P", "Q"], r"lists the columns \['P', 'Q'\], which are not those of its roles"),
    "columns twice": (["columns"], ["A", "A", "L", "Z"], "which are not those of its roles"),
    "no inputs": (["roles", "inputs"], [], "which are not those of its roles"),
    "no list of columns": (["columns"], "ALZ", "which are not those of its roles"),
    "range as text": (["encoding", "columns", 0, "low"], "1", "describes NumberColumn in a way that does not fit"),
    "scale of the outcome as text": (["target", "low"], ["1"], "model.json fits no model"),
    "flatness that is a list": (["target", "flat"], [], "flat must be True or False"),
    "statement that nothing encodes": (["statement_encodings"], [], "model.json fits no model"),
    "statement encoded by text": (["statement_encodings", 0, 0], "x", "model.json fits no model"),
    "verdict on nobody": (["roles", "verdict", "protected"], [], "model.json fits no model"),
    "assumption about a number": (["roles", "verdict", "injective"], [1], "no verdict on this graph"),
    "route that is none": (["route"], {"a": [1]}, "model.json fits no model"),
    "history of no epochs": (["history"], [1], "model.json fits no model"),
    "format of 400 digits": (["format"], 10**400, r"format 1000.{0,40}, this ciplearn reads"),
    "share of 400 digits": (["encoding", "columns", 0, "low"], 10**400, "model.json fits no model|does not fit"),
    "range that is no number": (["encoding", "columns", 0, "high"], np.nan, "NumberColumn in a way that does not fit"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_training_leaves_is_refused_in_one_sentence(case, saved):
    _, folder = saved
    path, value, words = WRONG[case]
    (folder / "SHA256SUMS").unlink()
    said = json.loads((folder / "model.json").read_text())
    inner = said
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    (folder / "model.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match=words):
        load_model(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(value, saved):
    from safetensors.torch import load, save

    from ciplearn._core.files import checksum

    _, folder = saved
    (folder / "SHA256SUMS").unlink()
    weights = load((folder / "weights.safetensors").read_bytes())
    next(part for name, part in weights.items() if name.endswith("weight")).view(-1)[0] = value
    (folder / "weights.safetensors").write_bytes(save(weights))
    said = json.loads((folder / "model.json").read_text())
    said["weights_sha256"] = checksum(folder / "weights.safetensors")
    (folder / "model.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="weights of the model hold NaN or infinity"):
        load_model(folder)


def test_device_that_is_none_is_refused(saved):
    _, folder = saved
    for device in ("abacus", np.zeros(0), np.zeros(2)):
        with pytest.raises(InputError, match="device must be"):
            load_model(folder, device=device)
    with pytest.raises(InputError, match="scores must map names"):
        save_model(saved[0], folder, scores=np.zeros(2))


@pytest.mark.parametrize("folder", ["nowhere", "x" * 300])
def test_name_that_no_folder_has_is_refused(folder):
    with pytest.raises(InputError, match="is no saved model; pass the folder that save_model has written"):
        load_model(folder)


def test_names_in_the_card_are_text_whatever_they_hold(X, y, tmp_path):
    names = {"A": "<img src=x>", "Z": "[a](http://b) | *c* `d` _e_ & $f$", "L": "hours_per_week"}
    table = X.rename(columns=names)
    model = CIPRegressor(protected=[names["A"]], adjustment=[names["Z"]], gamma=0.5, epochs=1).fit(table, y)
    text = (save_model(model, tmp_path / "model", scores={"a | b": 1.0}) / "README.md").read_text()
    for shown in (
        r"\<img src=x\>",
        r"\[a\](http://b) \| \*c\* \`d\` \_e\_ \& \$f\$",
        "hours_per_week",
        r"| a \| b | 1 |",
    ):
        assert shown in text
    assert not re.search(r"(?<!\\)[<*\[]", text)
