"""What `load_model`, ``predict`` and ``audit`` open to write, as the kernel sees it: only what they were told to."""

import re
import shutil
import subprocess
import sys

import pytest

from tests._core.test_listed_folders import state

strace = shutil.which("strace")
pytestmark = pytest.mark.skipif(strace is None, reason="strace is not installed")

CALLS = "open,openat,creat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat"
CHANGES = "truncate,ftruncate,chmod,fchmod,fchmodat,utimensat"
EFFORT = ["--points=40", "--interventions=10", "--draws=4", "--scm-rows=100", "--doubt=0", "--out", "report.html"]
COMMAND = "import sys; from ciplearn.cli.app import run; sys.exit(run(sys.argv[1:]))"
READING = {
    "load_model": ["import sys; from ciplearn import load_model; load_model(sys.argv[1])", "model"],
    "predict": [COMMAND, "predict", "model", "people.csv", "--out", "predictions.csv"],
    "audit": [COMMAND, "audit", "model", "people.csv", *EFFORT],
}


def written(words, folder):
    """Run Python, and return every path that it opened to write, made, moved or removed."""
    trace = folder / "trace"
    command = [strace, "-f", "-qq", "-o", str(trace), "-e", f"trace={CALLS},{CHANGES}", sys.executable, "-B", "-c"]
    done = subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, check=False)
    found = set()
    for line in trace.read_text(errors="replace").splitlines():
        # What failed has changed nothing.
        if "= -1 " in line or ("open" in line and not re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", line)):
            continue
        found.update(re.findall(r'"([^"]+)"', line))
    trace.unlink()
    # Semaphores of the libraries that count processor cores; they have no name once they are made.
    return done, {path for path in found if not path.startswith(("/dev/shm/sem.", "/dev/null", "/dev/tty"))}


@pytest.mark.parametrize("name", READING)
def test_only_what_was_named_is_opened_to_write(name, place, model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    shutil.copy(place / "people.csv", tmp_path)
    before = state(tmp_path / "model")
    done, found = written(READING[name], tmp_path)
    assert done.returncode in (0, 1), done.stderr
    told = next((word for word in READING[name] if word in ("predictions.csv", "report.html")), None)
    assert (tmp_path / told).exists() if told else not found
    # The file itself, under the hidden name that it has until it is whole.
    strange = {path for path in found if not re.fullmatch(rf"{tmp_path}/({told}|\.ciplearn-\w+\.part)", path)}
    assert not strange
    assert state(tmp_path / "model") == before


@pytest.mark.parametrize("name", READING)
def test_unfinished_folder_is_named_and_left_as_it_is(name, place, model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    shutil.copytree(model, tmp_path / "model" / ".ciplearn-arriving")
    shutil.copy(place / "people.csv", tmp_path)
    before = state(tmp_path)
    done, found = written(READING[name], tmp_path)
    assert done.returncode != 0
    assert "model is unfinished" in done.stderr
    assert not found
    assert state(tmp_path) == before
