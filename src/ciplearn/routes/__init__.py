"""Every honest route to an invariant predictor on the same rows, and the one to take."""

from ciplearn.routes.comparison import ROUTES, Comparison, compare_routes

__all__ = ["ROUTES", "Comparison", "compare_routes"]
