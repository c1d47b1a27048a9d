"""Work is done here, a folder is gone at the end, and large pieces that are freed go back to the system."""

import os
import signal
import subprocess
import sys

import pytest

from ciplearn._core.workers import OneProcess

KILLED = """
import os, signal
from ciplearn._core.workers import OneProcess
engine = OneProcess()
engine.scratch = {place!r}
with engine.folder() as folder:
    (folder / "rows").write_text("encoded")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_items_are_done_in_order_and_a_task_runs_alone():
    engine = OneProcess()
    assert list(engine.each(lambda item: item + 1, [3, 1, 2])) == [4, 2, 3]
    assert engine.train(lambda workers: (workers.rank, workers.size)) == (0, 1)


def test_what_a_killed_run_kept_is_removed_by_the_next(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED.format(place=str(tmp_path))], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 1
    engine = OneProcess()
    engine.scratch = str(tmp_path)
    with engine.folder() as folder:
        assert os.listdir(tmp_path) == [folder.name]
        assert os.listdir(folder) == []
    assert os.listdir(tmp_path) == []


PROGRAM = """
import numpy, torch
from ciplearn._core.workers import give_back_what_is_freed

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20

if {asked}:
    give_back_what_is_freed()
# What the allocator has seen freed once it keeps the next time.
numpy.ones(3_500_000)
before = held()
pieces = [numpy.ones(2_500_000) for _ in range(10)] + [numpy.ones(1000)]
pieces = pieces[-1:]
print(held() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
def test_memory_falls_when_large_arrays_are_freed():
    run = [sys.executable, "-c", PROGRAM.format(asked=True)]
    found = subprocess.run(run, capture_output=True, text=True, check=True)
    assert float(found.stdout) < 5
