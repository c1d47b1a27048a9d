"""Models that were not trained here: by their name in a module, as an ONNX file, on a graph of today."""

import json
import re
import textwrap
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.cli.app import run
from ciplearn.evaluation.any_model import Foreign, Numbers, Probabilities, from_module, from_onnx, positive_last

ROLES = ["--outcome", "income", "--protected", "sex"]
EFFORT = ["--points=30", "--interventions=6", "--draws=3", "--scm-rows=300", "--doubt=0", "--no-gate"]

MODULE = """
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder


def chance(frame):
    return 1 / (1 + np.exp(-0.5 * (frame["education"] - 11) - 0.8 * (frame["sex"] == "Male")))


def chances(frame):
    return np.column_stack([1 - chance(frame), chance(frame)])


def boosted():
    table = pd.read_csv(PATH).query("job != '?'")
    columns = ["sex", "race", "education", "job", "hours"]
    encoder = make_column_transformer((OrdinalEncoder(), ["sex", "race", "job"]), remainder="passthrough")
    trees = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    return make_pipeline(encoder, trees).fit(table[columns], table["income"])


class Labels:
    classes_ = np.array(["<=50K", ">50K"])

    def predict_proba(self, frame):
        return chances(frame)


labels = Labels()
number = 3


def fails(frame):
    raise ValueError("no such luck")


def short(frame):
    return np.zeros(3)


def words(frame):
    return np.array(["<=50K"] * len(frame))


def large(frame):
    return np.full(len(frame), 17.0)


def closes(frame):
    raise GeneratorExit


class Ended(BaseException):
    pass


def ends(frame):
    raise Ended("for good")
"""


@pytest.fixture(scope="module")
def here(place, tmp_path_factory):
    """A working folder with a module of models."""
    folder = tmp_path_factory.mktemp("models")
    text = MODULE.replace("PATH", repr(str(place / "people.csv")))
    (folder / "own_models.py").write_text(textwrap.dedent(text))
    return folder


@pytest.fixture(scope="module")
def ours(place, model, tmp_path_factory):
    """What an audit of the folder's own model says."""
    page, said = tmp_path_factory.mktemp("ours") / "r.html", StringIO()
    with redirect_stdout(said):
        assert run(["audit", str(model), str(place / "people.csv"), *EFFORT, "--out", str(page), "--json"]) == 0
    return json.loads(said.getvalue())


def audited(here, place, monkeypatch, capsys, *more, folder=None):
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    capsys.readouterr()
    places = [str(place / "people.csv")] if folder is None else [str(folder), str(place / "people.csv")]
    roles = ["--graph", str(place / "graph.txt"), *ROLES] if folder is None else []
    code = run(["audit", *places, *roles, *EFFORT, "--out", str(here / "r.html"), *more, "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if code < 2 else said.err


def test_boosted_trees_are_audited_without_a_line_of_python_about_ciplearn(here, place, monkeypatch, capsys):
    code, answer = audited(here, place, monkeypatch, capsys, "--predictor=own_models:boosted")
    assert code == 0
    assert answer["scores"]["accuracy"] > 0.7
    assert answer["effects"]["pairs"][0]["effect"] != 0
    assert answer["n_rows"] == 580, "rows without a job are left out"
    assert answer["unknown"] == {"job": 20}
    page = (here / "r.html").read_text()
    assert "own_models:boosted was trained elsewhere" in page
    assert "ciplearn fit people.csv --graph" in re.sub("<[^>]+>", "", page), "the next step trains one here"


def test_function_an_object_and_both_shapes_of_probabilities_are_one_model(here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    rows = pd.DataFrame({"education": [9.0, 14.0], "sex": ["Male", "Female"]})
    found = [
        Probabilities(from_module(f"own_models:{name}"), ["<=50K", ">50K"]) for name in ("chance", "chances", "labels")
    ]
    wanted = 1 / (1 + np.exp([0.2, -1.5]))
    for one in found:
        assert one.predict_proba(rows) == pytest.approx(np.column_stack([1 - wanted, wanted]))


def test_any_model_is_compared_with_that_of_a_folder_on_the_same_rows(here, place, model, ours, monkeypatch, capsys):
    code, answer = audited(here, place, monkeypatch, capsys, "--predictor=own_models:boosted", folder=model)
    assert code == 0, answer
    assert answer["n_rows"] == ours["n_rows"]
    beside = {one["name"]: one for one in answer["candidates"]}
    assert set(beside) == {"this model", "model", "unconstrained"}
    assert beside["model"]["vcf"] == ours["vcf"]["value"]
    assert beside["model"]["loss"] == ours["scores"]["log_loss"]
    assert beside["this model"]["vcf"] == answer["vcf"]["value"]
    pairs = {
        pair["effect"] for part in (answer, ours) for pair in part["effects"]["pairs"]
        if pair["model"] == ("model" if part is answer else "this model")
    }  # fmt: skip
    assert len(pairs) == 1


def test_positive_label_can_be_named(here, place, model, ours, monkeypatch, capsys):
    usual = ours
    _, turned = audited(here, place, monkeypatch, capsys, "--positive=<=50K", folder=model)
    one, other = (
        next(pair for pair in answer["effects"]["pairs"] if pair["model"] == "this model") for answer in (usual, turned)
    )
    assert (one["output"], other["output"]) == (">50K", "<=50K")
    assert other["effect"] == pytest.approx(-one["effect"])
    assert turned["vcf"]["value"] == pytest.approx(usual["vcf"]["value"])
    assert turned["scores"] == pytest.approx(usual["scores"])
    audited(here, place, monkeypatch, capsys, "--positive=<=50K", "--profile=model-card", folder=model)
    page = (here / "r.html").read_text()
    assert "<dd>CIPClassifier, ResidualHSCIC" in page
    assert "probability that income is “&lt;=50K”" in page


MISTAKES = {
    "nothing": "could not be imported: AttributeError",
    "number": "is int; name a fitted model",
    "Labels": "is a class; name a fitted model",
    "fails": "ValueError: no such luck; correct it",
    "short": r"returned shape \(3,\) for 2 rows",
    "words": "return probabilities, which a label does not tell",
    "large": "returned 17, which is no probability",
    "closes": "failed on 2 rows .*GeneratorExit: ; correct it",
    "ends": "failed on 2 rows .*Ended: for good; correct it",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_a_module_end_in_a_sentence(here, monkeypatch, name):
    monkeypatch.syspath_prepend(str(here))
    rows = pd.DataFrame({"education": [9.0, 14.0], "sex": ["Male", "Female"]})
    with pytest.raises(InputError, match=MISTAKES[name]):
        Probabilities(from_module(f"own_models:{name}"), ["<=50K", ">50K"]).predict_proba(rows)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--predictor=no_such_module:x", "could not be imported: ModuleNotFoundError"),
        ("--predictor=own_models", "must be package.module:name, got 'own_models'"),
        ("--predictor=hgb.joblib", "write `import joblib; model = joblib.load('hgb.joblib')` into loaded.py, and pass"),
        ("--predictor=own_models:fails", "ValueError: no such luck; correct it"),
        ("--onnx=own_models.py", "cannot be read as ONNX"),
        ("--onnx=nowhere.onnx", "There is no file 'nowhere.onnx'"),
    ],
)
def test_mistakes_end_in_a_sentence(here, place, monkeypatch, capsys, option, sentence):
    code, said = audited(here, place, monkeypatch, capsys, option)
    assert code == 2
    assert sentence in said
    assert len([line for line in said.splitlines() if "progress" not in line and "step" not in line]) == 1


def test_calls_that_say_too_little_or_too_much_end_in_a_sentence(here, place, model, monkeypatch, capsys):
    monkeypatch.chdir(here)
    table = str(place / "people.csv")
    for call, said in {
        (table,): "An audit needs MODEL_DIR and TABLE, got",
        (): "An audit needs MODEL_DIR and TABLE, got none",
        (table, "--predictor=own_models:chance"): "without MODEL_DIR pass --graph",
        (str(model), table, "--protected=race"): "has its roles already, got --protected too",
        (str(model), table, "--predictor=a:b", "--onnx=c"): "Both --predictor and --onnx were given",
        (str(model), table, "--positive=rich"): "--positive names 'rich', and the classes are",
    }.items():
        assert run(["audit", *call, "--out", str(here / "no.html"), *EFFORT]) == 2
        assert said in capsys.readouterr().err
    assert not (here / "no.html").exists()


def test_model_that_reads_what_the_graph_does_not_know_is_refused(here, place, monkeypatch, capsys):
    graph = "sex -> {education, income}, education -> income"
    code, said = audited(here, place, monkeypatch, capsys, "--predictor=own_models:boosted", "--graph", graph)
    assert code == 2
    assert "reads 'race', which is no observed node of the graph" in said


def test_graph_that_was_refined_since_is_judged_and_asked(here, place, model, monkeypatch, capsys, tmp_path):
    people = pd.read_csv(place / "people.csv", dtype=str)
    people.assign(region=np.tile(["north", "south"], len(people))[: len(people)]).to_csv(tmp_path / "people.csv")
    text = (place / "graph.txt").read_text()
    finer = text.replace("H -> {job hours}", "H -> {job hours}\n  region -> job")
    code, answer = audited(here, tmp_path, monkeypatch, capsys, "--graph", finer, folder=model)
    assert code == 0
    assert "region" in answer["verdict"]["context"]
    coarser = "sex -> {education, income}, education -> income"
    code, said = audited(here, place, monkeypatch, capsys, "--graph", coarser, folder=model)
    assert code == 2
    assert "which --graph does not have among its observed nodes" in said


onnx = pytest.importorskip("onnx")


def written(path, inputs, nodes, outputs, constants):
    """Write a small ONNX file by hand."""
    from onnx import TensorProto, checker, helper, numpy_helper

    kinds = {"float": TensorProto.FLOAT, "string": TensorProto.STRING, "int64": TensorProto.INT64}
    graph = helper.make_graph(
        [helper.make_node(op, list(taken), list(made), **more) for op, taken, made, more in nodes],
        "model",
        [helper.make_tensor_value_info(name, kinds[kind], [None, width]) for name, kind, width in inputs],
        [helper.make_tensor_value_info(name, kinds[kind], [None, None]) for name, kind in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(made)
    path.write_bytes(made.SerializeToString())
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two ONNX files: σ(education − 11) from a column of its own beside text, and 2 a + b of one table."""
    folder = tmp_path_factory.mktemp("onnx")
    columns = written(
        folder / "columns.onnx",
        [("education", "float", 1), ("sex", "string", 1)],
        [
            ("Sub", ["education", "eleven"], ["centred"], {}),
            ("Sigmoid", ["centred"], ["p"], {}),
            ("Sub", ["one", "p"], ["q"], {}),
            ("Concat", ["q", "p"], ["probabilities"], {"axis": 1}),
            ("Identity", ["sex"], ["label"], {}),
        ],
        [("label", "string"), ("probabilities", "float")],
        {"eleven": np.float32(11), "one": np.float32(1)},
    )
    table = written(
        folder / "table.onnx",
        [("X", "float", 2)],
        [("MatMul", ["X", "w"], ["y"], {})],
        [("y", "float")],
        {"w": np.array([[2.0], [1.0]], dtype=np.float32)},
    )
    return columns, table


def test_onnx_file_with_an_input_per_column_gives_its_probabilities(files):
    rows = pd.DataFrame({"sex": ["Male", "Female"], "education": [12.0, 9.5], "hours": [1.0, 2.0]})
    found = from_onnx(files[0], None, list(rows.columns))
    assert found.inputs == ("education", "sex")
    chance = 1 / (1 + np.exp(-(rows["education"] - 11)))
    assert found.answer(rows) == pytest.approx(np.column_stack([1 - chance, chance]), rel=1e-6)


def test_onnx_file_of_one_table_takes_columns_in_the_order_that_is_named(files):
    rows = pd.DataFrame({"a": [1.0, 2.0], "b": [10.0, 20.0], "c": ["x", "y"]})
    assert from_onnx(files[1], ["a", "b"], rows.columns).answer(rows).tolist() == [12.0, 24.0]
    assert from_onnx(files[1], ["b", "a"], rows.columns).answer(rows).tolist() == [21.0, 42.0]
    with pytest.raises(InputError, match="takes a table of 2 columns, and --inputs names none"):
        from_onnx(files[1], None, rows.columns)
    with pytest.raises(InputError, match="takes a table of 2 columns, and --inputs names 3"):
        from_onnx(files[1], ["a", "b", "c"], rows.columns)
    with pytest.raises(InputError, match="takes numbers, and 'c' holds text"):
        from_onnx(files[1], ["a", "c"], rows.columns).answer(rows)
    with pytest.raises(InputError, match="reads 'education', which is no column"):
        from_onnx(files[0], None, ["sex"])


def test_tampered_onnx_file_answers_or_is_refused_in_silence(files, tmp_path, capfd):
    whole, rows = files[1].read_bytes(), pd.DataFrame({"a": [1.0, 2.0], "b": [10.0, 20.0]})
    refused = 0
    for place in range(len(whole)):
        for value in {0, 255, whole[place] ^ 1, whole[place] ^ 128} - {whole[place]}:
            (tmp_path / "x.onnx").write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                from_onnx(tmp_path / "x.onnx", ["a", "b"], rows.columns).answer(rows)
            except InputError:
                refused += 1
    assert refused > 100
    assert capfd.readouterr().out == ""


def test_onnx_file_reads_no_weights_from_outside_its_folder(files, tmp_path):
    folder, outside = tmp_path / "model", tmp_path / "outside.bin"
    folder.mkdir()
    outside.write_bytes(np.array([[5.0], [6.0]], dtype=np.float32).tobytes())
    (folder / "link").symlink_to(outside)
    model = onnx.load(files[1])
    (weights,) = model.graph.initializer
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    for place in ("../outside.bin", str(outside), "link"):
        del weights.external_data[:]
        entry = weights.external_data.add()
        entry.key, entry.value = "location", place
        (folder / "x.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(InputError, match="cannot be read as ONNX"):
            from_onnx(folder / "x.onnx", ["a", "b"], ["a", "b"])


def test_onnx_file_is_audited_like_the_function_that_it_computes(files, here, place, monkeypatch, capsys):
    (here / "plain.py").write_text(
        "import numpy as np\n\n\ndef chance(frame):\n    return 1 / (1 + np.exp(11 - frame['education']))\n"
    )
    _, plain = audited(here, place, monkeypatch, capsys, "--predictor=plain:chance", "--inputs=education,sex")
    code, answer = audited(here, place, monkeypatch, capsys, "--onnx", str(files[0]))
    assert code == 0
    assert answer["vcf"]["value"] == pytest.approx(plain["vcf"]["value"], rel=1e-4)
    assert answer["scores"] == pytest.approx(plain["scores"], rel=1e-4)


def test_maker_of_a_model_is_called_once_and_a_function_of_rows_is_not(here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    made = from_module("own_models:boosted")
    assert made.inputs == ("sex", "race", "education", "job", "hours")
    assert list(made.classes) == ["<=50K", ">50K"]
    assert from_module("own_models:chance").inputs is None


def test_labels_of_a_model_are_those_of_the_outcome_however_they_are_written():
    rows = pd.DataFrame({"a": [0.2, 0.9]})
    foreign = Foreign("m", lambda frame: np.column_stack([frame["a"], 1 - frame["a"]]), ["1.0", "0"])
    # The order is that of the outcome's labels, not that of the columns: which label is positive must not hang on it.
    found = Probabilities(foreign, [0, 1])
    assert found.classes_.tolist() == [0, 1]
    assert found.predict_proba(rows)[:, 1].tolist() == [0.2, 0.9]
    turned = Probabilities(foreign, [0, 1], "0")
    assert turned.classes_.tolist() == [1, 0]
    assert turned.predict_proba(rows)[:, 0].tolist() == [0.2, 0.9]
    with pytest.raises(InputError, match=r"knows the classes 1\.0 and 0, and the outcome holds a and b"):
        Probabilities(foreign, ["a", "b"])
    with pytest.raises(InputError, match="name one of two"):
        positive_last(["a", "b", "c"], "a")


def test_number_is_one_per_row():
    rows = pd.DataFrame({"a": [0.2, 0.9]})
    assert Numbers(Foreign("m", lambda frame: frame[["a"]])).predict(rows).tolist() == [0.2, 0.9]
    with pytest.raises(InputError, match="the outcome is a number, so return one per row"):
        Numbers(Foreign("m", lambda frame: np.zeros((2, 3)))).predict(rows)
