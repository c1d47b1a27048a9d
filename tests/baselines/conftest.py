import pytest

from ciplearn import datasets


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


@pytest.fixture(scope="session")
def roles(scm):
    return {"graph": scm.graph, "outcome": "Y", "protected": ["A"], "random_state": 0}
