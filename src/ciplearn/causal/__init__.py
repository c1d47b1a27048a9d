"""Causal graphs, adjustment, and the criterion that turns a graph into an independence statement."""

from ciplearn.causal.findings import Assumption, Finding
from ciplearn.causal.graph import CausalGraph
from ciplearn.causal.independence import Independence
from ciplearn.causal.paths import Path
from ciplearn.causal.verdict import Change, ClassVerdict, Fallback, Repair, Verdict

__all__ = [
    "Assumption",
    "CausalGraph",
    "Change",
    "ClassVerdict",
    "Fallback",
    "Finding",
    "Independence",
    "Path",
    "Repair",
    "Verdict",
]
