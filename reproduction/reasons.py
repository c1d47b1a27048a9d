"""Reasons that could explain printed numbers which do not come out, each computed: what it would give instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingRegressor

from ciplearn.datasets import first_synthetic, scenario_1, scenario_2, veitch_anticausal, veitch_causal
from ciplearn.kernels import Gaussian
from ciplearn.scm import StructuralCausalModel
from ciplearn.scm.kinds import Array
from reproduction import table1, veitch
from reproduction.cases import OUTCOME, PROTECTED, Case
from reproduction.study import Comparison, Conditions, Findings, Study

_SCENARIOS: dict[str, Callable[..., StructuralCausalModel]] = {"scenario 1": scenario_1, "scenario 2": scenario_2}

# Rows that share nearly one value of Z.
_NEIGHBOURS = 50


@dataclass(frozen=True)
class ReasonSettings:
    """How much each reason is tried.

    Attributes
    ----------
    rows : int
        Of a sample.
    samples : int
        That errors and spreads of the outcome are taken over.
    slow_samples : int
        That kernels and boosted trees are used on.
    """

    rows: int
    samples: int
    slow_samples: int


def measure(settings: ReasonSettings, conditions: Conditions) -> dict[str, pd.DataFrame]:
    """Compute what each reason would give; one row per number, reason and sample."""
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for place, number in enumerate(conditions.seeds(settings.samples)):
        slow = place < settings.slow_samples
        for about, printed, reason, value in _tried(settings.rows, number, slow):
            rows.append({"number": about, "printed": printed, "reason": reason, "sample": number, "value": value * 1e3})
    return {"reasons": pd.DataFrame(rows)}


def _tried(rows: int, seed: int, slow: bool) -> Iterator[tuple[str, str, str, float]]:
    for name, process in _SCENARIOS.items():
        raw = process().sample(rows, random_state=seed)
        printed = table1.PAPER[name]
        cf1, free = printed["CF1"][0], printed["0.001"]
        yield f"MSE of CF1, {name}", cf1, "another sample, best function of Z", _left_by_z(raw)
        flat = float(raw[OUTCOME].var(ddof=0)) / np.ptp(raw[OUTCOME]) ** 2
        yield f"MSE of CF1, {name}", cf1, "another sample, a constant", flat
        for law, vcf in _spread_by_law(process, rows, seed):
            yield f"VCF at γ = 0.001, {name}", free[2], f"outcome itself, A {law}", vcf
        if slow:
            case = Case.draw(process(), rows, seed)
            right, wrong = _hscic_of_outcome(case)
            yield f"HSCIC at γ = 0.001, {name}", free[1], "outcome itself, squared norm", right
            yield f"HSCIC at γ = 0.001, {name}", free[1], "outcome itself, formula as printed", wrong
    for direction, model in (("causal", veitch_causal()), ("anticausal", veitch_anticausal())):
        outcome = model.sample(rows, random_state=seed)[OUTCOME]
        flat = float(outcome.var(ddof=0)) / np.ptp(outcome) ** 2
        yield f"MSE at γ = 0.5, {direction}, Veitch", veitch.PAPER_PRINTS[direction, 0.5][0], "a constant", flat
    if slow:
        error = _left_by_boosted_trees(rows, seed)
        for name, printed_error in (("data augmentation", "0.03 ± 0.01"), ("causal data augmentation", "0.13 ± 0.12")):
            yield f"MSE of {name}", printed_error, "best function of Z and L, by boosted trees", error


def judge(tables: Mapping[str, pd.DataFrame], settings: ReasonSettings) -> Findings:
    """Say whether a printed number lies among what a reason gives."""
    rows = []
    for (number, printed, reason), part in tables["reasons"].groupby(["number", "printed", "reason"], sort=False):
        low, high = float(part["value"].min()), float(part["value"].max())
        mean, deviation = (float(part) for part in f"{printed} ± 0".split("±")[:2])
        meets = low <= mean + 2 * deviation and mean - 2 * deviation <= high
        rows.append(
            {
                "number, × 10³": number,
                "printed": printed,
                "what if": reason,
                "samples": str(len(part)),
                "gives": f"{low:.3g} to {high:.3g}",
                "explains it": "could" if meets else "no",
            }
        )
    caption = (
        "A reason could explain a number if the number, ± two of its printed deviations, meets the values that the "
        f"reason gives over samples of {settings.rows} rows, columns scaled to [0, 1]."
    )
    return Findings(
        comparisons=(Comparison(caption, pd.DataFrame(rows)),),
        claims=(),
        notes=(
            "At γ = 0.001 a predictor is nearly the outcome, which Z, A and L determine in scenario 1 and up to little "
            "noise in scenario 2: the outcome's own HSCIC and VCF stand for the predictor's.",
            "CF1 sees Z alone, and augmentation that draws A anew leaves no more than Z and L to predict from: no "
            "training brings their errors below those of the best function of these.",
        ),
    )


def _left_by_z(raw: pd.DataFrame) -> float:
    """Error of E[Y | Z] on the scale of Y's range, from the spread of Y among neighbours in Z."""
    ordered = raw.sort_values("Z")[OUTCOME].to_numpy()
    whole = len(ordered) // _NEIGHBOURS * _NEIGHBOURS
    return float(ordered[:whole].reshape(-1, _NEIGHBOURS).var(axis=1, ddof=1).mean() / np.ptp(ordered) ** 2)


def _spread_by_law(process: Callable[..., StructuralCausalModel], rows: int, seed: int) -> Iterator[tuple[str, float]]:
    """VCF of the outcome itself, under several laws of A."""
    scm, generator = process(), np.random.default_rng(seed)
    units = scm.sample_units(rows, random_state=seed)
    raw = scm.frame(units)
    range_ = float(np.ptp(raw[OUTCOME]))
    own, points = raw[PROTECTED].to_numpy(), units.take(np.arange(200))
    laws: dict[str, Array] = {
        "from its own law": own,
        "uniform over its range": generator.uniform(own.min(), own.max(), rows),
        "standard normal": generator.standard_normal(rows),
        "from the equation with the printed sign": process("+").sample(rows, random_state=seed)[PROTECTED].to_numpy(),
    }
    for name, law in laws.items():
        drawn = [law[generator.integers(len(law), size=points.n)] for _ in range(50)]
        answers = np.stack([scm.counterfactual(points, {PROTECTED: values})[OUTCOME] for values in drawn])
        yield name, float(answers.var(axis=0, ddof=1).mean()) / range_**2


def _hscic_of_outcome(case: Case) -> tuple[float, float]:
    """HSCIC of the outcome on the test rows with the paper's kernels: as a squared norm, and as it is printed.

    Printed is wᵀ(K_Y ∘ K_R)w − 2 (wᵀK_Y w)(wᵀK_R w) + (wᵀK_Y w)(wᵀK_R w) per row, with one w for all three regressions.
    """
    statement, kernel = case.independence(), Gaussian(0.1)
    parts = ([OUTCOME], list(statement.right), list(statement.given))
    numbers = [torch.tensor(case.test[columns].to_numpy()) for columns in parts]
    k_y, k_r, k_s = (kernel.gram(part, part) for part in numbers)
    n = len(k_s)
    w = torch.linalg.solve(k_s + 0.01 * n * torch.eye(n, dtype=k_s.dtype), k_s)
    joint = (w * ((k_y * k_r) @ w)).sum(dim=0)
    mixed = (w * (k_y @ w) * (k_r @ w)).sum(dim=0)
    apart = (w * (k_y @ w)).sum(dim=0) * (w * (k_r @ w)).sum(dim=0)
    return float((joint - 2 * mixed + apart).mean()), float((joint - apart).mean())


def _left_by_boosted_trees(rows: int, seed: int) -> float:
    """Error of a good predictor from Z and L on rows of the first process that it has not seen."""
    raw = first_synthetic().sample(2 * rows, random_state=seed)
    train, test = raw.iloc[:rows], raw.iloc[rows:]
    model = HistGradientBoostingRegressor(max_iter=300, random_state=0).fit(train[["Z", "L"]], train[OUTCOME])
    error = np.mean(np.square(model.predict(test[["Z", "L"]]) - test[OUTCOME]))
    return float(error / np.ptp(raw[OUTCOME].iloc[:rows]) ** 2)


STUDY = Study(
    name="reasons",
    title="Numbers that do not come out: reasons tried",
    presets={
        "quick": ReasonSettings(rows=5000, samples=10, slow_samples=2),
        "paper": ReasonSettings(rows=10_000, samples=60, slow_samples=5),
    },
    measure=measure,
    judge=judge,
)
