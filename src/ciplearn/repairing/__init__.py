"""Repair: any fitted model made invariant, mostly in closed form."""

from ciplearn.repairing.flow import repair
from ciplearn.repairing.kept import load_repaired
from ciplearn.repairing.repaired import Repaired

__all__ = ["Repaired", "load_repaired", "repair"]
