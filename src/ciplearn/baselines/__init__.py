"""The rivals: other ways to a predictor that does not follow the protected variables, under one estimator contract."""

from ciplearn.baselines.cf2 import CF2
from ciplearn.baselines.selected import CF1, NaivePredictor

__all__ = ["CF1", "CF2", "NaivePredictor"]
