"""How wrong may it be: what graph and data leave open."""

from ciplearn.doubt.bounds import CounterfactualBounds, counterfactual_bounds
from ciplearn.doubt.falsification import Falsification, falsify

__all__ = ["CounterfactualBounds", "Falsification", "counterfactual_bounds", "falsify"]
