"""Structural causal models, known and estimated: abduct, intervene, predict."""

from ciplearn.scm.equation import Additive
from ciplearn.scm.estimated_model import EstimatedModel, from_dowhy
from ciplearn.scm.fit import fit_scm
from ciplearn.scm.kinds import Categories, Scalar, Units, Vector
from ciplearn.scm.location_scale import AdditiveNoise, LocationScale, Log, Logit
from ciplearn.scm.mechanism import Mechanism
from ciplearn.scm.model import StructuralCausalModel
from ciplearn.scm.multinomial import GumbelMax, Multinomial
from ciplearn.scm.networks import MonotoneFlow
from ciplearn.scm.quantiles import SimultaneousQuantiles
from ciplearn.scm.report import Finding, FitReport
from ciplearn.scm.variational import VariationalLatent

__all__ = ["EstimatedModel", "Finding", "FitReport", "StructuralCausalModel", "Units", "fit_scm", "from_dowhy"]
__all__ += ["Additive", "AdditiveNoise", "GumbelMax", "LocationScale", "Log", "Logit", "Mechanism", "MonotoneFlow"]
__all__ += ["Categories", "Multinomial", "Scalar", "SimultaneousQuantiles", "VariationalLatent", "Vector"]
