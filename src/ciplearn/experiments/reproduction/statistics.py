"""The statistics that judge claims, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from ciplearn.experiments.reproduction.study import Claim, Unmatched

# Drawn before looking: rank correlations this strong count as "falls", "rises" and "agrees".
STRONG = 0.9

# A number counts as matched within this factor of the paper's: another sample and other seeds make that much.
_MATCHED = 1.5


def spearman(x: Iterable[float], y: Iterable[float]) -> float:
    """Rank correlation; NaN where one side never changes."""
    first, second = np.asarray(list(x), dtype=float), np.asarray(list(y), dtype=float)
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(spearmanr(first, second).statistic)


def trend(table: pd.DataFrame, measure: str, claim: str, method: str, *, rises: bool) -> Claim:
    """Judge whether the mean over seeds of a measure rises, or falls, with gamma."""
    means = table.groupby("gamma")[measure].mean()
    value = spearman(means.index, means)
    holds = value >= STRONG if rises else value <= -STRONG
    bound = f"at least {STRONG}" if rises else f"at most −{STRONG}"
    return Claim(claim, f"Spearman over {len(means)} gammas {signed(value)} ({bound})", bool(holds), method, value)


def agreement(table: pd.DataFrame, first: str, second: str, claim: str, method: str) -> Claim:
    """Judge whether two measures order the networks of all gammas and seeds alike."""
    value = spearman(table[first], table[second])
    statistic = f"Spearman over {len(table)} networks {signed(value)} (at least {STRONG})"
    return Claim(claim, statistic, bool(value >= STRONG), method, value)


def beaten(means: pd.DataFrame, baseline: pd.Series, name: str, method: str, where: str = "") -> Claim:
    """Judge whether some gamma has both a lower mean MSE and a lower mean VCF than a baseline."""
    better = means[(means["mse"] < baseline["mse"]) & (means["vcf"] < baseline["vcf"])]
    listed = ", ".join(f"{gamma:g}" for gamma in better.index) or "none"
    numbers = f"the baseline has MSE {baseline['mse'] * 1e3:.3f} and VCF {baseline['vcf'] * 1e3:.3f}, × 10³"
    statistic = f"gammas with both means lower: {listed} (at least one; {numbers})"
    claim = f"Some gamma beats {name} in MSE and VCF at once{where}"
    return Claim(claim, statistic, bool(len(better)), method, float(len(better)))


def apart(what: str, paper: float, ours: float, reason: str, scale: float = 1e3) -> tuple[Unmatched, ...]:
    """Name a number of the paper that ours is far from; nothing where they are close."""
    if paper > 0 and paper / _MATCHED <= ours <= paper * _MATCHED:
        return ()
    return (Unmatched(what, f"{paper * scale:.3g}", f"{ours * scale:.3g}", reason),)


def plus_minus(values: Iterable[float], scale: float = 1.0, digits: int | None = None) -> str:
    """Mean ± standard deviation, with so many digits after the point, or else with three digits of the mean."""
    numbers = np.asarray(list(values), dtype=float) * scale
    if numbers.size == 0:
        return "—"
    mean = float(numbers.mean())
    deviation = float(numbers.std(ddof=1)) if numbers.size > 1 else 0.0
    places = digits
    if places is None:
        places = int(np.clip(2 - np.floor(np.log10(abs(mean))), 0, 5)) if mean else 0
    return f"{mean:.{places}f} ± {deviation:.{places}f}".replace("-", "−")


def signed(value: float) -> str:
    """A correlation with a real minus sign."""
    return f"{value:.2f}".replace("-", "−")
