"""Large pieces that are freed go back to the system, and what nobody asks for is not loaded."""

import os
import subprocess
import sys

import pytest

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
