"""Graphs, structural causal models and data: of the story that the pages tell, and of the paper."""

from importlib import import_module
from typing import Any

from ciplearn.datasets import graphs

# Models load on first use: reading a graph should not wait for scipy.
_MODELS = ["applicants", "first_synthetic", "multidimensional", "scenario_1", "scenario_2"]
_MODELS += ["veitch_anticausal", "veitch_causal", "MinMaxScaling"]
_FILE_OF = {"Adult": "adult", "load_adult": "adult", **dict.fromkeys(_MODELS, "synthetic")}

__all__ = ["graphs", *sorted(_FILE_OF)]


def __getattr__(name: str) -> Any:
    if name in _FILE_OF:
        return getattr(import_module(f"ciplearn.datasets.{_FILE_OF[name]}"), name)
    raise AttributeError(f"module 'ciplearn.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
