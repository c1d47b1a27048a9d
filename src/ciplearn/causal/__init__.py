"""Causal graphs, adjustment, and the criterion that turns a graph into an independence statement."""

from ciplearn.causal.graph import CausalGraph
from ciplearn.causal.statements import Assumption, Finding, Independence, Path
from ciplearn.causal.verdict import Change, ClassVerdict, Fallback, Repair, Verdict

__all__ = ["Assumption", "CausalGraph", "Change", "ClassVerdict", "Fallback", "Finding", "Independence", "Path"]
__all__ += ["Repair", "Verdict"]
