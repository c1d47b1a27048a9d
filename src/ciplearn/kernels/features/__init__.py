"""Feature maps: short vectors whose inner products approximate a kernel."""

from ciplearn.kernels.features.base import FeatureMap, Features, ProductFeatures, SumFeatures
from ciplearn.kernels.features.fourier import RandomFourier
from ciplearn.kernels.features.nystroem import Nystroem
from ciplearn.kernels.features.onehot import OneHot

__all__ = ["FeatureMap", "Features", "Nystroem", "OneHot", "ProductFeatures", "RandomFourier", "SumFeatures"]
