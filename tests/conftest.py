import gc
import os

import pytest
import torch
from threadpoolctl import threadpool_limits

from ciplearn import datasets

# Libraries and thousands of tests stay to the end: to look through them for garbage every now and then is lost time.
gc.set_threshold(50_000, 20, 20)

# Some virtual machines announce AMX and end whoever uses it, as bfloat16 on a CPU would.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


# Rooms whose tests fit and audit as a whole, for seconds each.
WHOLE = {"tests", "cli", "evaluation", "routes", "workbench"}


def pytest_collection_modifyitems(items):
    # Files that take long come first, so that the last ones are short and all workers end together.
    items.sort(key=lambda item: item.path.parent.name not in WHOLE)
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True)
def one_thread_and_a_known_state():
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def one_thread_for_linear_algebra():
    # Two threads on two busy cores are many times slower than one.
    with threadpool_limits(1):
        yield


# The paper's first synthetic case, for tests that need rows with a known graph.
@pytest.fixture(scope="session")
def scm():
    return datasets.first_synthetic()


@pytest.fixture(scope="session")
def table(scm):
    return scm.sample(600, random_state=0)


@pytest.fixture(scope="session")
def X(table):
    return table[["Z", "A", "L"]]


@pytest.fixture(scope="session")
def y(table):
    return table["Y"]
