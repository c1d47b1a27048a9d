"""The commands as people type them."""

import json
import subprocess
import sys

import pytest

from ciplearn.cli import app as application
from ciplearn.experiments import speed


def test_demo_into_a_file_is_a_mistake(tmp_path, capsys):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    assert application.run(["demo", "--out", str(blocker)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_bench_prints_ratios(capsys, monkeypatch):
    monkeypatch.setattr(
        speed, "measurements", lambda large: iter([speed.Measurement("a step", 1.25, "≤ 1.5 ×", "5 ms")])
    )
    assert application.run(["bench"]) == 0
    assert "a step: 1.25 ×" in capsys.readouterr().out
    assert application.run(["bench", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["ratio"] == pytest.approx(1.25)


def test_help_lists_the_commands_without_loading_torch():
    code = "import sys; from ciplearn.cli.app import run; run(['--help']); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("demo", "check", "bench"))
