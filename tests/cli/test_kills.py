"""Every command killed at random moments and run again: the same bytes, and nothing else left behind."""

import hashlib
import os
import random
import shutil
import signal
import sys
import time

import pytest
import torch

from ciplearn.cli.app import _run
from tests.cli.people import GRAPH, people

pytestmark = pytest.mark.slow

MOMENTS = 20
FIT = ["fit", "people.csv", "--graph", GRAPH, "--epochs=3", "--gamma=1", "--out=model", "--overwrite"]
COMMANDS = {
    "fit": FIT,
    "fit over a model": FIT,
    "predict": ["predict", "old", "people.csv", "--id=id", "--out=p.csv", "--chunk-rows=50"],
    "predict to parquet": ["predict", "old", "people.csv", "--out=p.parquet", "--chunk-rows=50"],
    "audit": [
        "audit",
        "old",
        "people.csv",
        "--points=40",
        "--interventions=10",
        "--draws=4",
        "--scm-rows=100",
        "--doubt=0",
    ],
    "check": ["check", "graph.txt", "--json"],
}


def started(arguments):
    """Run a command in a process of its own, all libraries loaded already."""
    child = os.fork()
    if child:
        return child
    try:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        os._exit(_run(arguments))
    finally:
        os._exit(99)


def finished(arguments):
    return os.waitstatus_to_exitcode(os.waitpid(started(arguments), 0)[1])


def contents(folder):
    """Every file below a folder, hidden ones too, by the checksum of its bytes."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("start")
    people(300).to_csv(folder / "people.csv", index=False)
    (folder / "graph.txt").write_text(GRAPH)
    here = os.getcwd()
    os.chdir(folder)
    assert _run([*FIT[:-2], "--out=old", "--seed=1"]) == 0
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
