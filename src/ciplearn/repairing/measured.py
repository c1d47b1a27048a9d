"""What is measured of a repaired model, when it is first asked for; and by that: formula or correction.

A `Curve` says what each strength costs and buys, `Conformal` how far outcomes lie from the strict end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from ciplearn._core.arguments import share
from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.rows import copy_groups, split_together
from ciplearn.evaluation.any_model import bare
from ciplearn.evaluation.conclusion import Floor
from ciplearn.evaluation.counterfactual_rows import sample_with_every_label
from ciplearn.evaluation.interventions import compared_values, pairs_of
from ciplearn.repairing.asked import Asked
from ciplearn.repairing.correction import Correction
from ciplearn.repairing.formula import Engine, Formula, Knob
from ciplearn.repairing.worlds import DRAWS, Worlds
from ciplearn.scm import StructuralCausalModel, Vector, fit_scm
from ciplearn.scm.kinds import Array

# f is linear in 1 / (1 + γ) where A has no causes, and its VCF a square: these steps are even there, finer at the end.
_STEPS = 40
STRENGTHS = np.array([np.inf if step == _STEPS else (1 - step / _STEPS) ** -2.0 - 1 for step in range(_STEPS + 1)])

_VALUES, _FEWER_VALUES = 24, 8  # of A, which stand for its law when VCF is measured
_ASKED, _FEWEST_ROWS = 200_000, 60  # rows that a model is asked about at most, and that are measured at least
_TRIED = 50  # rows by which it is found out whether they determine their noise


@dataclass(frozen=True, eq=False)
class Curve:
    """Measures at some strengths, from the model itself to the strict predictor.

    ``table`` has per ``strength``: ``change``, the mean squared distance from the model; ``vcf``; ``left``, the share
    of the model's own VCF; ``effect``, the largest mean effect between two values of a protected variable, or the
    typical difference √(2 VCF) for a vector.
    """

    measure: Callable[[], pd.DataFrame]

    @cached_property
    def table(self) -> pd.DataFrame:
        """The measures, taken when they are first asked for."""
        return self.measure()

    @classmethod
    def of(cls, engine: Engine, worlds: Worlds, rows: pd.DataFrame) -> Curve:
        """Measure on rows, whose other worlds a causal model imagines, when it is first asked for."""
        return cls(lambda: _measures(engine, worlds, rows))

    def strength_for(self, measure: str, limit: float) -> float:
        """Return the smallest strength from which on a measure keeps to a limit."""
        values = self.table[measure].to_numpy()
        # VCF is a square of what mixes linearly.
        height, bar = (np.sqrt(values), np.sqrt(limit)) if measure in ("vcf", "left") else (values, limit)
        last = max(np.flatnonzero(height > bar).tolist(), default=-1)
        if last < 0:
            return 0.0
        if last == len(height) - 1:
            said = {"effect": "largest effect", "left": "share of VCF that is left"}[measure]
            raise InputError(
                f"No strength brings the {said} to {limit:.3g}: the strict predictor keeps {values[-1]:.3g} on these "
                "rows; ask for more than that, or take strict()."
            )
        places = 1 / (1 + self.table["strength"].to_numpy())
        t = places[last] + (places[last + 1] - places[last]) * (height[last] - bar) / (height[last] - height[last + 1])
        return float(1 / t - 1) if t > 0 else np.inf


@dataclass(frozen=True, eq=False)
class Conformal:
    """Scores of rows that the model was not trained on: |y − f̄| of numbers, 1 − f̄_y of labels.

    With n such rows and a new one in any order, the new score is at most the ⌈(n + 1) c⌉-th smallest with probability
    at least c. So y lies within that radius of f̄ with at least that probability, and as f̄ is the same in every world,
    so are the interval and the set.
    """

    measure: Callable[[], Array]

    @cached_property
    def scores(self) -> Array:  # (n,)
        """The scores, sorted, taken when they are first asked for."""
        return np.sort(self.measure())

    @classmethod
    def of(cls, truth: Array, strict: Callable[[], Array], classes: Array | None) -> Conformal:  # (n,)
        """Score rows by their outcome and what the strict predictor says of them, (n, q), when it is asked."""
        if classes is None:
            return cls(lambda: np.abs(truth - strict()[:, 0]))
        known = {bare(label): place for place, label in enumerate(classes)}
        codes = np.array([known.get(bare(label), -1) for label in truth], dtype=int)
        # A label that the model does not know is never in a set.
        own = np.arange(len(codes)), np.maximum(codes, 0)
        return cls(lambda: np.where(codes < 0, np.inf, 1 - strict()[own]))

    def radius(self, coverage: float) -> float:
        """Return the ⌈(n + 1) c⌉-th smallest score; infinity where the rows are too few for so much."""
        if not 0 < share(coverage, "coverage") < 1:
            raise InputError(f"coverage must lie between 0 and 1, got {coverage!r}; pass for example 0.9.")
        place = math.ceil((len(self.scores) + 1) * coverage - 1e-9)
        return float(self.scores[place - 1]) if place <= len(self.scores) else math.inf


def _measures(engine: Engine, worlds: Worlds, rows: pd.DataFrame) -> pd.DataFrame:
    """Measure on as many of the rows as there is time for."""
    exact = worlds.units(rows.head(_TRIED), alone=True).exact
    law = worlds.levels.some(_VALUES if exact else _FEWER_VALUES)
    settings = [worlds.setting(law.values.iloc[[k]]) for k in range(len(law))]
    compared, pairs = _pairs(worlds, rows)
    shares_worlds = exact and getattr(engine, "worlds", None) is worlds
    asked = (len(settings) + len(compared)) * (1 if shares_worlds else engine.calls) * (1 if exact else DRAWS)
    rows = rows.iloc[np.linspace(0, len(rows) - 1, min(len(rows), max(_FEWEST_ROWS, _ASKED // asked))).astype(int)]
    knobs = engine.under(worlds, worlds.units(rows, alone=True), [*settings, *compared])
    in_worlds, at_pairs = knobs[: len(settings)], knobs[len(settings) :]
    own = engine.knob(rows)
    model, measures = own.at(0.0), []
    for gamma in STRENGTHS:
        vcf = _variance(in_worlds, law.shares, gamma)
        effect = _largest(at_pairs, pairs, gamma) if pairs else float(np.sqrt(2 * vcf))
        change = float(np.square(own.at(gamma) - model).sum(axis=1).mean())
        measures.append({"strength": gamma, "change": change, "vcf": vcf, "effect": effect})
    table = pd.DataFrame(measures)
    table.insert(3, "left", table["vcf"] / table["vcf"].iloc[0] if table["vcf"].iloc[0] > 0 else 0.0)
    return table


def _variance(knobs: list[Knob], shares: Array, gamma: float) -> float:
    answers = np.stack([knob.at(gamma) for knob in knobs], axis=1)  # (n, K, q)
    centred = answers - np.einsum("nkq,k->nq", answers, shares)[:, None]
    return float(np.einsum("nkq,k->n", np.square(centred), shares).mean())


def _largest(knobs: list[Knob], pairs: list[tuple[int, int]], gamma: float) -> float:
    means = [knob.at(gamma).mean(axis=0) for knob in knobs]
    return max(float(np.abs(means[i] - means[j]).max()) for i, j in pairs)


def _pairs(worlds: Worlds, rows: pd.DataFrame) -> tuple[list[dict[str, object]], list[tuple[int, int]]]:
    """The settings that the audit compares, and which of them with which; none for a vector."""
    scm, names = worlds.scm, worlds.protected
    if any(isinstance(scm.kinds[name], Vector) for name in names):
        return [], []
    levels = {name: compared_values(rows, scm, name, {}) for name in names}
    compared: list[dict[str, object]] = []
    pairs: list[tuple[int, int]] = []
    for _, settings, differ in pairs_of(levels):
        pairs += [(len(compared) + i, len(compared) + j) for i, j in differ]
        compared += settings
    return compared, pairs


FORMULA, CORRECTION = "formula", "correction"

_HALF, _LEAST_HALF = 5000, 40  # rows of each half
_TARGETS = (0.5, 0.3, 0.2, 0.1, 0.05)  # shares of VCF at which the two are compared


@dataclass(frozen=True, eq=False)
class Chosen:
    """Which of the two serves, and what the second causal model says about both."""

    rests_on: str
    floor: Floor | None
    note: str
    blind: bool = False  # whether rows leave noise open, which a strict prediction must not follow


def chosen(asked: Asked, worlds: Worlds, table: pd.DataFrame, generator: np.random.Generator) -> Chosen:
    """Train on one half of the rows and judge on the other."""
    exact = worlds.determined_by(table.head(50))
    if exact and not worlds.scm.model_based:
        return Chosen(FORMULA, None, _note(FORMULA, {}, exact))
    halves = _halves(table, generator)
    if len(halves[0]) < _LEAST_HALF:
        return Chosen(FORMULA, None, f"{len(table)} rows are too few to judge by a second causal model.")
    first, second = (replace(worlds, scm=_model_of(worlds, half, generator)) for half in halves)
    engines: dict[str, Engine] = {FORMULA: Formula(asked, first)}
    engines |= {} if exact else {CORRECTION: Correction.of(asked, first, halves[0], generator)}
    curves = {}
    for name, engine in engines.items():
        try:
            curve = Curve.of(engine, second, halves[1])
            if len(curve.table):
                curves[name] = curve
        except InputError:
            # Without the outcome, which acts on what is read, the noise behind a row cannot be inferred.
            if name == FORMULA and not exact:
                continue
            raise
    spread = float(asked(halves[1].head(2000)).var(axis=0).sum())
    costs = {name: _cost(curve, spread) for name, curve in curves.items()}
    best = min(costs, key=lambda name: costs[name])
    blind = not exact and FORMULA in curves
    blindly = Formula(asked, replace(first, blind=True))
    strict = (Curve.of(blindly, second, halves[1]) if blind else curves[best]).table.iloc[-1]
    typical = float(np.sqrt(2 * max(0.0, float(strict["vcf"]))))
    floor = Floor(typical, math.nan, 2 * len(halves[0]), float(strict["left"])) if worlds.scm.model_based else None
    return Chosen(best, floor, _note(best, curves, exact), blind)


def _note(best: str, curves: dict[str, Curve], exact: bool) -> str:
    if exact:
        return "The rows determine the noise behind them, so the closed form serves."
    ends = ", ".join(
        f"{name} {100 * curve.table['left'].iloc[-1]:.0f} % at a squared change of {curve.table['change'].iloc[-1]:.2g}"
        for name, curve in curves.items()
    )
    return (
        f"The rows leave open some of the noise behind them; on held-out rows, judged by a second causal model, the "
        f"{best} serves better (VCF left where each ends: {ends}). Beyond, and when it is strict, it gives up what "
        "labels and counts that A moves tell of a single row."
    )


def _cost(curve: Curve, spread: float) -> float:
    """The change at which each target is met, on average; a constant, which changes by the spread, meets them all."""
    left, change = curve.table["left"].to_numpy(), curve.table["change"].to_numpy()
    return float(np.mean([min([spread, *change[left <= target][:1]]) for target in _TARGETS]))


def _halves(table: pd.DataFrame, generator: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    # Both halves know every label, also one that only the other shows.
    labels = [name for name in table.columns if not holds_numbers(table[name])]
    table = table.astype(dict.fromkeys(labels, "category"))
    halves = split_together(generator.permutation(len(table)), len(table) // 2, copy_groups(table))
    first, second = (sample_with_every_label(table.iloc[half], _HALF, generator) for half in halves)
    return first, second


def _model_of(worlds: Worlds, half: pd.DataFrame, generator: np.random.Generator) -> StructuralCausalModel:
    if not worlds.scm.model_based:
        return worlds.scm
    return fit_scm(worlds.scm.graph, half, random_state=int(generator.integers(2**31)))
