"""Large pieces that are freed go back to the system, and what nobody asks for is not loaded."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy, torch
from ciplearn._core.memory import give_back_what_is_freed

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


PUT_OFF = """
import os, sys
from ciplearn._core.memory import put_off

put_off("scipy.stats")
import sklearn.utils.fixes

for ask in sys.argv[1:]:
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0, ask
        continue
    assert "scipy.stats._stats_py" not in sys.modules
    exec(ask)
    assert "scipy.stats._stats_py" in sys.modules
    import scipy.stats
    assert scipy.stats.rankdata([3, 1]).tolist() == [2, 1]
    assert sklearn.utils.fixes.scipy.stats.norm.cdf(0) == 0.5
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_module_that_was_put_off_is_loaded_when_asked():
    ways = (
        "from scipy.stats import norm",
        "import scipy.stats; scipy.stats.norm",
        "import scipy.stats.distributions",
        "from scipy import stats; stats.norm",
        "sklearn.utils.fixes.scipy.stats.mode",
    )
    found = subprocess.run([sys.executable, "-c", PUT_OFF, *ways], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
