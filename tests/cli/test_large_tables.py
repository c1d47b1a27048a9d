"""Tables larger than what a command holds at a time."""

import subprocess
import sys

import pytest

from tests.cli.installed import command
from tests.cli.people import people

pytestmark = pytest.mark.slow

# Runs a command and prints the most memory it held, in MB.
_WATCH = (
    "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]);"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024); sys.exit(done.returncode)"
)
BLOCK = 50_000


def written(path, enough):
    """Write a table, a block of rows at a time, until there is enough of rows or bytes; return how many rows."""
    names, block = people(BLOCK, seed=3).to_csv(index=False).split("\n", 1)
    rows = 0
    with path.open("w") as stream:
        stream.write(names + "\n")
        while not enough(rows, stream.tell()):
            stream.write(block)
            rows += BLOCK
    return rows


def peak(*arguments):
    """The most memory that a call held, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCH, command(), *arguments], capture_output=True, text=True, check=True
    )
    return float(done.stdout.splitlines()[-1])


def test_300_megabytes_are_predicted_in_less_than_one_gigabyte(model, tmp_path):
    path = tmp_path / "large.csv"
    rows = written(path, lambda _, size: size >= 300e6)
    assert peak("predict", model, path, "--id=id", "--out", tmp_path / "p.csv") < 1000
    with (tmp_path / "p.csv").open() as stream:
        first = [next(stream) for _ in range(3)]
        total = 3 + sum(1 for _ in stream)
    assert total == rows + 1
    assert first[1].startswith("p00000,")


def test_ten_times_as_many_rows_are_audited_in_little_more_memory(model, tmp_path):
    held = []
    for rows in (200_000, 2_000_000):
        written(tmp_path / "large.csv", lambda seen, _, rows=rows: seen >= rows)
        told = ["--preset=quick", "--doubt=0", "--no-gate", "--out", tmp_path / "report.html"]
        held.append(peak("audit", model, tmp_path / "large.csv", *told))
    assert held[1] < 1.15 * held[0], held
