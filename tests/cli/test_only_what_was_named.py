"""What `load_model`, ``predict`` and ``audit`` open to write, as the kernel sees it: only what they were told to."""

import json
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
READING = {
    "load_model": [],
    "predict": ["predict", "model", "people.csv", "--out", "predictions.csv"],
    "audit": ["audit", "model", "people.csv", *EFFORT],
}
# All in one process, since the tracer makes loading torch twice as slow; a file that is not there marks each turn.
PROGRAM = """
import contextlib, json, os, sys
from ciplearn import load_model
from ciplearn.cli.app import run
for name, words in json.loads(sys.argv[1]).items():
    with contextlib.suppress(OSError):
        os.open(f"/turn of {name}", os.O_RDONLY)
    print(name, file=sys.stderr)
    try:
        code = run(words) if words else load_model("model") and 0
    except ValueError as error:
        code = 2
        print(error, file=sys.stderr)
    print(name, code)
"""


def written(folder):
    """Read in each way; return how each ended, what it complained of, and every path that it wrote to or removed."""
    trace = folder / "trace"
    command = [strace, "-f", "--seccomp-bpf", "-qq", "-o", str(trace), "-e", f"trace={CALLS},{CHANGES}"]
    command += [sys.executable, "-B", "-c", PROGRAM, json.dumps(READING)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, name = {each: set() for each in READING}, "load_model"
    for line in trace.read_text(errors="replace").splitlines():
        if turn := re.search('"/turn of (.*)"', line):
            name = turn[1]
        # What failed has changed nothing.
        if "= -1 " in line or (
            re.search(r"\bopen(at)?\(", line) and not re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", line)
        ):
            continue
        # Semaphores of the libraries that count processor cores; they have no name once they are made.
        paths = re.findall(r'"([^"]+)"', line)
        found[name].update(path for path in paths if not path.startswith(("/dev/shm/sem.", "/dev/null", "/dev/tty")))
    trace.unlink()
    codes = {name: int(code) for name, code in re.findall(rf"^({'|'.join(READING)}) (\d)$", done.stdout, re.MULTILINE)}
    said = re.split(rf"^(?:{'|'.join(READING)})$", done.stderr, flags=re.MULTILINE)[1:]
    return codes, dict(zip(READING, said, strict=True)), found


def test_only_what_was_named_is_opened_to_write(place, model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    shutil.copy(place / "people.csv", tmp_path)
    before = state(tmp_path / "model")
    codes, said, found = written(tmp_path)
    for name, told in {"load_model": None, "predict": "predictions.csv", "audit": "report.html"}.items():
        assert codes[name] in (0, 1), said[name]
        assert (tmp_path / told).exists() if told else not found[name]
        # The file itself, under the hidden name that it has until it is whole.
        whole = rf"{tmp_path}/({told}|\.ciplearn-\w+\.part)"
        assert {path for path in found[name] if not re.fullmatch(whole, path)} == set()
    assert any(path.endswith("predictions.csv") for path in found["predict"])
    assert state(tmp_path / "model") == before


@pytest.mark.slow
def test_unfinished_folder_is_named_and_left_as_it_is(place, model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    shutil.copytree(model, tmp_path / "model" / ".ciplearn-arriving")
    shutil.copy(place / "people.csv", tmp_path)
    before = state(tmp_path)
    codes, said, found = written(tmp_path)
    for name in READING:
        assert codes[name] != 0
        assert "model is unfinished" in said[name]
        assert not found[name]
    assert state(tmp_path) == before
