"""One small Ray cluster on this machine for all tests of this folder."""

import warnings

import pytest


@pytest.fixture(scope="session")
def engine():
    pytest.importorskip("ray", reason="Ray is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray

        from ciplearn.scale import RayEngine

        yield RayEngine(workers=2)
        ray.shutdown()
