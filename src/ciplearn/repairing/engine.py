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
        return parts_of([self.asked], self.worlds, rows, units)[0]


def parts_of(models: Sequence[Asked], worlds: Worlds, rows: pd.DataFrame | None, units: Units) -> list[Parts]:
    """Imagine the worlds of rows once, and ask several models about them; without rows, the first world is theirs."""
    n = len(units.index)
    frame, shares = worlds.imagined(units)
    count = shares.shape[1]
    draws = len(frame) // (n * count)
    # Draws of one row share its causes, and so do its worlds.
    one_each = frame.iloc[::draws]
    ratio_of = worlds.ratio.beside(one_each.iloc[::count])
    w = np.stack([ratio_of(one_each.iloc[k::count]) for k in range(count)], axis=1)
    shares = shares / (1 + w) if worlds.mixes_two_laws else shares
    ratio = w[:, 0] if rows is None else worlds.ratio(rows)
    found = []
    for asked in models:
        answers = asked(frame).reshape(n, count, draws, -1).mean(axis=2)
        found.append(Parts(answers[:, 0] if rows is None else asked(rows), ratio, answers, w, shares))
    return found
