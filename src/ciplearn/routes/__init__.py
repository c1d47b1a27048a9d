"""Every honest route to an invariant predictor on the same rows, and the one to take."""

from ciplearn.routes.comparison import Comparison, compare_routes

__all__ = ["Comparison", "compare_routes"]
