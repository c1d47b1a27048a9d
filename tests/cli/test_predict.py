import json
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

from ciplearn.cli.app import run
from ciplearn.cli.model_folder import ModelFolder
from tests.cli.parquet_pages import refuse_changed_bytes
from tests.cli.people import GRAPH, people
from tests.warm import command


def predicted(model, table, tmp_path, *more):
    out = tmp_path / "p.csv"
    assert run(["predict", str(model), str(table), "--out", str(out), *map(str, more)]) == 0
    return pd.read_csv(out)


def test_chunks_give_what_the_whole_gives_in_the_order_of_the_rows(place, model, tmp_path):
    whole = predicted(model, place / "people.csv", tmp_path, "--id=id")
    for size in (1000, 97):
        pd.testing.assert_frame_equal(
            predicted(model, place / "people.csv", tmp_path, "--id=id", "--chunk-rows", size), whole
        )


def test_predictions_are_those_of_the_saved_model(place, model, tmp_path):
    table = people()
    answers = predicted(model, place / "people.csv", tmp_path)
    known = (table["job"] != "?").to_numpy()
    expected = ModelFolder.read(model).model.predict_proba(table[known])
    np.testing.assert_allclose(answers.loc[known, "probability[>50K]"], expected[:, 1], rtol=1e-6)
    assert answers.loc[~known].isna().all(axis=None)


def test_standard_output_takes_predictions_and_a_reader_may_leave_early(place, model):
    pipe = f"{command()} predict {model} {place / 'people.csv'} --chunk-rows 100 | (head -n 2; sleep 1)"
    done = subprocess.run(
        ["bash", "-c", f"{pipe}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("prediction,probability[<=50K],probability[>50K]\n")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_text_in_another_notation_gives_the_same(place, model, tmp_path):
    expected = predicted(model, place / "people.csv", tmp_path)
    table = people()
    table.to_csv(tmp_path / "people.tsv", sep="\t", index=False)
    table.to_csv(tmp_path / "semicolon.csv", sep=";", index=False)
    table.to_csv(tmp_path / "bare.csv", header=False, index=False)
    table.replace("?", None).to_parquet(tmp_path / "people.parquet")
    table.to_csv(tmp_path / "people.csv.gz", index=False)
    for name, more in {
        "people.tsv": [],
        "semicolon.csv": ["--separator=;"],
        "bare.csv": ["--columns", ",".join(table.columns)],
        "people.parquet": [],
        "people.csv.gz": [],
    }.items():
        pd.testing.assert_frame_equal(predicted(model, tmp_path / name, tmp_path, *more), expected)


def test_parquet_is_written_in_chunks_too(place, model, tmp_path):
    expected = predicted(model, place / "people.csv", tmp_path)
    out = tmp_path / "p.parquet"
    assert run(["predict", str(model), str(place / "people.csv"), "--out", str(out), "--chunk-rows", "70"]) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected, check_dtype=False)
    refuse_changed_bytes(out)


def test_codes_stay_codes_whatever_the_chunk_looks_like(tmp_path, capsys):
    rng = np.random.default_rng(0)
    zone = rng.choice(["01", "02", "10"], 300)
    table = pd.DataFrame({"zone": zone, "A": rng.integers(0, 2, 300), "Y": rng.normal(size=300) + (zone == "10")})
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["fit", str(tmp_path / "t.csv"), "--graph", "zone -> Y, A -> Y", "--outcome=Y", "--protected=A"]
    assert (
        run([*arguments, "--categories=zone", "--gamma=0", "--epochs=30", "--out", str(tmp_path / "m"), "--json"]) == 0
    )
    columns = json.loads(capsys.readouterr().out)["understood"]["columns"]
    assert {column["name"]: column["kind"] for column in columns} == {"zone": "category", "A": "number", "Y": "number"}
    answers = predicted(tmp_path / "m", tmp_path / "t.csv", tmp_path, "--chunk-rows=5")["prediction"]
    assert answers[zone == "10"].mean() > answers[zone == "01"].mean() + 0.5


@pytest.mark.parametrize("content", ["", "id,sex\n"])
def test_table_without_rows_is_refused(content, model, tmp_path, capsys):
    path = tmp_path / "t.csv"
    header = "id,sex,race,education,job,hours\n"
    path.write_text(content and header)
    assert run(["predict", str(model), str(path), "--out", str(tmp_path / "p.csv")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "p.csv").exists()


def test_impute_answers_every_row_and_says_how_many_the_audit_leaves_out(tmp_path, capsys):
    people(300).to_csv(tmp_path / "people.csv", index=False)
    arguments = ["fit", str(tmp_path / "people.csv"), "--graph", GRAPH, "--missing=impute", "--gamma=0", "--epochs=2"]
    assert run([*arguments, "--no-compare", "--out", str(tmp_path / "m")]) == 0
    kept, left_out = re.search(r"(\d+) kept for the audit\.\n(\d+) of those", capsys.readouterr().out).groups()
    assert run(["audit", str(tmp_path / "m"), str(tmp_path / "people.csv"), "--out", str(tmp_path / "r.html")]) in (
        0,
        1,
    )
    assert f"Audited on: {int(kept) - int(left_out)} complete rows" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert predicted(tmp_path / "m", tmp_path / "people.csv", tmp_path)["prediction"].notna().all()


def test_training_table_is_read_as_in_training(tmp_path, capsys):
    bare = people(200).drop(columns="id")
    path = tmp_path / "bare.txt"
    path.write_text("a first line\n" + bare.to_csv(header=False, index=False, sep=";"))
    reading = ["--skip=1", "--separator=;", "--columns", ",".join(bare.columns)]
    arguments = ["fit", str(path), "--graph", GRAPH, *reading, "--gamma=1", "--no-compare", "--epochs=1"]
    assert run([*arguments, "--out", str(tmp_path / "m")]) == 0
    assert len(predicted(tmp_path / "m", path, tmp_path)) == 200
    path.write_text(path.read_text() + "\n")
    assert run(["predict", str(tmp_path / "m"), str(path)]) == 2, "another file needs to be described"
    assert len(predicted(tmp_path / "m", path, tmp_path, *reading)) == 200


@pytest.mark.parametrize("copied", [[], ["--id=x"]])
def test_blank_line_of_a_single_column_is_a_row_without_a_prediction(copied, tmp_path):
    draw = np.random.default_rng(0)
    pd.DataFrame(draw.normal(size=(40, 3)), columns=["a", "x", "y"]).to_csv(tmp_path / "t.csv", index=False)
    roles = ["--graph=a -> x -> y", "--outcome=y", "--protected=a", "--inputs=x"]
    fitted = ["fit", str(tmp_path / "t.csv"), *roles, "--gamma=1", "--no-compare", "--epochs=1"]
    assert run([*fitted, "--out", str(tmp_path / "m")]) == 0
    (tmp_path / "one.csv").write_text("x\n1.0\n\n2.0\n")
    call = ["predict", str(tmp_path / "m"), str(tmp_path / "one.csv"), *copied, "--out", str(tmp_path / "p.csv")]
    assert run(call) == 0
    found = pd.read_csv(tmp_path / "p.csv", skip_blank_lines=False)
    assert found["prediction"].isna().tolist() == [False, True, False]


def test_numbers_of_another_unit_are_counted_and_named(place, model, tmp_path, capsys):
    table = people()
    table.loc[:99, "hours"] *= 1000
    table.to_csv(tmp_path / "cents.csv", index=False)
    capsys.readouterr()
    known = int((table["job"][:100] != "?").sum())
    assert run(["predict", str(model), str(tmp_path / "cents.csv"), "--out", str(tmp_path / "p.csv"), "--json"]) == 0
    said = capsys.readouterr()
    assert "Column 'hours' lies far outside the training rows' 3" in said.err
    assert f" in {known} rows, " in said.err
    assert json.loads(said.out)["far_numbers"][0]["rows"] == known
    in_chunks = ["--chunk-rows=30", "--out", str(tmp_path / "p.csv"), "--json"]
    assert run(["predict", str(model), str(tmp_path / "cents.csv"), *in_chunks]) == 0
    assert json.loads(capsys.readouterr().out)["far_numbers"] == json.loads(said.out)["far_numbers"]
    assert run(["predict", str(model), str(place / "people.csv"), *in_chunks]) == 0
    said = capsys.readouterr()
    assert "far outside" not in said.err
    assert json.loads(said.out)["far_numbers"] == []
