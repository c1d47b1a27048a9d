import pytest

from tests.evaluation.linear_model import linear


@pytest.fixture(scope="session")
def rows():
    return linear().sample(1200, random_state=0)
