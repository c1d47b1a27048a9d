"""The scikit-learn face: estimators, the search for gamma, the frontier."""

from ciplearn.estimators.classifier import CIPClassifier
from ciplearn.estimators.frontier import frontier
from ciplearn.estimators.gamma_search import GammaSearch
from ciplearn.estimators.problem import Problem
from ciplearn.estimators.regressor import CIPRegressor

__all__ = ["CIPClassifier", "CIPRegressor", "GammaSearch", "Problem", "frontier"]
