"""Examples run, and stay short."""

import subprocess
from pathlib import Path

import pytest

from tests import warm

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
LONG = {"from_graph_to_audit", "own_images"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short(example):
    assert len(example.read_text().splitlines()) <= 60


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=[pytest.mark.slow] if path.stem in LONG else [], id=path.stem) for path in EXAMPLES],
)
def test_example_runs(example):
    done = subprocess.run([warm.python(), str(example)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "gamma" in done.stdout
