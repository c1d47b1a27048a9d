"""Causal graphs, adjustment, and the criterion that turns a graph into an independence statement."""

from ciplearn.causal.graph import CausalGraph

__all__ = ["CausalGraph"]
