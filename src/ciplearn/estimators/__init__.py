"""The scikit-learn face: estimators, the search for gamma, the frontier."""

from ciplearn.estimators.frontier import frontier
from ciplearn.estimators.gamma_search import GammaSearch
from ciplearn.estimators.predictors import CIPClassifier, CIPRegressor
from ciplearn.estimators.problem import Problem

__all__ = ["CIPClassifier", "CIPRegressor", "GammaSearch", "Problem", "frontier"]
