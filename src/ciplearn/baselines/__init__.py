"""Baselines: other ways to a predictor that does not follow the protected variables, under one estimator contract."""

from ciplearn.baselines.augmentation import Augmented, CausallyAugmented
from ciplearn.baselines.leaving_out import CF1, CF2, InvariantDirections, NaivePredictor, StraightLine
from ciplearn.baselines.pscf import PSCF
from ciplearn.baselines.veitch import Veitch

__all__ = ["CF1", "CF2", "PSCF", "Augmented", "CausallyAugmented", "InvariantDirections", "NaivePredictor"]
__all__ += ["StraightLine", "Veitch"]
