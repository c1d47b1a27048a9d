"""What S leaves of the two sides of a test, and of features of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ciplearn.evaluation.encoding import Variable
from ciplearn.evaluation.regression import Menu, Regression, features_of
from ciplearn.kernels.eigen import eigh

# Directions of a feature space that carry less than this share of its variance are left out.
_NEGLIGIBLE = 2e-3
_DIRECTIONS = 10
_WEIGHTS = 6


class Conditioning:
    """S, prepared once for many tests: the kernels that compete on it, and the directions s that weigh products."""

    def __init__(self, given: Variable, generator: np.random.Generator) -> None:
        self.given, self._generator = given, generator
        self._residuals: dict[str, Residuals] = {}

    @cached_property
    def _menu(self) -> Menu:
        return Menu(self.given, self._generator)

    @cached_property
    def weights(self) -> Tensor:  # (n, m)
        """Leading directions of S."""
        return directions(self.given, self._generator, _WEIGHTS, centred=False)

    def residuals(self, side: Variable, name: str = "") -> Residuals:
        """Regress one side on S; a side with a name is regressed once."""
        if name and name in self._residuals:
            return self._residuals[name]
        plain = _numbers_and_indicators(side)
        menu = self._menu.weighted_for(plain)
        raw = Regression.of(plain, menu)
        made = Residuals(raw, Regression.of(directions(_without_trend(side, raw), self._generator), menu))
        if name:
            self._residuals[name] = made
        return made


@dataclass(frozen=True)
class Residuals:
    """What S leaves of one side: of its numbers and labels, and of features of that."""

    raw: Regression
    features: Regression

    @cached_property
    def followed(self) -> Tensor:  # (q,)
        """The share of each feature's variance that is linear in the raw residuals."""
        features, raw = self.features.residuals, self.raw.residuals
        fitted = raw @ (torch.linalg.pinv(raw, rtol=1e-6) @ features)
        return (fitted.square().sum(dim=0) / features.square().sum(dim=0).clamp_min(1e-300)).clamp(max=1)

    def shrinkage(self, other: Residuals) -> Tensor:  # (q, q')
        """`Regression.shrinkage` of features: what their own regression used up, or the one before it, if more.

        Degrees of freedom of the raw regression are missing in what is linear in its residuals.
        """
        raw = self.raw.shrinkage(other.raw).max() - 1
        return torch.maximum(self.features.shrinkage(other.features), 1 + raw * self.followed.outer(other.followed))


def directions(
    variable: Variable, generator: np.random.Generator, most: int = _DIRECTIONS, centred: bool = True
) -> Tensor:  # (n, q)
    """Leading directions of the kernel's feature space, which a sample of the rows spans."""
    features = features_of(variable.kernel.resolve(variable.rows), variable.rows, generator)
    features = _centred(features) if centred else features
    values, vectors = eigh(features.T @ features)
    count = max(1, min(most, int((values > _NEGLIGIBLE * values.sum()).sum())))
    return features @ vectors[:, -count:]


def _numbers_and_indicators(variable: Variable) -> Tensor:  # (n, q)
    """Numbers as they are and an indicator per label, centred."""
    indicators = [
        (variable.rows[:, place, None] == variable.rows[:, place].unique()).double() for place in variable.labels
    ]
    return _centred(torch.cat([variable.rows[:, list(variable.numbers)], *indicators], dim=1))


def _without_trend(variable: Variable, regression: Regression) -> Variable:
    """The variable with its numbers replaced by their residuals, at unit spread."""
    residuals = regression.residuals[:, : len(variable.numbers)]
    rows = variable.rows.clone()
    rows[:, list(variable.numbers)] = residuals / residuals.square().mean(dim=0).sqrt().clamp_min(1e-12)
    return replace(variable, rows=rows)


def _centred(columns: Tensor) -> Tensor:  # (n, q)
    return columns - columns.mean(dim=0)
