"""Every command killed at random moments and run again: the same bytes, and nothing else left behind."""

import hashlib
import os
import random
import re
import shutil
import signal
import sys
import threading
import time
from functools import partial

import pandas as pd
import pytest
import torch
from tqdm import tqdm

from ciplearn.cli.app import run
from ciplearn.experiments import demo
from reproduction import __main__ as reproduction
from tests.cli.people import GRAPH, people
from tests.reproduction.test_studies import small

pytestmark = pytest.mark.slow

MOMENTS = int(os.environ.get("CIPLEARN_KILLS", "20"))
FIT = ["fit", "people.csv", "--graph", GRAPH, "--epochs=3", "--gamma=1", "--out=model", "--overwrite"]
ROLES = ["--graph=graph.txt", "--outcome=income", "--protected=sex"]
EFFORT = ["--points=40", "--interventions=10", "--draws=4", "--scm-rows=100"]
NO_DOUBT = ["--doubt=0", "--no-gate"]
COMMANDS = {
    "fit": FIT,
    "fit over a model": FIT,
    "fit on many files": [FIT[0], "rows/*.csv", *FIT[2:], "--route=independence"],
    "predict": ["predict", "old", "people.csv", "--id=id", "--out=p.csv", "--chunk-rows=50"],
    "predict to parquet": ["predict", "old", "people.csv", "--out=p.parquet", "--chunk-rows=50"],
    "audit": ["audit", "old", "people.csv", *EFFORT, *NO_DOUBT],
    "audit with doubts": ["audit", "old", "people.csv", *EFFORT, "--doubt=1", "--no-gate"],
    "audit of a predictor": ["audit", "people.csv", *ROLES, "--predictor=office:model", *EFFORT, *NO_DOUBT],
    "audit of predictions": ["audit", "people.csv", *ROLES, "--predictions=said.csv", *EFFORT, *NO_DOUBT],
    "imagine": ["imagine", "people.csv", *ROLES, "--out=worlds.csv", *EFFORT],
    "check": ["check", "graph.txt", "--json"],
    "check on a table": ["check", "graph.txt", "--data=people.csv", "--svg=graph.svg", "--json"],
    "demo": ["demo", "--out=demo"],
    "reproduce": ["reproduce", "fig2-left", "--preset=quick", "--out=results"],
}


def smaller():
    """Let the demo and the studies, which take a minute and more, do with a few rows."""
    study = small("fig2-left")
    demo.run_demo = partial(demo.run_demo, rows=300, learner="linear")
    reproduction.find = lambda name: [study]


def started(arguments):
    """Run a command in a process of its own, all libraries loaded already."""
    child = os.fork()
    if child:
        return child
    try:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        sys.path.insert(0, os.getcwd())
        # The one of tqdm is shared with all that were forked, and one that was killed may never give it back.
        tqdm.set_lock(threading.RLock())
        if arguments[0] in ("demo", "reproduce"):
            smaller()
        os._exit(reproduction.main(arguments[1:]) if arguments[0] == "reproduce" else run(arguments))
    finally:
        os._exit(99)


def finished(arguments):
    return os.waitstatus_to_exitcode(os.waitpid(started(arguments), 0)[1])


def contents(folder):
    """Every file below a folder, hidden ones too, by the checksum of its bytes."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)): hashlib.sha256(content(path)).hexdigest() for path in found}


def content(path):
    """The bytes of a file, but for what a study says about how long it took and what an earlier run had kept."""
    found = b"" if ".work" in path.parts else path.read_bytes()
    if "results" not in path.parts or path.suffix not in (".json", ".md"):
        return found
    found = re.sub(rb'"seconds": [\d.]+|"reused": \[[^\]]*\]|, beside what an earlier run had kept', b"", found)
    return re.sub(rb"\d+ s(, resumed)?", b"", found)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("start")
    people(300).to_csv(folder / "people.csv", index=False)
    (folder / "rows").mkdir()
    for part in range(3):
        people(300).iloc[part * 100 : part * 100 + 100].to_csv(folder / "rows" / f"{part}.csv", index=False)
    (folder / "office.py").write_text('def model(rows):\n    return 1 / (1 + 2.0 ** (40 - rows["hours"]))\n')
    (folder / "graph.txt").write_text(GRAPH)
    here = os.getcwd()
    os.chdir(folder)
    assert run([*FIT[:-2], "--out=old", "--seed=1"]) == 0
    assert run(COMMANDS["imagine"]) == 0
    asked = pd.read_csv("worlds.csv", dtype={"id": str})
    asked.assign(prediction=1 / (1 + 2.0 ** (40 - asked["hours"])))[["id", "prediction"]].to_csv(
        "said.csv", index=False
    )
    os.unlink("worlds.csv")
    os.chdir(here)
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_command_that_was_killed_and_run_again_leaves_what_it_always_leaves(name, start, tmp_path, monkeypatch):
    arguments = COMMANDS[name]

    def fresh():
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        shutil.copytree(start, tmp_path / "work")
        if name == "fit over a model":
            shutil.copytree(start / "old", tmp_path / "work" / "model")
            (tmp_path / "work" / "model" / "thesis.tex").write_text("years of work")
        monkeypatch.chdir(tmp_path / "work")

    fresh()
    begun = time.monotonic()
    assert finished(arguments) == 0
    whole = time.monotonic() - begun
    expected = contents(tmp_path / "work")
    draw = random.Random(name)
    killed = 0
    for moment in range(MOMENTS):
        fresh()
        child = started(arguments)
        # Half of them near the end, where files take their places.
        time.sleep(draw.uniform(0.0 if moment % 2 else 0.8, 1.05) * whole)
        os.kill(child, signal.SIGKILL)
        killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert finished(arguments) == 0, moment
        assert contents(tmp_path / "work") == expected, moment
    assert killed >= MOMENTS // 4, "most moments were in mid-run"
