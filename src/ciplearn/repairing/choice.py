"""Formula or correction: decided on rows that neither has seen, by a causal model that neither has used."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError
from ciplearn.evaluation.conclusion import Floor
from ciplearn.evaluation.counterfactual_rows import sample_with_every_label
from ciplearn.repairing.asked import Asked
from ciplearn.repairing.correction import Correction
from ciplearn.repairing.formula import Engine, Formula
from ciplearn.repairing.measured import Curve
from ciplearn.repairing.worlds import Worlds
from ciplearn.scm import StructuralCausalModel, fit_scm

FORMULA, CORRECTION = "formula", "correction"

# Rows of each half.
_HALF = 5000
_FEWEST_ROWS = 40

# Shares of VCF at which the two are compared.
_TARGETS = (0.5, 0.3, 0.2, 0.1, 0.05)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Which of the two serves, and what the second causal model says about both."""

    rests_on: str
    floor: Floor | None
    note: str


def chosen(asked: Asked, worlds: Worlds, table: pd.DataFrame, generator: np.random.Generator) -> Chosen:
    """Train on one half of the rows and judge on the other."""
    exact = worlds.determined_by(table.head(50))
    if exact and not worlds.scm.model_based:
        return Chosen(FORMULA, None, _note(FORMULA, {}, exact))
    halves = _halves(table, generator)
    if len(halves[0]) < _FEWEST_ROWS:
        return Chosen(FORMULA, None, f"{len(table)} rows are too few to judge by a second causal model.")
    first, second = (replace(worlds, scm=_model_of(worlds, half, generator)) for half in halves)
    engines: dict[str, Engine] = {FORMULA: Formula(asked, first)}
    if not exact:
        engines[CORRECTION] = Correction.of(asked, first, halves[0], generator)
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
    strict = curves[best].table.iloc[-1]
    floor = None
    if worlds.scm.model_based:
        typical = float(np.sqrt(2 * max(0.0, float(strict["vcf"]))))
        floor = Floor(typical, math.nan, 2 * len(halves[0]), float(strict["left"]))
    return Chosen(best, floor, _note(best, curves, exact))


def _note(best: str, curves: dict[str, Curve], exact: bool) -> str:
    if exact:
        return "The rows determine the noise behind them, so the closed form serves."
    ends = ", ".join(
        f"{name} {100 * curve.table['left'].iloc[-1]:.0f} % at a squared change of {curve.table['change'].iloc[-1]:.2g}"
        for name, curve in curves.items()
    )
    return (
        f"The rows leave open some of the noise behind them; on held-out rows, judged by a second causal model, the "
        f"{best} serves better (VCF left at the strict end: {ends})."
    )


def _cost(curve: Curve, spread: float) -> float:
    """The change at which each target is met, on average; a constant, which changes by the spread, meets them all."""
    left, change = curve.table["left"].to_numpy(), curve.table["change"].to_numpy()
    return float(np.mean([min([spread, *change[left <= target][:1]]) for target in _TARGETS]))


def _halves(table: pd.DataFrame, generator: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    # Both halves know every label, also one that only the other shows.
    labels = [name for name in table.columns if not holds_numbers(table[name])]
    table = table.astype(dict.fromkeys(labels, "category"))
    order = generator.permutation(len(table))
    half = len(table) // 2
    first, second = (table.iloc[order[part]] for part in (slice(None, half), slice(half, None)))
    return sample_with_every_label(first, _HALF, generator), sample_with_every_label(second, _HALF, generator)


def _model_of(worlds: Worlds, half: pd.DataFrame, generator: np.random.Generator) -> StructuralCausalModel:
    if not worlds.scm.model_based:
        return worlds.scm
    return fit_scm(worlds.scm.graph, half, random_state=int(generator.integers(2**31)))
