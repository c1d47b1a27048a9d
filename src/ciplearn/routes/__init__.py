"""Every honest route to an invariant predictor on the same rows, and the one that a goal takes."""

from ciplearn.routes.comparison import ROUTES, TRAINED_ROUTES, Comparison, compare_routes
from ciplearn.routes.goal import Goal, ShareOfVCF, Strict, WithinLimits
from ciplearn.routes.tolerance import Tolerance

__all__ = [
    "ROUTES",
    "TRAINED_ROUTES",
    "Comparison",
    "Goal",
    "ShareOfVCF",
    "Strict",
    "Tolerance",
    "WithinLimits",
    "compare_routes",
]
