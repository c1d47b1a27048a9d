import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread_for_linear_algebra():
    # Two threads on two busy cores are many times slower than one.
    with threadpool_limits(1):
        yield
