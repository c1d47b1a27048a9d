"""What turns a model's answers into invariant ones: the formula on worlds of a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn.repairing.asked import Asked
from ciplearn.repairing.formula import Knob, MeanOfDraws, Parts
from ciplearn.repairing.worlds import Worlds
from ciplearn.scm import Units


class Engine(ABC):
    """A family of predictors, one per strength.

    Attributes
    ----------
    calls : int
        How many rows the model is asked about for each row.
    """

    calls: int

    @abstractmethod
    def knob(self, rows: pd.DataFrame) -> Knob:
        """Ask all that is needed about rows."""

    def under(self, worlds: Worlds, units: Units, settings: Sequence[Mapping[str, Any]]) -> list[Knob]:
        """Return what this family says about units under some settings, as a causal model imagines them."""
        return [MeanOfDraws(self.knob(worlds.under(units, setting)), units.draws) for setting in settings]


@dataclass(frozen=True, eq=False)
class Formula(Engine):
    """The closed form on the worlds that a causal model imagines; nothing is trained."""

    asked: Asked
    worlds: Worlds

    @property
    def calls(self) -> int:  # type: ignore[override]
        """The row and its worlds."""
        return 1 + self.worlds.calls

    def knob(self, rows: pd.DataFrame) -> Parts:
        """Ask about the rows and about each of their worlds."""
        shown = rows[list(self.worlds.columns)]
        return self._parts(shown, self.worlds.units(shown))

    def under(self, worlds: Worlds, units: Units, settings: Sequence[Mapping[str, Any]]) -> list[Knob]:
        """Where the noise is known, all worlds of a row share what they are mixed from."""
        if worlds is not self.worlds or not units.exact:
            return super().under(worlds, units, settings)
        parts = self._parts(None, units)
        found: list[Knob] = []
        for setting in settings:
            frame = worlds.under(units, setting)
            found.append(Parts(self.asked(frame), worlds.ratio(frame), parts.worlds, parts.ratios, parts.shares))
        return found

    def _parts(self, rows: pd.DataFrame | None, units: Units) -> Parts:
        n = len(units.index)
        answers, ratios, weights = [], [], []
        ratio_of = None
        for frame, weight in self.worlds.weighted(units):
            answers.append(self.asked(frame).reshape(n, len(frame) // n, -1).mean(axis=1))
            # Draws of one row share its causes, and so do its worlds.
            one_each = frame.iloc[:: len(frame) // n]
            ratio_of = ratio_of or self.worlds.ratio.beside(one_each)
            ratios.append(ratio_of(one_each))
            weights.append(weight)
        w = np.stack(ratios, axis=1)
        shares = np.stack(weights, axis=1)
        if self.worlds.mixes_two_laws:
            shares = shares / (1 + w)
        own = answers[0] if rows is None else self.asked(rows)
        ratio = w[:, 0] if rows is None else self.worlds.ratio(rows)
        return Parts(own, ratio, np.stack(answers, axis=1), w, shares)
