import pytest
import torch

from ciplearn import datasets


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True)
def one_thread_and_a_known_state():
    torch.set_num_threads(1)
    torch.manual_seed(0)


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
