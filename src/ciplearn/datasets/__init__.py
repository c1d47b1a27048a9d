"""Graphs, structural causal models and data: of the story that the pages tell, and of the paper."""

from importlib import import_module
from typing import Any

from ciplearn.datasets import graphs

# Models load on first use: reading a graph should not wait for scipy.
_FILE_OF = {
    "Adult": "adult",
    "MinMaxScaling": "scaling",
    "applicants": "synthetic",
    "first_synthetic": "synthetic",
    "load_adult": "adult",
    "multidimensional": "synthetic",
    "scenario_1": "synthetic",
    "scenario_2": "synthetic",
    "veitch_anticausal": "synthetic",
    "veitch_causal": "synthetic",
}

__all__ = ["graphs", *sorted(_FILE_OF)]


def __getattr__(name: str) -> Any:
    if name in _FILE_OF:
        return getattr(import_module(f"ciplearn.datasets.{_FILE_OF[name]}"), name)
    raise AttributeError(f"module 'ciplearn.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
