"""One small Ray cluster on this machine for all tests of this folder."""

import importlib.util
import warnings

import pytest


@pytest.fixture(scope="session")
def engine():
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ciplearn.scale import RayEngine

        # Before Ray is imported, which it does: the cluster then has a secret.
        engine = RayEngine(workers=2)
        import ray

        yield engine
        ray.shutdown()
