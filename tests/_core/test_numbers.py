import os

import pytest

from ciplearn._core.arguments import processes
from ciplearn._core.errors import InputError


def test_processes_are_counted_as_joblib_counts_them():
    assert (processes(None), processes(1), processes(3)) == (1, 1, 3)
    assert 1 <= processes(-1) <= os.cpu_count()


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "all"])
def test_other_numbers_of_jobs_are_refused(n_jobs):
    with pytest.raises(InputError, match="n_jobs must be a whole number other than 0"):
        processes(n_jobs)


def test_more_jobs_than_any_machine_runs_are_refused():
    with pytest.raises(InputError, match="n_jobs must be at most 1024, got 10000000000000000000; pass -1"):
        processes(10**19)
