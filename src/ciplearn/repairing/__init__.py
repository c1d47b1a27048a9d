"""Repair: any fitted model made invariant, mostly in closed form."""

from ciplearn.repairing.repair import repair
from ciplearn.repairing.repaired import Repaired

__all__ = ["Repaired", "repair"]
