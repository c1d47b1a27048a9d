"""Graphs, structural causal models and data of the paper."""

from ciplearn.datasets import graphs

__all__ = ["graphs"]
