"""What goes wrong ends in one line, exit code 2, and nothing half-written."""

import json
import os
import shutil

import pytest

from ciplearn.cli.app import run
from tests.cli.installed import ciplearn
from tests.cli.people import GRAPH, people

TABLE, MODEL, OUT = "{table}", "{model}", "{out}"
FIT = ["fit", TABLE, "--graph", GRAPH, "--out", OUT, "--epochs=1", "--gamma=1", "--no-compare"]


@pytest.fixture
def ground(tmp_path, place, model):
    """Where the mistakes happen: broken files beside good ones."""
    table = people(100)
    table.to_csv(tmp_path / "good.csv", index=False)
    table.rename(columns={"id": "job"}).to_csv(tmp_path / "twice.csv", index=False)
    table.drop(columns="hours").to_csv(tmp_path / "less.csv", index=False)
    table.assign(hours="many").to_csv(tmp_path / "text.csv", index=False)
    table.head(0).to_csv(tmp_path / "header.csv", index=False)
    table.to_csv(tmp_path / "nameless.csv", index=False, header=False)
    table.assign(income=">50K").to_csv(tmp_path / "constant.csv", index=False)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "ragged.csv").write_text(table.to_csv(index=False) + "1,2,3,4,5,6,7,8\n")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "unknown.yaml").write_text("gama: 3\n")
    (tmp_path / "capitals.yaml").write_text("GAMMA: 3\n")
    (tmp_path / "broken.yaml").write_text("a: [1\n")
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "config.ini").write_text("a = 1")
    (tmp_path / "evil.py").write_text("raise RuntimeError('ran')")
    (tmp_path / "evil.yaml").write_text('equations: {sex: \'__import__("os").system("true")\'}\n')
    return tmp_path, model


MISTAKES = {
    "no such table": ([*FIT[:1], "nothing.csv", *FIT[2:]], "There is no file"),
    "folder instead of a table": ([*FIT[:1], "folder.csv", *FIT[2:]], "is a folder"),
    "empty file": ([*FIT[:1], "empty.csv", *FIT[2:]], "is empty"),
    "header without rows": ([*FIT[:1], "header.csv", *FIT[2:]], "has no rows"),
    "bytes that are no text": ([*FIT[:1], "binary.csv", *FIT[2:]], "binary.csv"),
    "broken parquet": ([*FIT[:1], "broken.parquet", *FIT[2:]], "broken.parquet cannot be read"),
    "ragged rows": ([*FIT[:1], "ragged.csv", *FIT[2:]], "no regular table"),
    "duplicate columns": ([*FIT[:1], "twice.csv", *FIT[2:]], "several columns named 'job'"),
    "column of the graph missing": ([*FIT[:1], "less.csv", *FIT[2:]], "node 'hours'"),
    "table without a line of names": ([*FIT[:1], "nameless.csv", *FIT[2:]], "give them with --columns"),
    "constant outcome": ([*FIT[:1], "constant.csv", *FIT[2:]], "the same value in all rows"),
    "wrong protected column": ([*FIT, "--protected=sxe"], "did you mean 'sex'?"),
    "wrong graph": ([*FIT[:3], "sex -> ", *FIT[4:]], "line 1"),
    "no graph": ([*FIT[:3], "graph", *FIT[4:]], "neither a file nor a graph"),
    "graph with a cycle": ([*FIT[:3], "sex -> job -> sex", *FIT[4:]], "no directed cycle"),
    "no outcome": ([*FIT[:3], "sex -> income", *FIT[4:], "--protected=sex"], "needs one outcome"),
    "gamma and tolerance": ([*FIT, "--tolerance=0.1"], "Both --gamma"),
    "tolerance that is no share": ([*FIT[:-2], "--tolerance=a tenth"], "pass for example 5% or 0.05"),
    "negative tolerance": ([*FIT[:-2], "--tolerance=-2%"], "--tolerance must be a share"),
    "negative gamma": ([*FIT[:-2], "--gamma=-1"], "--gamma"),
    "unknown penalty": ([*FIT, "--penalty=hsicc"], "--penalty must be one of"),
    "unknown preset": ([*FIT, "--preset=slow"], "--preset must be one of"),
    "unknown task": ([*FIT, "--task=ranking"], "--task must be one of"),
    "unknown policy": ([*FIT, "--missing=guess"], "--missing must be one of"),
    "unknown device": ([*FIT, "--device=abacus"], "device"),
    "regression of text": ([*FIT, "--task=regression"], "holds text"),
    "bad widths": ([*FIT, "--hidden=a,b"], "--hidden"),
    "wide separator": ([*FIT, "--separator=ab"], "--separator"),
    "unknown category": ([*FIT, "--categories=zone"], "'zone'"),
    "unknown key in a config": (["fit", "--config", "unknown.yaml"], "did you mean 'gamma'?"),
    "key in capitals in a config": (["fit", "--config", "capitals.yaml"], "did you mean 'gamma'?"),
    "broken config": (["fit", "--config", "broken.yaml"], "not valid YAML"),
    "config that is a list": (["fit", "--config", "list.json"], "must map names to values"),
    "config of another kind": (["fit", "--config", "config.ini"], ".yaml, .toml or .json"),
    "no config": (["fit", "--config", "nothing.yaml"], "cannot be read"),
    "output is a file": ([*FIT[:5], "good.csv", *FIT[6:]], "what this command reads"),
    "output inside a file": ([*FIT[:5], "good.csv/model", *FIT[6:]], "cannot be written"),
    "no model": (["predict", "folder.csv", TABLE, "--out", OUT], "is no model folder"),
    "other schema": (["predict", MODEL, "less.csv", "--out", OUT], "lacks the column 'hours'"),
    "text for numbers": (["predict", MODEL, "text.csv", "--out", OUT], "got 'many' in row 1"),
    "unknown id": (["predict", MODEL, TABLE, "--id=name", "--out", OUT], "'name' of --id"),
    "predictions into a folder": (["predict", MODEL, TABLE, "--out", "folder.csv"], "is a folder"),
    "predictions inside a file": (["predict", MODEL, TABLE, "--out", "good.csv/p.csv"], "cannot be written"),
    "json without a file": (["predict", MODEL, TABLE, "--json"], "pass --out too"),
    "disk full": (["predict", MODEL, TABLE, "--out", "/dev/full"], "No space left"),
    "no permission": (["predict", MODEL, TABLE, "--out", "/sys/p.csv"], "/sys/p.csv cannot be written"),
    "report inside a file": (["audit", MODEL, TABLE, "--out", "good.csv/r.html"], "cannot be written"),
    "audit of other columns": (["audit", MODEL, "less.csv", "--out", OUT], "lacks the column 'hours'"),
    "no causal model": (["audit", MODEL, TABLE, "--scm=nothing.yaml", "--out", OUT], "There is no file"),
    "code that was not allowed": (["audit", MODEL, TABLE, "--scm=evil.py", "--out", OUT], "pass --run-code"),
    "code that fails": (["audit", MODEL, TABLE, "--scm=evil.py", "--run-code", "--out", OUT], "RuntimeError: ran"),
    "formula with code": (["audit", MODEL, TABLE, "--scm=evil.yaml", "--out", OUT], "which formulas do not have"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_ends_in_one_line_and_code_2(name, ground, monkeypatch, capsys):
    folder, model = ground
    arguments, message = MISTAKES[name]
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    filled = [part.replace(TABLE, "good.csv").replace(MODEL, str(model)).replace(OUT, "result") for part in arguments]
    assert run(filled) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert sorted(folder.rglob("*")) == before


@pytest.mark.slow
def test_mistake_of_the_installed_command_is_one_line_too(ground):
    folder, model = ground
    done = ciplearn("predict", model, "less.csv", "--out=p.csv", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ciplearn: less.csv lacks the column 'hours'")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_no_permission_at_write_is_one_line(ground, monkeypatch, capsys):
    folder, model = ground
    (folder / "locked").mkdir(mode=0o555)
    monkeypatch.chdir(folder)
    assert run(["predict", str(model), "good.csv", "--out", "locked/p.csv"]) == 2
    assert "Permission denied" in capsys.readouterr().err


def test_damaged_model_folders_are_refused(ground, tmp_path, capsys):
    folder, model = ground
    for name, damage in {
        "training.json": lambda path: path.write_text('{"format": 1}'),
        "model.json": lambda path: path.write_text("{}"),
        "weights.safetensors": lambda path: path.write_bytes(path.read_bytes()[:-4]),
    }.items():
        copy = folder / f"copy-{name}"
        shutil.copytree(model, copy)
        damage(copy / name)
        assert run(["predict", str(copy), str(folder / "good.csv"), "--out", str(folder / "p.csv")]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    newer = folder / "newer"
    shutil.copytree(model, newer)
    (newer / "SHA256SUMS").unlink()
    content = json.loads((newer / "training.json").read_text()) | {"format": 99}
    (newer / "training.json").write_text(json.dumps(content))
    assert run(["predict", str(newer), str(folder / "good.csv")]) == 2
    assert "has format 99, and this ciplearn reads 2; update ciplearn" in capsys.readouterr().err


def test_outcome_that_acts_on_an_input_says_which_one_and_what_is_left(tmp_path, capsys):
    people(60).to_csv(tmp_path / "t.csv", index=False)
    graph = "sex -> education -> income -> hours"
    call = ["fit", str(tmp_path / "t.csv"), "--graph", graph, "--outcome=income", "--protected=sex"]
    assert run([*call, "--out", str(tmp_path / "m")]) == 2
    said = capsys.readouterr().err
    assert "The outcome 'income' acts on hours, so that the statement would be given the outcome" in said
    assert "--inputs education,sex)" in said
    assert run([*call, "--inputs=education,sex", "--out", str(tmp_path / "m"), "--dry-run"]) == 0
