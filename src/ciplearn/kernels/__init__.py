"""Kernels, their features, and ridge regression between them. No causal words here."""

from ciplearn.kernels.features import FeatureMap, Features, Nystroem, OneHot, RandomFourier
from ciplearn.kernels.kernels import Categorical, Gaussian, Kernel, Laplace, Linear, Product, Sum

__all__ = ["Categorical", "Gaussian", "Kernel", "Laplace", "Linear", "Product", "Sum"]
__all__ += ["FeatureMap", "Features", "Nystroem", "OneHot", "RandomFourier"]
