"""How wrong may it be: what graph and data leave open."""

from ciplearn.doubt.bounds import CounterfactualBounds, counterfactual_bounds

__all__ = ["CounterfactualBounds", "counterfactual_bounds"]
