"""Kernels, their features, and ridge regression between them. No causal words here."""

from ciplearn.kernels.base import Kernel
from ciplearn.kernels.categorical import Categorical
from ciplearn.kernels.combined import Product, Sum
from ciplearn.kernels.features import FeatureMap, Features, Nystroem, OneHot, RandomFourier
from ciplearn.kernels.gaussian import Gaussian
from ciplearn.kernels.laplace import Laplace
from ciplearn.kernels.linear import Linear

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
