"""Rows that trained are known again in any file, in any order, and never judge; copies stay on one side."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from ciplearn.cli.app import run
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.sources.table_file import TableFile

N = 300
FIT = ["--gamma=1", "--no-compare", "--epochs=2", "--preset=quick"]


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    hours = np.round(rng.normal(40, 8, n), 2)
    income = np.round(hours * 3 + (sex == "m") * 9 + rng.normal(0, 5, n), 3)
    return pd.DataFrame({"id": np.arange(n), "sex": sex, "hours": hours, "note": "x", "income": income})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("trained")
    rows(N).to_csv(place / "t.csv", index=False)
    assert run(fitted(place / "t.csv", place / "m")) == 0
    return place


def fitted(table, out):
    graph = ["--graph", "sex -> hours, sex -> income, hours -> income", "--outcome=income", "--protected=sex"]
    return ["fit", str(table), *graph, *FIT, "--out", str(out)]


def judged(folder, path):
    return ModelFolder.read(folder / "m").rows(TableFile(path))


def test_the_training_table_is_judged_on_the_rows_held_out(folder):
    judge, every, about, _ = judged(folder, folder / "t.csv")
    assert judge.index.tolist() == pd.read_csv(folder / "m" / "held_out.csv")["row"].tolist()
    assert len(judge) == 60
    assert len(every) == N
    assert about == "60 complete rows of the training table that training never saw."


def crlf(place):
    (place / "other.csv").write_bytes((place / "t.csv").read_bytes().replace(b"\n", b"\r\n"))
    return place / "other.csv"


def gzipped(place):
    (place / "t.csv.gz").write_bytes(gzip.compress((place / "t.csv").read_bytes()))
    return place / "t.csv.gz"


def shuffled(place):
    rows(N).sample(frac=1, random_state=1).to_csv(place / "shuffled.csv", index=False)
    return place / "shuffled.csv"


def without_unused(place):
    rows(N)[["income", "sex", "hours"]].to_csv(place / "fewer.csv", index=False)
    return place / "fewer.csv"


def written_anew(place):
    text = rows(N).assign(hours=lambda t: t["hours"].map("{:.5e}".format), sex=lambda t: " " + t["sex"])
    text.to_csv(place / "anew.tsv", sep="\t", index=False)
    return place / "anew.tsv"


def parquet(place):
    rows(N).astype({"hours": "float32"}).to_parquet(place / "t.parquet")
    return place / "t.parquet"


@pytest.mark.parametrize("change", [crlf, gzipped, shuffled, without_unused, written_anew, parquet])
def test_the_training_table_in_another_shape_is_judged_on_the_same_rows(change, folder, capsys):
    judge, every, about, _ = judged(folder, change(folder))
    held = rows(N).iloc[pd.read_csv(folder / "m" / "held_out.csv")["row"]]
    assert sorted(judge["income"].round(3)) == sorted(held["income"])
    assert len(every) == N
    assert about.endswith(": 240 trained, and are left out.")
    assert "240 of 300 rows" in capsys.readouterr().err


def test_rows_appended_judge_beside_the_rows_held_out(folder):
    pd.concat([rows(N), rows(50, seed=1)]).to_csv(folder / "longer.csv", index=False)
    judge, _, about, _ = judged(folder, folder / "longer.csv")
    assert len(judge) == 110
    assert set(range(N, N + 50)) <= set(judge.index)
    assert about == "110 of 350 complete rows of longer.csv: 240 trained, and are left out."


def test_fresh_rows_judge_all(folder, capsys):
    rows(N, seed=1).to_csv(folder / "fresh.csv", index=False)
    judge, _, about, _ = judged(folder, folder / "fresh.csv")
    assert len(judge) == N
    assert about == "All 300 complete rows of fresh.csv, none of which trained."
    assert "trained" not in capsys.readouterr().err


def test_training_rows_alone_are_said_to_be_so(folder):
    held = pd.read_csv(folder / "m" / "held_out.csv")["row"]
    rows(N).drop(held).to_csv(folder / "trained.csv", index=False)
    assert judged(folder, folder / "trained.csv")[2].startswith("The training rows themselves")


def test_copies_of_a_row_stay_on_one_side_and_are_counted(tmp_path, capsys):
    pd.concat([rows(60)] * 5).to_csv(tmp_path / "t.csv", index=False)
    assert run(fitted(tmp_path / "t.csv", tmp_path / "m")) == 0
    assert "240 of 300 rows are copies of others" in capsys.readouterr().out
    held = pd.read_csv(tmp_path / "m" / "held_out.csv")["row"]
    assert len(held) == 60
    assert held.mod(60).value_counts().eq(5).all()
    assert json.loads((tmp_path / "m" / "training.json").read_text())["understood"]["copies"] == 240


def test_rows_of_a_stream_are_known_again_and_copies_of_held_out_rows_do_not_train(tmp_path, capsys):
    (tmp_path / "rows").mkdir()
    for part in range(2):
        pd.concat([rows(100), rows(20, seed=part + 1)]).to_csv(tmp_path / "rows" / f"{part}.csv", index=False)
    assert run(fitted(tmp_path / "rows", tmp_path / "m")) == 0
    held = pd.read_csv(tmp_path / "m" / "held_out.csv")["row"]
    both = held[held.mod(120) < 100].mod(120)
    assert len(both)
    assert both.value_counts().eq(2).all()
    pd.concat(
        [pd.read_csv(tmp_path / "rows" / f"{part}.csv") for part in (1, 0)]
    ).to_csv(tmp_path / "other.csv", index=False)  # fmt: skip
    capsys.readouterr()
    judge, _, about, _ = judged(tmp_path, tmp_path / "other.csv")
    assert sorted((judge.index + 120) % 240) == sorted(held)
    assert about == f"{len(held)} of 240 complete rows of other.csv: {240 - len(held)} trained, and are left out."


def test_copies_of_held_out_rows_do_not_train_where_few_rows_of_a_stream_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr("ciplearn.cli.training._ROWS_TO_CHOOSE", 100)
    (tmp_path / "rows").mkdir()
    for part in range(2):
        rows(200).to_csv(tmp_path / "rows" / f"{part}.csv", index=False)
    assert run(fitted(tmp_path / "rows", tmp_path / "m")) == 0
    held = pd.read_csv(tmp_path / "m" / "held_out.csv")["row"]
    assert 20 < len(held) <= 40
    assert held.mod(200).value_counts().eq(2).all()


def test_of_many_rows_a_sample_is_kept_that_tells_some(tmp_path, monkeypatch, folder):
    monkeypatch.setattr("ciplearn._core.rows._MOST", 100)
    rows(N).to_csv(tmp_path / "t.csv", index=False)
    assert run(fitted(tmp_path / "t.csv", tmp_path / "m")) == 0
    assert len((tmp_path / "m" / "trained_rows").read_bytes()) < 1000
    judge, _, about, _ = judged(tmp_path, shuffled(tmp_path))
    held = rows(N).iloc[pd.read_csv(tmp_path / "m" / "held_out.csv")["row"]]
    assert set(judge["income"]) <= set(held["income"])
    assert 20 <= len(judge) < 60
    told = len(judge) + 101
    assert about.startswith(f"{len(judge)} of 300 complete rows of shuffled.csv: ")
    assert about.endswith(f"of {told} that can be told 101 trained, the others judge.")
    rows(N, seed=1).to_csv(tmp_path / "fresh.csv", index=False)
    assert len(judged(tmp_path, tmp_path / "fresh.csv")[0]) == N


def categories(n, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.integers(0, 3, n) for name in ("sex", "hours")})
    return table.assign(income=(table["hours"] + rng.integers(0, 3, n)))


def test_rows_of_a_few_categories_agree_by_chance_and_are_no_copies(tmp_path, capsys):
    categories(400).to_csv(tmp_path / "t.csv", index=False)
    assert run(fitted(tmp_path / "t.csv", tmp_path / "m")) == 0
    assert "copies" not in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "m" / "held_out.csv")) == 80
    categories(400, seed=1).to_csv(tmp_path / "fresh.csv", index=False)
    assert len(judged(tmp_path, tmp_path / "fresh.csv")[0]) == 400


def test_of_rows_that_agree_by_chance_as_many_are_left_out_as_trained(tmp_path):
    common = categories(200).assign(hours=lambda t: t["hours"].astype(float))
    table = pd.concat([common, rows(200)[["sex", "hours", "income"]]], ignore_index=True)
    table.to_csv(tmp_path / "t.csv", index=False)
    assert run([*fitted(tmp_path / "t.csv", tmp_path / "m"), "--categories=sex"]) == 0
    held = table.iloc[pd.read_csv(tmp_path / "m" / "held_out.csv")["row"]]
    table.sample(frac=1, random_state=1).to_csv(tmp_path / "other.csv", index=False)
    judge = judged(tmp_path, tmp_path / "other.csv")[0]
    assert len(judge) == len(held)
    columns = ["sex", "hours", "income"]
    as_text = [t[columns].astype({"sex": str}).value_counts().sort_index() for t in (judge, held)]
    assert as_text[0].tolist() == as_text[1].tolist()
    assert as_text[0].index.tolist() == as_text[1].index.tolist()
