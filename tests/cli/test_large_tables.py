"""Tables larger than what predict holds at a time."""

import subprocess
import sys

import pytest

from tests.cli.installed import command
from tests.cli.people import people

# Runs a command and prints the most memory it held, in MB.
_WATCH = (
    "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]);"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024); sys.exit(done.returncode)"
)


@pytest.mark.slow
def test_300_megabytes_are_predicted_in_less_than_one_gigabyte(model, tmp_path):
    path = tmp_path / "large.csv"
    block = people(50_000, seed=3).to_csv(index=False).split("\n", 1)
    rows = 0
    with path.open("w") as stream:
        stream.write(block[0] + "\n")
        while stream.tell() < 300e6:
            stream.write(block[1])
            rows += 50_000
    done = subprocess.run(
        [sys.executable, "-c", _WATCH, command(), "predict", model, path, "--id=id", "--out", tmp_path / "p.csv"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout.splitlines()[-1]) < 1000
    with (tmp_path / "p.csv").open() as stream:
        first = [next(stream) for _ in range(3)]
        total = 3 + sum(1 for _ in stream)
    assert total == rows + 1
    assert first[1].startswith("p00000,")
