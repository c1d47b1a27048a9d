"""How wrong may it be: what graph and data leave open."""

from ciplearn.doubt.bounds import CounterfactualBounds, counterfactual_bounds
from ciplearn.doubt.falsification import Falsification, falsify
from ciplearn.doubt.graph_sensitivity import Sensitivity, sensitivity
from ciplearn.doubt.hidden_confounding import HiddenConfounding, hidden_confounding
from ciplearn.doubt.how_wrong import MechanismSensitivity, how_wrong, mechanism_sensitivity

__all__ = ["CounterfactualBounds", "Falsification", "HiddenConfounding", "MechanismSensitivity", "Sensitivity"]
__all__ += ["counterfactual_bounds", "falsify", "hidden_confounding", "how_wrong", "mechanism_sensitivity"]
__all__ += ["sensitivity"]
