"""Calls and files that nobody would write: a command ends in 0, 1 or 2, in a line, and never in a traceback."""

import contextlib
import hashlib
import io
import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciplearn._core.errors import CiplearnError
from ciplearn.causal import CausalGraph
from ciplearn.cli.app import app, run
from ciplearn.scm.scm_file import read_scm

pytestmark = pytest.mark.slow

# Hypothesis draws as many examples as CIPLEARN_FUZZ says; a thousand take some minutes.
MANY = settings(
    max_examples=int(os.environ.get("CIPLEARN_FUZZ", "150")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

cells = st.one_of(
    st.sampled_from(
        ["", "0", "1", "2", "1.0", "01", "-1e300", "1e19", "inf", "nan", "NA", "None", "?", " a ", '"', "a,b"]
    ),
    st.floats().map(repr),
    st.text(max_size=6),
)
texts = st.text(max_size=30)
graphs = st.one_of(st.just("S -> {A Y}, A -> Y"), st.text(alphabet='SAYL->{}[];,\n <dag"latent', max_size=40))
values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.lists(texts, max_size=3))
HOSTILE = [
    *("", "-1", "0", "1", "2.5", "nan", "inf", "1e400", "10000000000000000000", "yes", "[1,2]", "é"),
    *("A", "Y", "S,A", "B", "A -> Y", '"', "x" * 300, "\x1b[31m"),
    *("t.csv", "m", "m/model.json", ".", "..", "/dev/null", "nothing/at/all", "known.json", "a:b", "*"),
]
hostile = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8))
ROLES = ["--graph=S -> {A Y}, A -> Y", "--outcome=Y", "--protected=A"]
TRAINING = ["--gamma=1", "--epochs=1", "--no-compare"]
EFFORT = ["--preset=quick", "--points=4", "--interventions=2", "--draws=1", "--scm-rows=40"]

# Calls that work, or would run for long and are refused for something else than what is tried.
WORKING = {
    "fit": ["fit", "t.csv", *ROLES, *TRAINING, "--out=n", "--overwrite"],
    "repair": ["repair", "t.csv", *ROLES, "--predictor=fuzzed_model:model", "--out=n", "--overwrite"],
    "predict": ["predict", "m", "t.csv", "--out=p.csv"],
    "audit": ["audit", "m", "t.csv", *EFFORT, "--out=r.html"],
    "imagine": ["imagine", "t.csv", *ROLES, *EFFORT, "--out=w.csv"],
    "check": ["check", "S -> {A Y}, A -> Y", *ROLES[1:], "--data=t.csv", "--tests=1"],
    "demo": ["demo", "--out=t.csv"],
    "bench": ["bench", "--nothing"],
    "workbench": ["workbench", "nothing.csv", "--no-browser"],
}
# Options that would start a cluster, train for long, or let a refused call through.
UNTRIED = dict.fromkeys(WORKING, ("--engine", "--epochs", "--preset", "--help", "--doubt", "--hidden"))
UNTRIED["demo"] = ("--out",)

names = ["gamma", "epochs", "hidden", "outcome", "protected", "context", "skip", "na", "task", "measure", "penalty"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    here = os.getcwd()
    os.chdir(folder)
    S, A = np.random.default_rng(0).normal(size=(2, 120))
    pd.DataFrame({"S": S, "A": np.where(A > 0, "x", "y"), "Y": S + A}).to_csv("t.csv", index=False)
    roles = ["--graph", "S -> {A Y}, A -> Y", "--outcome=Y", "--protected=A"]
    assert run(["fit", "t.csv", *roles, "--gamma=1", "--epochs=1", "--no-compare", "--out=m"]) == 0
    # A model that was repaired, and one that was trained and is kept in the folder.
    (folder / "fuzzed_model.py").write_text("def model(frame):\n    return frame['S'] + (frame['A'] == 'x')\n")
    assert run(["repair", "t.csv", *roles, "--predictor=fuzzed_model:model", "--strict", "--out=f"]) == 0
    assert run(["fit", "t.csv", *roles, "--strict", "--learner=linear", "--preset=quick", "--out=r"]) == 0
    # What damaged copies are made of: a call that names another file may replace it.
    for kept in "mrf":
        shutil.copytree(kept, f"whole-{kept}")
    yield folder
    os.chdir(here)


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def ends_well(arguments):
    """Whether a call ends in 0, 1 or 2, in a line of ours where refused, and sends no escapes to the terminal."""
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = run(arguments)
    last = complained.getvalue().rstrip("\n").rsplit("\n", 1)[-1]
    in_a_line = code in (0, 1) or (code == 2 and last.startswith("ciplearn: "))
    return in_a_line and "\x1b" not in said.getvalue() + complained.getvalue()


@MANY
@given(graphs, texts, texts)
def test_check(graph, outcome, protected):
    assert ends_well(["check", "--", graph])
    assert ends_well(["check", f"--outcome={outcome}", f"--protected={protected}", "S -> {A Y}, A -> Y"])


@MANY
@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=30), st.booleans())
def test_tables(place, rows, only):
    pd.DataFrame(rows, columns=["S", "A", "Y"]).to_csv("fuzz.csv", index=False)
    more = ["--only-na"] if only else []
    assert ends_well(["fit", "fuzz.csv", *ROLES, *TRAINING, *more, "--out=n", "--overwrite"])
    assert ends_well(["predict", "m", "fuzz.csv", "--id=A", *more, "--out=p.csv"])
    assert ends_well(["audit", "m", "fuzz.csv", *EFFORT, *more, "--out=r.html"])
    assert ends_well(["predict", "r", "fuzz.csv", *more, "--out=p.csv"])
    assert ends_well(["predict", "f", "fuzz.csv", "--predictor=fuzzed_model:model", *more, "--out=p.csv"])
    assert ends_well(["imagine", "fuzz.csv", *ROLES, *EFFORT, *more, "--out=w.csv"])
    assert ends_well(["check", *ROLES[1:], "--data=fuzz.csv", "--tests=1", *more])


def options_of(command):
    """The options of a command that are tried, and those among them that take no value."""
    known = typer.main.get_command(app).commands[command].params
    flags = [each.opts[0] for each in known if each.opts[0].startswith("--") and each.opts[0] not in UNTRIED[command]]
    return sorted(flags), {each.opts[0] for each in known if getattr(each, "is_flag", False)}


@MANY
@given(st.sampled_from(sorted(WORKING)), st.data())
def test_options(place, command, data):
    """One or two options of a call that works are given something else."""
    flags, switches = options_of(command)
    chosen = data.draw(st.lists(st.sampled_from(flags), min_size=1, max_size=2, unique=True))
    more = [flag if flag in switches else f"{flag}={data.draw(hostile)}" for flag in chosen]
    assert ends_well([*WORKING[command], *more])


@pytest.mark.parametrize("command", WORKING)
def test_every_option_by_everything_that_does_not_belong_there(place, command):
    flags, switches = options_of(command)
    tried = [flag if flag in switches else f"{flag}={value}" for flag in flags for value in HOSTILE]
    wrong = [option for option in dict.fromkeys(tried) if not ends_well([*WORKING[command], option])]
    assert not wrong
    assert (place / "t.csv").exists()
    assert (place / "m" / "model.json").exists()


@MANY
@given(
    st.lists(st.tuples(cells, cells), min_size=1, max_size=30), st.sampled_from(["prediction", "probability[x]", "a"])
)
def test_predictions_from_elsewhere(place, rows, name):
    pd.DataFrame(rows, columns=["id", name]).to_csv("said.csv", index=False)
    assert ends_well(["audit", "t.csv", *ROLES, *EFFORT, "--predictions=said.csv", "--out=r.html"])


@MANY
@given(st.binary(max_size=200), st.sampled_from(["csv", "tsv", "csv.gz", "parquet", "csv.zip", "csv.tar", "csv.xz"]))
def test_bytes_as_tables(place, content, suffix):
    (place / f"bytes.{suffix}").write_bytes(content)
    assert ends_well(["predict", "m", f"bytes.{suffix}", "--out=p.csv"])


@MANY
@given(st.dictionaries(st.sampled_from(names), values, max_size=4), st.sampled_from(["json", "yaml"]))
def test_option_files(place, content, suffix):
    (place / f"fuzz.{suffix}").write_text(json.dumps(content))
    roles = ["--graph", "S -> {A Y}, A -> Y"]
    assert ends_well(["fit", "t.csv", *roles, "--config", f"fuzz.{suffix}", "--dry-run", "--out=never"])


@MANY
@given(st.dictionaries(st.sampled_from("AYu"), st.one_of(texts, st.floats(), st.none())), st.one_of(texts, st.floats()))
def test_causal_models(place, equations, law):
    (place / "k.json").write_text(json.dumps({"equations": equations, "noise": {"A": law, "Y": "normal(0, 1)"}}))
    drawn = None
    with contextlib.suppress(CiplearnError):
        drawn = read_scm(place / "k.json", CausalGraph.from_edges("A -> Y"), run_code=False).sample(5, random_state=0)
    assert drawn is None or drawn.shape == (5, 2), "refused, or as many rows as were asked for"


def entries(value, path=()):
    """The path of each entry within lists and mappings; of a list only of the first two."""
    for key in value if isinstance(value, dict) else range(min(len(value), 2)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from entries(value[key], (*path, key))


@MANY
@given(st.data(), st.sampled_from(["m", "r", "f"]))
def test_folders_with_an_entry_of_another_kind(place, data, kept):
    """Whoever changes a folder can keep it readable, and leave in one place what no training leaves."""
    shutil.rmtree(place / "d", ignore_errors=True)
    shutil.copytree(place / f"whole-{kept}", place / "d")
    for sums in (place / "d").rglob("SHA256SUMS"):
        sums.unlink()
    file = data.draw(st.sampled_from(sorted((place / "d").rglob("*.json"))))
    content = json.loads(file.read_text())
    *above, last = data.draw(st.sampled_from(list(entries(content))))
    around = content
    for key in above:
        around = around[key]
    around[last] = data.draw(
        st.sampled_from([None, {"a": [1]}, [1], [], {}, "x", "", -1, 0, 1e400, 10**400, True, "A"])
    )
    file.write_text(json.dumps(content))
    before = contents(place / "d")
    more = ["--predictor=fuzzed_model:model"] if kept == "f" else []
    assert ends_well(["predict", "d", "t.csv", *more, "--out=p.csv"])
    assert ends_well(["audit", "d", "t.csv", *EFFORT, *more, "--out=r.html"])
    assert contents(place / "d") == before, "reading never writes"


@MANY
@given(
    st.data(),
    st.sampled_from(["m", "r", "f"]),
    st.integers(0, 10**6),
    st.binary(max_size=3),
    st.booleans(),
    st.sampled_from(["predict", "audit"]),
)
def test_damaged_folders(place, data, kept, where, content, listed, command):
    shutil.rmtree(place / "d", ignore_errors=True)
    shutil.copytree(place / f"whole-{kept}", place / "d")
    name = data.draw(st.sampled_from([path.relative_to(place / "d") for path in contents(place / "d")]))
    whole = (place / "d" / name).read_bytes()
    where %= len(whole) + 1
    changed = whole[:where] + content + whole[where + len(content) :]
    (place / "d" / name).write_bytes(changed)
    if listed:
        # Whoever changes a file can change the list of checksums too, and those within.
        described = (place / "d" / name).parent / "model.json"
        if name.name == "weights.safetensors":
            before = hashlib.sha256(whole).hexdigest().encode()
            described.write_bytes(described.read_bytes().replace(before, hashlib.sha256(changed).hexdigest().encode()))
        for sums in (place / "d").rglob("SHA256SUMS"):
            sums.unlink()
    before = contents(place / "d")
    more = ["--predictor=fuzzed_model:model"] if kept == "f" else []
    assert ends_well([WORKING[command][0], "d", *WORKING[command][2:], *more])
    assert contents(place / "d") == before, "reading never writes"
