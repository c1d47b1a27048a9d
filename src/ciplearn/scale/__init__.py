"""Beyond one machine: the same work done by the workers of a Ray cluster, or by processes that torchrun starts."""

from ciplearn.scale.engines import RayEngine, TorchRun

__all__ = ["RayEngine", "TorchRun"]
