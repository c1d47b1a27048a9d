"""The whole frontier between a model and its best invariant version, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

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

    Attributes
    ----------
    own : array of shape (n, q)
        m at the rows.
    ratio : array of shape (n,)
        w of the rows' own values of A.
    worlds : array of shape (n, K, q)
        m_k; where several u fit a row, their mean.
    ratios, shares : arrays of shape (n, K)
        w_k, and the weights s_k under which the a_k follow p(A).
    """

    own: Array
    ratio: Array
    worlds: Array
    ratios: Array
    shares: Array

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
        pull = (gamma / (self.ratio + gamma))[:, None]
        return np.asarray(self.own + pull * (centre - self.own))


@dataclass(frozen=True, eq=False)
class MeanOfDraws:
    """Predictions of several draws of each row, the draws of one row together: E[f | row]."""

    knob: Knob
    draws: int

    def at(self, gamma: float) -> Array:  # (n, q)
        """Return the mean over the draws."""
        answers = self.knob.at(gamma)
        return np.asarray(answers.reshape(-1, self.draws, answers.shape[1]).mean(axis=1))
