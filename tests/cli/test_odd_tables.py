"""Tables as spreadsheets and people write them: read rightly, pointed out, or refused in one line."""

import gzip

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.rows import held_out_rows
from ciplearn.cli.app import run
from ciplearn.cli.training_table import stray_text

GRAPH = "S -> {A L Y}, A -> L -> Y, A -> Y"


@pytest.fixture
def table():
    draw = np.random.default_rng(0)
    S, A, L = draw.normal(size=(3, 60))
    return pd.DataFrame({"S": S, "A": A, "L": L, "Y": S + A + L})


@pytest.fixture
def place(tmp_path, table, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table.to_csv("good.csv", index=False)
    assert fit("good.csv", "--out=model") == 0
    capsys.readouterr()
    return tmp_path


def fit(path, *more):
    roles = ["--graph", GRAPH, "--outcome=Y", "--protected=A"]
    return run(["fit", path, *roles, "--gamma=1", "--epochs=1", "--no-compare", *more])


def refusal(capsys, code):
    assert code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize("chunk", ["7", "1000"])
def test_row_of_too_many_cells_is_refused_wherever_it_stands(place, capsys, chunk):
    path = place / "ragged.csv"
    path.write_text((place / "good.csv").read_text() + "1,2,3,4,5\n")
    said = refusal(capsys, run(["predict", "model", "ragged.csv", "--out=p.csv", f"--chunk-rows={chunk}"]))
    assert "ragged.csv is no regular table" in said
    # Newer versions of pandas count the cells of such a line.
    assert "line 62 has 5 cells" in said or "row 61 has more cells than the 4" in said
    assert not (place / "p.csv").exists()


def test_compressed_file_that_is_cut_short_or_none_is_refused(place, capsys):
    whole = gzip.compress((place / "good.csv").read_bytes())
    for name, content in {"cut.csv.gz": whole[:-20], "none.csv.zip": b"abc", "none.csv.xz": b"abc"}.items():
        (place / name).write_bytes(content)
        assert f"{name} cannot be read" in refusal(capsys, fit(name, "--out=other"))


@pytest.mark.parametrize("target", ["good.csv", "model/weights.safetensors", "model/../good.csv"])
@pytest.mark.parametrize("command", ["predict", "audit"])
def test_what_is_read_is_not_written_over(place, capsys, command, target):
    before = (place / target).read_bytes()
    said = refusal(capsys, run([command, "model", "good.csv", "--out", target]))
    assert "another file to write" in said
    assert (place / target).read_bytes() == before


def test_files_of_a_pattern_are_not_written_over(place, capsys):
    before = (place / "good.csv").read_bytes()
    assert "is what this command reads" in refusal(capsys, run(["predict", "model", "goo*.csv", "--out=good.csv"]))
    assert (place / "good.csv").read_bytes() == before


@pytest.mark.parametrize("option", ["scm", "config"])
def test_causal_model_and_config_are_not_written_over(place, capsys, option):
    (place / "k.json").write_text("{}")
    (place / "link.json").symlink_to("k.json")
    for target in ("k.json", "link.json", "./model/../k.json"):
        call = ["audit", "model", "good.csv", f"--{option}", "k.json", "--out", target]
        assert "is what this command reads" in refusal(capsys, run(call))
        assert (place / "k.json").read_text() == "{}"


def test_file_beside_the_model_in_its_folder_may_be_written_again(place):
    for _ in range(2):
        assert run(["predict", "model", "good.csv", "--out", "model/p.csv"]) == 0


def test_stray_text_is_found_among_numbers_only():
    assert stray_text(pd.Series(["1", "2.5", "oops", None])) == "oops"
    assert stray_text(pd.Series(["1,000", "2,500"])) == "1,000"
    assert stray_text(pd.Series(["5 %", "$7"])) == "5 %"
    assert stray_text(pd.Series(["1", "2"])) is None
    assert stray_text(pd.Series(["cook", "nurse", "1"])) is None


def test_outcome_with_stray_text_is_refused_until_it_is_missing(place, table, capsys):
    table.astype({"Y": object}).replace({"Y": {table["Y"][0]: "many"}}).to_csv("stray.csv", index=False)
    said = refusal(capsys, fit("stray.csv", "--out=other"))
    assert "Column 'Y' holds mostly numbers, but also cells like 'many'" in said
    assert fit("stray.csv", "--out=other", "--na=many") == 0
    assert "Regression." in capsys.readouterr().out


def test_column_with_stray_text_is_refused_until_it_is_confirmed(place, table, capsys):
    table.astype({"A": object}).replace({"A": {table["A"][0]: "oops"}}).to_csv("stray.csv", index=False)
    said = refusal(capsys, fit("stray.csv", "--out=other"))
    assert "Column 'A' holds mostly numbers, but also cells like 'oops'" in said
    assert "--categories A" in said
    assert fit("stray.csv", "--out=other", "--categories=A") == 0
    assert fit("stray.csv", "--out=other", "--na=oops", "--overwrite") == 0


def test_many_categories_of_a_few_rows_each_are_pointed_out(place, table, capsys):
    draw = np.random.default_rng(0)
    large = pd.concat([table] * 10, ignore_index=True)
    said = {}
    for name, codes in {"rare": 10_000 + draw.integers(0, 300, 600), "often": 10_000 + np.arange(600) % 30}.items():
        large.assign(L=codes).to_csv(f"{name}.csv", index=False)
        assert fit(f"{name}.csv", "--categories=L", "--dry-run", "--out=other") == 0
        said[name] = capsys.readouterr().err
    levels = pd.read_csv("rare.csv")["L"].drop(held_out_rows(600, 0.2, 0)).nunique()
    assert said["rare"].startswith(f"ciplearn: note: most of the {levels} categories of L stand in fewer than 5 of 480")
    assert said["often"] == ""


def test_numbers_whose_squares_overflow_are_refused(place, table, capsys):
    (table * 1e200).to_csv("huge.csv", index=False)
    assert "too far for squared errors" in refusal(capsys, fit("huge.csv", "--out=other"))


def test_protected_column_that_never_varies_is_refused(place, table, capsys):
    table.assign(A=1.0).to_csv("constant.csv", index=False)
    said = refusal(capsys, fit("constant.csv", "--out=other"))
    assert "The protected A has the same value in all" in said


def test_three_rows_are_too_few(place, table, capsys):
    table.head(3).to_csv("three.csv", index=False)
    assert "The table has 3 rows, and fitting needs 10" in refusal(capsys, fit("three.csv", "--out=other"))


@pytest.mark.parametrize("separator", [";", "·"])
def test_separators_of_one_byte_and_of_several(place, table, separator):
    table.to_csv("other.csv", sep=separator, index=False)
    assert run(["predict", "model", "good.csv", "--out=one.csv"]) == 0
    assert run(["predict", "model", "other.csv", f"--separator={separator}", "--out=other predictions.csv"]) == 0
    assert (place / "one.csv").read_bytes() == (place / "other predictions.csv").read_bytes()


def test_fit_ends_in_a_model_and_a_sentence_with_gaps_and_without_a_causal_model(tmp_path, capsys):
    draw = np.random.default_rng(0)
    group, noise, other = draw.choice(["f", "m"], 200), *draw.normal(size=(2, 200))
    between = (group == "m") + noise
    table = pd.DataFrame({"A": group, "X": between, "W": other, "L": "same", "Y": between + other})
    gaps, same = tmp_path / "gaps.csv", tmp_path / "same.csv"
    table.assign(X=table["X"].mask(draw.random(200) < 0.1)).to_csv(gaps, index=False)
    table.to_csv(same, index=False)
    roles = ["--protected=A", "--outcome=Y", "--learner=linear"]
    graph = "--graph=A -> X, X -> Y, W -> Y"
    assert run(["fit", str(gaps), graph, *roles, "--missing=impute", f"--out={tmp_path / 'g'}"]) == 0
    said = capsys.readouterr().out
    assert "linear, repaired at" in said
    assert "On rows kept for the audit: R²" in said
    assert run(["fit", str(same), f"{graph}, L -> Y", *roles, f"--out={tmp_path / 's'}"]) == 0
    said = capsys.readouterr()
    assert "Taken: linear, protected columns left out; its predictions may still follow" in said.out
    assert "the rows kept for the audit cannot judge the model: Column 'L' holds the one label" in said.err
