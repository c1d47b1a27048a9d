"""``ciplearn repair``, and the knob of a saved model."""

import json
import re
import shlex
import shutil

import numpy as np
import pandas as pd
import pytest

from ciplearn.cli.app import run

ROLES = ["--graph", "A -> {L Y}, {L Z} -> Y", "--outcome=Y", "--protected=A"]
MODULE = """
def model(frame):
    return frame["L"] + 0.5 * (frame["A"] == "f") + frame["Z"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repair")
    draw = np.random.default_rng(0)
    a, z, u = draw.integers(2, size=600), draw.normal(size=600), draw.normal(size=600)
    table = pd.DataFrame({"A": np.where(a, "f", "m"), "Z": z, "L": 1.5 * a + u})
    table.assign(Y=table["L"] + 0.5 * a + z + 0.3 * draw.normal(size=600)).to_csv(folder / "t.csv", index=False)
    (folder / "approved_model.py").write_text(MODULE)
    return folder


@pytest.fixture(scope="module")
def repaired(place):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        call = ["repair", "t.csv", *ROLES, "--predictor=approved_model:model", "--strict", "--out=model"]
        assert run([*call, "--report=report.html"]) == 0
    return place / "model"


def predictions(capsys, *call):
    capsys.readouterr()
    assert run(["predict", *call]) == 0
    return pd.Series(capsys.readouterr().out.split()[1:], dtype=float)


def test_approved_model_is_changed_until_it_is_the_same_in_every_world(repaired, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    named = ["model", "t.csv", "--predictor=approved_model:model"]
    rows = pd.read_csv("t.csv")
    as_it_was = rows["L"] + 0.5 * (rows["A"] == "f") + rows["Z"]
    np.testing.assert_allclose(predictions(capsys, *named, "--strength=0"), as_it_was)
    strict = predictions(capsys, *named)
    groups = strict.groupby(rows["A"].to_numpy()).mean()
    before = as_it_was.groupby(rows["A"]).mean()
    assert abs(groups["f"] - groups["m"]) < 0.2 * abs(before["f"] - before["m"])
    page = (place / "report.html").read_text()
    assert "unconstrained" in page
    assert json.loads((repaired / "training.json").read_text())["comparison"]["chosen"].endswith("full strength")


def test_where_an_audit_fails_the_least_strength_that_passes_is_what_to_type_next(repaired, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    call = ["audit", "model", "t.csv", "--predictor=approved_model:model", "--max-effect=0.8", "--doubt=1"]
    assert run([*call, "--interventions=10", "--strength=1", "--seed=1", "--points=150"]) == 1
    said = capsys.readouterr().out
    command = shlex.split(re.search("^Next: ciplearn (.*)$", said, re.MULTILINE)[1])
    assert "Repaired at strength 1.99, this model passes on the same rows." in (place / "report.html").read_text()
    assert command[:7] == ["audit", "model", "--predictor", "approved_model:model", "t.csv", "--strength", "1.99"]
    typed = {"--doubt": "1", "--seed": "1", "--points": "150", "--interventions": "10", "--max-effect": "0.8"}
    assert dict(zip(command[7::2], command[8::2], strict=True)) == typed
    assert run([*command, "--doubt=0"]) == 0


def test_folder_without_its_model_says_so(repaired, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    assert run(["predict", "model", "t.csv"]) == 2
    refused = capsys.readouterr().err
    assert "does not hold the model that was repaired" in refused
    assert "--predictor MODULE:NAME" in refused


def changed(repaired, folder, file, **entries):
    """Copy a model folder with other entries in one of its files, and without the list that would tell."""
    shutil.copytree(repaired, folder / "model")
    (folder / "model" / "SHA256SUMS").unlink()
    path = folder / "model" / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


@pytest.mark.parametrize("roles", [None, 7, [], {"verdict": []}, {"verdict": 7}, {"verdict": {"holds": 1}}])
def test_roles_that_were_changed_are_refused(roles, repaired, place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(place)
    changed(repaired, tmp_path, "training.json", roles=roles)
    assert run(["audit", str(tmp_path / "model"), "t.csv", "--predictor=approved_model:model", "--out=never.html"]) == 2
    assert "training.json" in capsys.readouterr().err
    assert not (place / "never.html").exists()


@pytest.mark.parametrize("classes", [-1, []])
def test_labels_that_were_changed_are_refused(classes, repaired, place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(place)
    changed(repaired, tmp_path, "repaired.json", classes=classes)
    assert run(["predict", str(tmp_path / "model"), "t.csv", "--predictor=approved_model:model"]) == 2
    assert "holds no repaired model" in capsys.readouterr().err


def test_what_repair_says_to_type_next_audits_the_repaired_model(place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    call = ["repair", "t.csv", *ROLES, "--predictor=approved_model:model", "--strict", "--out=next", "--overwrite"]
    assert run(call) == 0
    line = capsys.readouterr().out.strip().splitlines()[-1]
    assert line == "Next: ciplearn audit next t.csv --predictor approved_model:model --out report.html"
    run([*shlex.split(line)[2:], "--preset=quick", "--json"])
    audited = json.loads(capsys.readouterr().out)
    (fails,) = re.findall(r"Next: <code>([^<]*)", (place / "report.html").read_text())[:1] or [""]
    assert not fails.startswith("ciplearn fit")
    # The approved model stands beside it, and depends more on A.
    assert abs(audited["conclusion"]["checks"][1]["value"]) < abs(audited["conclusion"]["checks"][1]["before"])


def test_what_fit_and_audit_both_find_is_noted_once(repaired, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    draw = np.random.default_rng(1)
    a = np.where(draw.integers(2, size=300), "f", "m")
    # No mechanism makes values of this law.
    table = pd.DataFrame({"A": a, "L": draw.integers(0, 2, size=300) * 10 + 0.01 * draw.normal(size=300) + (a == "f")})
    table.assign(Z=0.0 + draw.normal(size=300), Y=table["L"] + draw.normal(size=300)).to_csv("two.csv", index=False)
    call = ["repair", "two.csv", *ROLES, "--predictor=approved_model:model", "--strict", "--out=two"]
    assert run(call) == 0
    notes = [re.sub(r"\d+", "", line) for line in capsys.readouterr().err.splitlines() if "note:" in line]
    assert notes
    assert len(set(notes)) == len(notes)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "Repair needs one model, got two or none"),
        (["--predictor=approved_model:model", "--strict", "--vcf=5%"], "Both --vcf and --strict were given"),
        (["--predictor=approved_model:model", "--max-effect=0", "--vcf=5%"], "Both --max-effect and --vcf were given"),
        (["--predictor=approved_model:model", "--strict", "--vcf="], "Both --vcf and --strict were given"),
        (["--predictor=approved_model:model", "--vcf=much"], "--vcf must be a share, got 'much'"),
    ],
)
def test_what_cannot_be_meant_is_said(place, capsys, monkeypatch, more, said):
    monkeypatch.chdir(place)
    assert run(["repair", "t.csv", *ROLES, *more, "--out=other"]) == 2
    assert said in capsys.readouterr().err
    assert not (place / "other").exists()


def test_model_that_cannot_be_repaired_is_refused_with_the_reason(place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    pd.read_csv("t.csv").head(40).to_csv("few.csv", index=False)
    assert run(["repair", "few.csv", *ROLES, "--predictor=approved_model:model", "--out=other"]) == 2
    assert re.search(
        r"^ciplearn: No causal model could be estimated, so nothing is repaired: ", capsys.readouterr().err
    )
    assert not (place / "other").exists()


def test_model_that_cannot_be_asked_is_called_what_it_was_called(place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    (place / "coin_model.py").write_text(
        "import random\ndef model(frame):\n    return [random.random() for _ in frame.L]\n"
    )
    assert run(["repair", "t.csv", *ROLES, "--predictor=coin_model:model", "--out=other"]) == 2
    assert "coin_model:model gave two different answers to the same rows" in capsys.readouterr().err


def test_strength_is_for_repaired_models(place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    assert run(["fit", "t.csv", *ROLES, "--gamma=1", "--epochs=1", "--no-compare", "--out=trained"]) == 0
    assert run(["predict", "trained", "t.csv", "--strength=1"]) == 2
    assert "which has no strength" in capsys.readouterr().err


def test_odd_rows_of_a_repaired_model_are_counted_and_named(repaired, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    rows = pd.read_csv("t.csv").head(50)
    rows.assign(L=rows["L"] * 1e4).to_csv("cents.csv", index=False)
    capsys.readouterr()
    call = ["predict", "model", "cents.csv", "--predictor=approved_model:model", "--out=p.csv", "--json"]
    assert run(call) == 0
    told = capsys.readouterr()
    assert "Column 'L' lies far outside" in told.err
    assert [each["column"] for each in json.loads(told.out)["far_numbers"]] == ["L"]
    assert run([*call, "--chunk-rows=7"]) == 0
    assert json.loads(capsys.readouterr().out)["far_numbers"] == json.loads(told.out)["far_numbers"]


def test_new_labels_of_a_repaired_model_are_counted_and_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"A": draw.choice(["f", "m"], 300), "T": draw.choice(["a", "b"], 300)})
    table["L"] = (table["A"] == "f") + (table["T"] == "b") + draw.normal(size=300)
    table.assign(Y=table["L"] + draw.normal(size=300)).to_csv("t.csv", index=False)
    (tmp_path / "town_model.py").write_text("def model(frame):\n    return frame['L'] + (frame['T'] == 'b')\n")
    roles = ["--graph=A -> {L Y}, T -> {L Y}, L -> Y", "--outcome=Y", "--protected=A"]
    assert run(["repair", "t.csv", *roles, "--predictor=town_model:model", "--strict", "--out=m"]) == 0
    table.head(20).assign(T="elsewhere").to_csv("new.csv", index=False)
    capsys.readouterr()
    assert run(["predict", "m", "new.csv", "--predictor=town_model:model", "--out=p.csv"]) == 0
    assert "'elsewhere' in T (20)" in capsys.readouterr().err


def test_odd_rows_of_a_trained_model_that_was_repaired_are_counted_and_named(tmp_path, place, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fitted = ["fit", str(place / "t.csv"), *ROLES, "--learner=linear", "--preset=quick", "--out=m"]
    assert run(fitted) == 0
    assert (tmp_path / "m" / "repaired.json").exists()
    table = pd.read_csv(place / "t.csv")
    table.assign(L=table["L"] * 1e4).to_csv("cents.csv", index=False)
    assert run(["predict", "m", "cents.csv", "--out=p.csv"]) == 0
    assert "Column 'L' lies far outside" in capsys.readouterr().err


def test_impossible_numbers_are_counted_and_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    a = draw.integers(2, size=1000)
    # Amounts above zero that are normal on a log scale.
    table = pd.DataFrame({"A": np.where(a, "f", "m"), "L": np.exp(2.0 * a + draw.normal(size=1000))})
    table.assign(Y=np.log(table["L"]) + draw.normal(size=1000)).to_csv("t.csv", index=False)
    (tmp_path / "amount_model.py").write_text("def model(frame):\n    return frame['L'].to_numpy()\n")
    named = "--predictor=amount_model:model"
    assert run(["repair", "t.csv", "--graph=A -> L -> Y", *ROLES[2:], named, "--strict", "--out=m"]) == 0
    table.head(20).assign(L=[-5.0, -1.0, *table["L"][2:20]]).to_csv("new.csv", index=False)
    capsys.readouterr()
    assert run(["predict", "m", "new.csv", named, "--chunk-rows=1", "--out=p.csv", "--json"]) == 0
    told = capsys.readouterr()
    assert "Column 'L' holds numbers that the causal model deems impossible, in 2 rows; they are taken" in told.err
    assert json.loads(told.out)["impossible_numbers"] == [{"column": "L", "rows": 2}]
