"""Beyond one machine: the same work done by the workers of a Ray cluster, or by processes that torchrun starts."""

from ciplearn.scale.process_group import TorchRun
from ciplearn.scale.ray_engine import RayEngine

__all__ = ["RayEngine", "TorchRun"]
