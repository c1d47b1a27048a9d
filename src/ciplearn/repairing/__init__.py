"""Repair: any fitted model made invariant, mostly in closed form."""

from ciplearn.repairing.flow import repair
from ciplearn.repairing.kept import load_model, load_repaired, save_model
from ciplearn.repairing.repaired import Repaired

__all__ = ["Repaired", "load_model", "load_repaired", "repair", "save_model"]
