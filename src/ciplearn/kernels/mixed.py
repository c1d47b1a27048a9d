"""A kernel for rows of several kinds: numbers have distances, labels are equal or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ciplearn.kernels.base import Kernel
from ciplearn.kernels.categorical import Categorical
from ciplearn.kernels.combined import Product
from ciplearn.kernels.gaussian import Gaussian
from ciplearn.kernels.laplace import Laplace

# With several columns of labels hardly two rows agree in all; rows that differ in one are still half alike.
_SEVERAL_CATEGORIES_MISMATCH = 0.5


def mixed_kernel(kernel: Kernel, categories: Sequence[bool]) -> Kernel:
    """Let a kernel for all columns see the numbers, and a categorical kernel the labels: k(numbers) · k(labels).

    A kernel that names its columns is left as it is: its author has decided.

    ``kernel``: Gaussian or Laplace; any other is left as it is. ``categories``: whether each column holds codes of
    labels.
    """
    labels = tuple(column for column, is_category in enumerate(categories) if is_category)
    numbers = tuple(column for column, is_category in enumerate(categories) if not is_category)
    if not labels or not isinstance(kernel, Gaussian | Laplace) or kernel.columns is not None:
        return kernel
    equal = Categorical(mismatch=_SEVERAL_CATEGORIES_MISMATCH if len(labels) > 1 else 0.0, columns=labels)
    return Product(replace(kernel, columns=numbers), equal) if numbers else equal
