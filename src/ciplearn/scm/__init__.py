"""Structural causal models, known and estimated: abduct, intervene, predict."""

from ciplearn.scm.equation import Additive
from ciplearn.scm.gumbel import GumbelMax
from ciplearn.scm.kinds import Categories, Scalar, Vector
from ciplearn.scm.mechanism import Mechanism
from ciplearn.scm.model import StructuralCausalModel
from ciplearn.scm.units import Units

__all__ = ["Additive", "Categories", "GumbelMax", "Mechanism", "Scalar", "StructuralCausalModel", "Units", "Vector"]
