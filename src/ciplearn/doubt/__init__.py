"""How wrong may it be: what graph and data leave open."""

from ciplearn.doubt.bounds import CounterfactualBounds, counterfactual_bounds
from ciplearn.doubt.falsification import Falsification, falsify
from ciplearn.doubt.graph_sensitivity import Sensitivity, sensitivity

__all__ = [
    "CounterfactualBounds",
    "Falsification",
    "Sensitivity",
    "counterfactual_bounds",
    "falsify",
    "sensitivity",
]
