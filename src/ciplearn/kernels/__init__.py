"""Kernels, their features, and ridge regression between them. No causal words here."""

from ciplearn.kernels.combined import Product, Sum
from ciplearn.kernels.elementary import Categorical, Gaussian, Kernel, Laplace, Linear
from ciplearn.kernels.features import FeatureMap, Features, Nystroem, OneHot, RandomFourier

__all__ = [
    "Categorical",
    "FeatureMap",
    "Features",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Nystroem",
    "OneHot",
    "Product",
    "RandomFourier",
    "Sum",
]
