"""The scikit-learn face: estimators, the search for gamma, the frontier."""

from ciplearn.estimators.classifier import CIPClassifier
from ciplearn.estimators.frontier import frontier
from ciplearn.estimators.gamma_search import GammaSearch
from ciplearn.estimators.onnx_export import export_onnx
from ciplearn.estimators.persistence import load_model, save_model
from ciplearn.estimators.regressor import CIPRegressor

__all__ = ["CIPClassifier", "CIPRegressor", "GammaSearch", "export_onnx", "frontier", "load_model", "save_model"]
