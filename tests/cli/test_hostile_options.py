"""Options, option files and model folders that were not made with care: one line, and never a traceback."""

import contextlib
import copy
import functools
import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import CiplearnError
from ciplearn._core.rows import held_out_rows
from ciplearn.causal import CausalGraph
from ciplearn.cli.app import run
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.repairing import load_model
from ciplearn.scm.scm_file import read_scm

GRAPH = "S -> {A L Y}, A -> L -> Y, A -> Y"
ROLES = ["--graph", GRAPH, "--outcome=Y", "--protected=A"]
FIT = ["fit", "t.csv", *ROLES, "--epochs=1", "--no-compare", "--out=m"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    S, A, L = np.random.default_rng(0).normal(size=(3, 60))
    pd.DataFrame({"S": S, "A": A, "L": L, "Y": S + A + L}).to_csv("t.csv", index=False)
    return tmp_path


def refusal(capsys, arguments):
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
DEEP = 100_000
FILES = {
    "bomb.yaml": (BOMB, "alias"),
    "merge.yaml": ("a: &a {gamma: 1}\n<<: *a\n", "alias"),
    "deep.yaml": ("gamma: " + "[" * DEEP + "]" * DEEP, "too deep"),
    "deep mappings.yaml": ("".join(" " * place + "a:\n" for place in range(300)), "too deep"),
    "deep.json": ('{"gamma": ' + "[" * DEEP + "]" * DEEP + "}", "too deep"),
    "deep.toml": ("gamma = " + "[" * DEEP + "]" * DEEP, "too deep"),
    "dotted.toml": ("a" + ".a" * 5 * DEEP + " = 1", "too deep"),
    "dotted table.toml": ("[a" + ".'a'" * DEEP + "]", "too deep"),
    "dotted with spaces.toml": ("a" + "   .   a" * 40_000 + " = 1", "too deep"),
    "dotted inside.toml": ("b = {a" + " . a" * DEEP + " = 1}", "too deep"),
    "nested.json": ('{"gamma": [[1]]}', "values within values"),
    "mapping.toml": ("gamma = {a = 1}", "values within values"),
    "yes.yaml": ("gamma: yes\n", "to yes or no"),
    "yes.json": ('{"epochs": true}', "to yes or no"),
    "text.yaml": ("gamma: much\n", "--gamma"),
    "digits.json": ('{"gamma": ' + "9" * 5000 + "}", "more than 300 digits"),
    "digits.yaml": ("gamma: 0b" + "1" * 20_000, "more than 300 digits"),
    "digits of sixty.yaml": ("gamma: " + "59:" * 200_000 + "59", "more than 300 digits"),
    "digits.toml": ("gamma = 0x" + "f" * 20_000, "more than 300 digits"),
    "large.json": ('{"graph": "' + "x" * (1 << 20) + '"}', "more than 1 MiB"),
    "bytes.json": (b"\xff\xfe\x00", "not UTF-8"),
    "python.yaml": ("gamma: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
}


@pytest.mark.parametrize("name", FILES)
def test_option_file_that_is_no_option_file(name, place, capsys):
    content, message = FILES[name]
    (place / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refusal(capsys, [*FIT, "--config", name])
    assert not (place / "m").exists()


def test_devices_pipes_and_folders_are_no_option_files(place, capsys):
    os.mkfifo("pipe.json")
    (place / "folder.json").mkdir()
    for name in ("/dev/zero", "pipe.json", "folder.json"):
        assert "no regular file" in refusal(capsys, [*FIT, "--config", name])


OPTIONS = {
    "gamma beyond measure": (["--gamma=1e308"], "--gamma"),
    "gamma that is no number": (["--gamma=nan"], "gamma"),
    "gamma without end": (["--gamma=inf"], "--gamma"),
    "device that is not there": (["--gamma=1", "--device=xpu"], "device must be"),
    "device of a number that is not there": (["--gamma=1", "--device=cpu:-3"], "device must be"),
    "layers beyond memory": (["--gamma=1", "--hidden=1000000,1000000"], "--hidden 1000000,1000000 makes a network of"),
    "layers of nothing": (["--gamma=1", "--hidden=0"], "--hidden must be whole numbers above zero"),
    "learning without a rate": (["--gamma=1", "--learning-rate=0"], "learning_rate"),
    "learning at no rate": (["--gamma=1", "--learning-rate=nan"], "rate"),
    "quotation mark between cells": (["--gamma=1", '--separator="'], "--separator"),
}


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
@pytest.mark.parametrize("name", OPTIONS)
def test_option_beyond_reason(name, dry, place, capsys):
    more, message = OPTIONS[name]
    assert message in refusal(capsys, [*FIT, *more, *dry])
    assert not (place / "m").exists()


def test_latent_node_is_no_outcome(place, capsys):
    graph = "dag { S -> A -> Y ; H [latent] ; S -> H }"
    call = ["fit", "t.csv", "--graph", graph, "--outcome=H", "--protected=A", "--gamma=1", "--out=m"]
    assert "The outcome 'H' is latent" in refusal(capsys, call)


def test_dry_run_refuses_what_the_fit_refuses(place, capsys):
    table = pd.read_csv("t.csv")
    pd.concat([table] * 25).assign(L=[f"name {row}" for row in range(1500)]).to_csv("names.csv", index=False)
    (table * 1e200).to_csv("huge.csv", index=False)
    table.assign(Y=["rare", *["often", "also"] * 29, "often"]).to_csv("rare.csv", index=False)
    labels = np.full(len(table), "often", dtype=object)
    labels[held_out_rows(len(table), 0.2, 0)[0]] = "rare"
    table.assign(Y=labels).to_csv("held.csv", index=False)
    (place / "taken").mkdir()
    (place / "taken" / "thesis.tex").write_text("years of work")
    violated = ["--graph", "S -> {A L Y}, A -> L -> Y, A -> Y", "--outcome=Y", "--protected=A", "--context=A"]
    cases = [
        (["fit", "names.csv", *ROLES, "--out=m"], "different texts"),
        (["fit", "huge.csv", *ROLES, "--out=m"], "too far for squared errors"),
        (["fit", "rare.csv", *ROLES, "--holdout=0", "--out=m"], "in a single training row"),
        (["fit", "held.csv", *ROLES, "--out=m"], "The outcome 'Y' is 'often' in all 48 training rows"),
        (["fit", "t.csv", *ROLES, "--measure=beauty", "--out=m"], "--measure must be one of"),
        (["fit", "t.csv", *ROLES, "--out=taken"], "holds no model"),
        (["fit", "t.csv", *violated, "--adjustment=", "--gamma=1", "--out=m"], "pass --on-violation warn"),
    ]
    for call, message in cases:
        said = refusal(capsys, [*call, "--dry-run"])
        assert message in said
        assert refusal(capsys, call) == said
    assert sorted(os.listdir("taken")) == ["thesis.tex"]


def test_codes_are_asked_about(place, capsys):
    table = pd.read_csv("t.csv").assign(A=[1, 2] * 30, L=[1, 2, 3] * 20, S=[0, 1] * 30)
    table.to_csv("t.csv", index=False)
    assert run([*FIT, "--gamma=1", "--dry-run"]) == 0
    said = capsys.readouterr().err
    assert "A, L may hold codes" in said or "L, A may hold codes" in said
    assert "--categories" in said
    assert run([*FIT, "--gamma=1", "--dry-run", "--categories=A,L"]) == 0
    assert capsys.readouterr().err == ""


EQUATIONS = {
    "9 ** 9 ** 9 + A": "gives",
    "sin()": "sin takes 1",
    "'x' * 10 ** 10": "computes with text",
    "1 / 0": "gives inf",
}


@pytest.mark.parametrize("text", EQUATIONS)
def test_equation_of_a_file_that_cannot_be_computed(text, place):
    graph = CausalGraph.from_edges("A -> Y")
    noise = {"A": "normal(0, 1)", "Y": "normal(0, 1)"}
    (place / "k.json").write_text(json.dumps({"equations": {"A": "u", "Y": text}, "noise": noise}))
    with pytest.raises(CiplearnError, match=EQUATIONS[text]):
        read_scm(place / "k.json", graph, run_code=False)


@pytest.mark.parametrize("levels", [5, "ab", [["a"], ["b"]], [None, "a"], {"a": 1}])
def test_labels_of_a_file_that_are_none(levels, place):
    equations = {"A": "u", "Y": "A + u"}
    (place / "k.json").write_text(json.dumps({"equations": equations, "categories": {"A": levels}}))
    with pytest.raises(CiplearnError):
        read_scm(place / "k.json", CausalGraph.from_edges("A -> Y"), run_code=False)


def test_python_that_leaves_does_not_end_the_command_in_silence(place):
    (place / "k.py").write_text("import sys; sys.exit(0)")
    with pytest.raises(CiplearnError, match="SystemExit"):
        read_scm(place / "k.py", CausalGraph.from_edges("A -> Y"), run_code=True)


def places_in(value, path=()):
    for place in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, place)
        yield from places_in(value[place], (*path, place))


@pytest.fixture
def folder(place, capsys):
    assert run([*FIT[:-2], "--gamma=1", "--out=m"]) == 0
    capsys.readouterr()
    # As if somebody had changed the folder, list and all.
    (place / "m" / "SHA256SUMS").unlink()
    return place / "m"


@pytest.mark.parametrize("change", ["left out", None, "text", -1, [], {}, True, 1e400])
def test_training_record_that_was_changed_is_refused_or_still_serves(change, folder, monkeypatch):
    # The networks beside the record stay as they are, and are read once.
    monkeypatch.setattr("ciplearn.cli.model_folder.load_model", functools.cache(load_model))
    record = folder / "training.json"
    whole = json.loads(record.read_text())
    for path in places_in(whole):
        if path[0] in ("understood", "settings") and len(path) > 1:
            continue
        broken = copy.deepcopy(whole)
        around = broken
        for name in path[:-1]:
            around = around[name]
        if change == "left out":
            del around[path[-1]]
        else:
            around[path[-1]] = change
        record.write_text(json.dumps(broken))
        with contextlib.suppress(CiplearnError):
            found = ModelFolder.read(folder)
            assert found.labels == []
            assert len(found.training["trials"]) == len(found.trials)


def test_trials_with_other_measures_are_refused(folder):
    record = folder / "training.json"
    whole = json.loads(record.read_text())
    trials = [
        {"gamma": gamma, "measures": {"loss": 1.0, "score": 0.0, **more}, "folder": "."}
        for gamma, more in ((0.0, {"penalty": 1.0}), (1.0, {}))
    ]
    record.write_text(json.dumps({**whole, "trials": trials}))
    with pytest.raises(CiplearnError, match="damaged"):
        ModelFolder.read(folder)


def test_training_record_names_no_folder_outside(folder, capsys):
    record = folder / "training.json"
    whole = json.loads(record.read_text())
    shutil.copytree(folder, folder.parent / "other")
    trial = {"gamma": 0.0, "measures": {"loss": 1.0, "score": 0.0}}
    for name in ("../other", "/etc", "trials/../../other", "trials/00/../.."):
        record.write_text(json.dumps({**whole, "trials": [{**trial, "folder": name}]}))
        assert "damaged" in refusal(capsys, ["predict", "m", "t.csv", "--out=p.csv"])


def test_model_of_deep_nesting_is_refused(folder, capsys):
    for name in ("model.json", "training.json"):
        whole = (folder / name).read_text()
        (folder / name).write_text("[" * DEEP + "]" * DEEP)
        refusal(capsys, ["predict", "m", "t.csv", "--out=p.csv"])
        (folder / name).write_text(whole)
    (folder / "held_out.csv").write_text("row\nnot a number\n")
    assert "damaged" in refusal(capsys, ["predict", "m", "t.csv", "--out=p.csv"])


def test_rows_held_out_are_listed_and_are_those_that_are_judged(place):
    assert run([*FIT, "--gamma=1"]) == 0
    rows = pd.read_csv(place / "m" / "held_out.csv")["row"]
    assert len(rows) == len(set(rows)) == 12
    assert ModelFolder.read(place / "m").held_out.tolist() == rows.tolist()
