"""The whole frontier between a model and its best invariant version, in closed form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ciplearn.repairing.asked import Asked
from ciplearn.repairing.worlds import Worlds
from ciplearn.scm import Units
from ciplearn.scm.kinds import Array


class Knob(Protocol):
    """What is known of some rows, from which their predictions follow at every strength without asking again."""

    def at(self, gamma: float) -> Array:  # (n, q)
        """Return the predictions at a strength; infinity is the strict predictor."""


@dataclass(frozen=True, eq=False)
class Parts:
    """A model's answers at rows x = x(a, u) and in other worlds x(a_k, u) of the same u.

    Among all functions of (a, u) the least of E (m − f)² + γ E_u Var_{a′ ~ p(A)} f(x(a′, u)) is, for each u by itself,

        f = (w m + γ f̄) / (w + γ),    f̄ = Σ_k c_k m_k / Σ_k c_k,    c_k = s_k w_k / (w_k + γ)

    with w = p(a | u) / p(a): the derivative w (f − m) + γ (f − f̄) is zero. At γ = 0 that is m, at infinity E[m | u].
    """

    own: Array  # (n, q): m at the rows
    ratio: Array  # (n,): w of the rows' own values of A
    worlds: Array  # (n, K, q): m_k; where several u fit a row, their mean
    ratios: Array  # (n, K): w_k
    shares: Array  # (n, K): the weights s_k under which the a_k follow p(A)

    def centre(self, gamma: float) -> Array:  # (n, q)
        """Return f̄."""
        weights = self.shares * (self.ratios if np.isinf(gamma) else self.ratios / (self.ratios + gamma))
        return np.einsum("nk,nkq->nq", weights / weights.sum(axis=1, keepdims=True), self.worlds)

    def at(self, gamma: float) -> Array:  # (n, q)
        """Return f."""
        if gamma == 0:
            return self.own
        centre = self.centre(gamma)
        if np.isinf(gamma):
            return centre
        return np.asarray(self.own + (gamma / (self.ratio + gamma))[:, None] * (centre - self.own))


@dataclass(frozen=True, eq=False)
class MeanOfDraws:
    """Predictions of several draws of each row, the draws of one row together: E[f | row]."""

    knob: Knob
    draws: int

    def at(self, gamma: float) -> Array:  # (n, q)
        """Return the mean over the draws."""
        answers = self.knob.at(gamma)
        return np.asarray(answers.reshape(-1, self.draws, answers.shape[1]).mean(axis=1))


class Engine(ABC):
    """A family of predictors, one per strength."""

    asked: Asked
    calls: int  # how many rows the model is asked about for each row
    sees_to: float  # the strength beyond which a `BlindEnd` takes over

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

    sees_to = 19.0  # at which a twentieth of an effect is left

    @property
    def calls(self) -> int:  # type: ignore[override]
        """The row and its worlds."""
        return 1 + self.worlds.calls

    def knob(self, rows: pd.DataFrame) -> Parts:
        """Ask about the rows and about each of their worlds."""
        shown = rows[list(self.worlds.columns)]
        return parts_of([self.asked], self.worlds, shown, self.worlds.units(shown))[0]

    def under(self, worlds: Worlds, units: Units, settings: Sequence[Mapping[str, Any]]) -> list[Knob]:
        """Where the noise is known, all worlds of a row share what they are mixed from."""
        if worlds is not self.worlds or not units.exact:
            return super().under(worlds, units, settings)
        parts = parts_of([self.asked], worlds, None, units)[0]
        frames = (worlds.under(units, setting) for setting in settings)
        return [replace(parts, own=self.asked(frame), ratio=worlds.ratio(frame)) for frame in frames]


@dataclass(frozen=True, eq=False)
class BlindAtTheEnd:
    """What an engine knows of rows, and the closed form with the noise that rows leave open drawn blindly.

    Most strengths need one of the two, and only what a strength needs is asked.
    """

    engine: BlindEnd
    rows: pd.DataFrame

    @cached_property
    def seeing(self) -> Knob:
        """What is known of the rows where open noise is drawn from what fits them."""
        return self.engine.seeing.knob(self.rows)

    @cached_property
    def blind(self) -> Parts:
        """The same where they say nothing of it."""
        return Formula(self.engine.asked, replace(self.engine.worlds, blind=True)).knob(self.rows)

    def at(self, gamma: float) -> Array:  # (n, q)
        """Mix both, with none of the blind one up to where the engine sees to, and nothing else at infinity."""
        if gamma <= self.engine.seeing.sees_to:
            return self.seeing.at(gamma)
        if np.isinf(gamma):
            return self.blind.at(gamma)
        share = 1 - self.engine.seeing.sees_to / gamma
        return np.asarray((1 - share) * self.seeing.at(gamma) + share * self.blind.at(gamma))


@dataclass(frozen=True, eq=False)
class BlindEnd(Engine):
    """A family whose strict end tells nothing of what rows leave open.

    Where the noise of a node is drawn from what fits a row, f̄ still follows the row: two labels fit other draws. So do
    trees that read a label. Drawn blindly, as if the row said nothing of that noise, f̄ is the same for a person in
    every world, and knows less.
    """

    seeing: Engine
    worlds: Worlds

    @property
    def asked(self) -> Asked:  # type: ignore[override]
        """The model."""
        return self.seeing.asked

    @property
    def calls(self) -> int:  # type: ignore[override]
        """Those of the family, and the row with its worlds."""
        return self.seeing.calls + 1 + replace(self.worlds, blind=True).calls

    def knob(self, rows: pd.DataFrame) -> BlindAtTheEnd:
        """Ask about the rows and their worlds, and about those imagined blindly, once a strength needs it."""
        return BlindAtTheEnd(self, rows)


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
    parts = []
    for asked in models:
        answers = asked(frame).reshape(n, count, draws, -1).mean(axis=2)
        parts.append(Parts(_own_answers(asked, worlds, rows, answers), ratio, answers, w, shares))
    return parts


def _own_answers(asked: Asked, worlds: Worlds, rows: pd.DataFrame | None, answers: Array) -> Array:  # (n, q)
    """What the model says of the rows: of listed values, one of the worlds is the row itself, unless it is blind."""
    if rows is None:
        return answers[:, 0]
    shown = worlds.levels.listed and not worlds.blind
    codes = worlds.levels.codes(rows) if shown else np.full(len(rows), -1)
    own = answers[np.arange(len(rows)), codes]
    if (codes < 0).any():
        own[codes < 0] = asked(rows[codes < 0])
    return own
