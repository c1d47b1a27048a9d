import pytest


@pytest.fixture(scope="session")
def roles(scm):
    return {"graph": scm.graph, "outcome": "Y", "protected": ["A"], "random_state": 0}
