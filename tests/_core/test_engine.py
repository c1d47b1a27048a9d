import os
import signal
import subprocess
import sys

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
