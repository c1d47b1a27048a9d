"""Rows in a file, predictions in another: an audit of a model that runs elsewhere."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from ciplearn.cli.app import run
from ciplearn.cli.imagined import _codes
from tests.cli.parquet_pages import refuse_changed_bytes

EFFORT = ["--points=30", "--interventions=6", "--draws=3", "--scm-rows=300"]


def answer(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def predicted(place, model, tmp_path_factory):
    """Rows that an audit of the folder's model asks about, and what that model says about them."""
    folder = tmp_path_factory.mktemp("worlds")
    assert run(["imagine", str(model), str(place / "people.csv"), *EFFORT, "--out", str(folder / "w.csv")]) == 0
    assert run(["predict", str(model), str(folder / "w.csv"), "--id", "id", "--out", str(folder / "p.csv")]) == 0
    return folder


def test_audit_of_predictions_is_that_of_the_model_which_made_them(predicted, place, model, tmp_path, capsys):
    out = ["--json", "--out", str(tmp_path / "r.html")]
    call = ["audit", str(model), str(place / "people.csv"), *EFFORT, "--doubt=0", "--no-gate", *out]
    capsys.readouterr()
    assert run([*call, "--predictions", str(predicted / "p.csv")]) == 0
    there = answer(capsys)
    assert run(call) == 0
    here = answer(capsys)
    assert there["vcf"]["value"] == here["vcf"]["value"]
    assert there["scores"] == here["scores"]
    pairs = [
        [pair["effect"] for pair in part["effects"]["pairs"] if pair["model"] == "this model"] for part in (there, here)
    ]
    # A matrix product rounds a row's last digit by the rows beside it.
    assert pairs[0] == pytest.approx(pairs[1], rel=1e-12)
    for name in ("lower", "upper", "lower_interval", "upper_interval"):
        assert there["bounds"][name] == pytest.approx(here["bounds"][name], rel=1e-12)
    assert there["bounds"]["sentence"] == here["bounds"]["sentence"]
    assert len(there["individuals"]) == 6


def test_rows_hold_what_the_model_reads_and_each_stands_once(predicted, place):
    rows = pd.read_csv(predicted / "w.csv", dtype={"id": str})
    assert list(rows.columns) == ["id", "education", "hours", "job", "race", "sex"]
    assert rows["id"].is_unique
    assert set(rows["job"]) == {"office, big", "shop"}
    people = pd.read_csv(place / "people.csv").query("job != '?'")
    seen = rows.merge(people, on=["education", "hours", "job", "race", "sex"])
    assert seen["id_x"].nunique() < len(rows), "some were never seen"
    assert seen["id_x"].nunique() > 100, "and the rows that judge are among them"


def test_model_without_a_folder_is_audited_by_its_predictions(place, tmp_path, capsys):
    graph = ["--graph", str(place / "graph.txt"), "--outcome=income", "--protected=sex"]
    table = str(place / "people.csv")
    assert run(["imagine", table, *graph, *EFFORT, "--json", "--out", str(tmp_path / "w.parquet")]) == 0
    said = answer(capsys)
    rows = pd.read_parquet(tmp_path / "w.parquet")
    assert said["rows"] == len(rows)
    refuse_changed_bytes(tmp_path / "w.parquet")
    chance = 1 / (1 + np.exp(11 - rows["education"]))
    pd.DataFrame({"id": rows["id"], "prediction": chance}).to_csv(tmp_path / "p.csv", index=False)
    call = ["audit", table, *graph, *EFFORT, "--doubt=0", "--no-gate", "--out", str(tmp_path / "r.html"), "--json"]
    assert run([*call, "--predictions", str(tmp_path / "p.csv")]) == 0
    assert answer(capsys)["effects"]["pairs"][0]["output"] == ">50K"


def test_predictions_that_do_not_fit_end_in_a_sentence(predicted, place, model, tmp_path, capsys):
    call = ["audit", str(model), str(place / "people.csv"), *EFFORT, "--doubt=0", "--out", str(tmp_path / "r.html")]
    good = pd.read_csv(predicted / "p.csv", dtype={"id": str})
    text = good.rename(columns={"probability[>50K]": "other", "probability[<=50K]": "more"})
    twice = pd.concat([good, good.iloc[:1].assign(**{"probability[>50K]": 0.5})])
    for table, said in (
        (good.iloc[:50], "rows that are asked about; pass the options that ciplearn imagine was called with"),
        (good.drop(columns="id"), "lacks the column 'id'"),
        (text.drop(columns="prediction"), "lacks the column 'prediction'"),
        (text, "'; every row needs a number"),
        (text.assign(prediction=""), "holds an empty cell; every row needs a number"),
        (twice, "has several predictions for the row"),
    ):
        table.to_csv(tmp_path / "p.csv", index=False)
        assert run([*call, "--predictions", str(tmp_path / "p.csv")]) == 2
        assert said in capsys.readouterr().err
    good.to_csv(tmp_path / "p.csv", index=False)
    assert run([*call, "--predictions", str(tmp_path / "p.csv"), "--seed=7"]) == 2
    assert "rows that are asked about" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


def test_names_that_cannot_be_written_are_refused_before_anything_is_imagined(
    place, model, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("ciplearn.cli.audited.AuditCall.subject", lambda *_: pytest.fail("work began"))
    call = ["imagine", str(model), str(place / "people.csv"), *EFFORT]
    for name in ("w.zip", "w.xlsx", "w.parquet.gz", "w.csv.zst"):
        assert run([*call, "--out", str(tmp_path / name)]) == 2
        assert "must end in .csv" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run([*call, "--out", str(tmp_path / "w.parquet")]) == 2
    assert "Parquet files need pyarrow" in capsys.readouterr().err
    assert run(["imagine", str(place / "people.csv"), "--out", str(tmp_path / "w.csv")]) == 2
    assert "without MODEL_DIR pass --graph" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_row_is_known_again_by_its_cells_whatever_their_order_and_last_digits():
    rows = pd.DataFrame({"a": [0.1 + 0.2, -0.0, 1e300], "b": ["x", "y", "z"]})
    again = pd.DataFrame({"b": pd.Categorical(["x", "y", "z"]), "a": [0.3, 0.0, 1e300]}, index=[5, 6, 7])
    assert _codes(rows).tolist() == _codes(again).tolist()
    assert len(set(_codes(rows))) == 3
    assert _codes(rows.assign(b=["x", "y", "w"]))[2] != _codes(rows)[2]
    assert _codes(rows.assign(a=[0.3 + 1e-7, 0, 1e300]))[0] != _codes(rows)[0]
