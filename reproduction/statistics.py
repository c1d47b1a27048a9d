"""The statistics that judge claims, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from scipy.stats import t as student

from reproduction.study import Claim, Unmatched

# Drawn before looking: rank correlations this strong count as "falls", "rises" and "agrees".
STRONG = 0.9

# Between networks of one gamma less is asked for: nothing but chance moves both measures there.
MODERATE = 0.5

# Of tests that compare predictors over seeds.
LEVEL = 0.05

# A printed number comes out within this factor: another sample and other seeds make that much.
FACTOR = 2.0

RULE = (
    f"A printed number does not come out if ours is off by more than a factor of {FACTOR:g} and the ranges of two "
    "standard deviations around both do not meet. All of them are listed."
)


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


def within_gammas(table: pd.DataFrame, first: str, second: str, claim: str, method: str) -> Claim:
    """Judge whether two measures order networks of the same gamma alike: gamma itself moves both."""
    found = [spearman(part[first], part[second]) for _, part in table.groupby("gamma") if len(part) > 2]
    known = [value for value in found if not np.isnan(value)]
    if not known:
        return Claim(claim, "needs three networks at a gamma", False, method)
    value = float(np.mean(known))
    statistic = (
        f"mean over {len(known)} gammas of Spearman between networks of one gamma {signed(value)} (at least {MODERATE})"
    )
    return Claim(claim, statistic, value >= MODERATE, method, value)


def clearly_below(low: Iterable[float], high: Iterable[float], level: float = LEVEL) -> bool:
    """Whether the mean of one is below the other's by Welch's one-sided test; never with fewer than two values."""
    first, second = np.asarray(list(low), dtype=float), np.asarray(list(high), dtype=float)
    if min(len(first), len(second)) < 2:
        return False
    squares = np.array([values.var(ddof=1) / len(values) for values in (first, second)])
    gap, total = float(second.mean() - first.mean()), float(squares.sum())
    if total == 0:
        return gap > 0
    freedom = total**2 / float((squares**2 / [len(first) - 1, len(second) - 1]).sum())
    return bool(student.sf(gap / np.sqrt(total), freedom) < level)


def beaten(ours: pd.DataFrame, baseline: pd.DataFrame, name: str, method: str, where: str = "") -> Claim:
    """Judge whether some gamma has both a lower MSE and a lower VCF than a baseline, over seeds.

    The level is shared by all gammas that are tried, so that the best of many does not win by chance.
    """
    groups = {float(gamma): part for gamma, part in ours.groupby("gamma")}
    measures, level = ("mse", "vcf"), LEVEL / max(1, len(groups))
    better = [
        gamma for gamma, part in groups.items() if all(clearly_below(part[m], baseline[m], level) for m in measures)
    ]
    by_mean = [g for g, part in groups.items() if all(part[m].mean() < baseline[m].mean() for m in measures)]
    mse, vcf = (baseline[m].mean() * 1e3 for m in measures)
    statistic = (
        f"gammas with both lower by Welch's test, level {LEVEL:.0%} shared by {counted(len(groups))}: "
        f"{_listed(better)} (at least one; by means alone {_listed(by_mean)}; the baseline has MSE {mse:.3f} and VCF "
        f"{vcf:.3f}, × 10³)"
    )
    claim = f"Some gamma beats {name} in MSE and VCF at once{where}"
    return Claim(claim, statistic, bool(better), method, float(len(better)))


def _listed(gammas: Sequence[float]) -> str:
    return ", ".join(f"{gamma:g}" for gamma in gammas) or "none"


def counted(number: int) -> str:
    """How many gammas share a level."""
    return "1 gamma" if number == 1 else f"{number} gammas"


def comes_out(printed: str, ours: Iterable[float]) -> bool:
    """Whether a printed "mean ± deviation" comes out: within a factor of 2, or the ranges of ± 2 deviations meet."""
    numbers = [float(part) for part in printed.split("±")]
    mean, deviation = numbers[0], numbers[1] if len(numbers) > 1 else 0.0
    values = np.asarray(list(ours), dtype=float)
    own = float(values.mean())
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    close = mean / FACTOR <= own <= mean * FACTOR
    return bool(close or abs(own - mean) <= 2 * (deviation + spread))


def apart(
    what: str, printed: Mapping[str, str], ours: Mapping[str, Iterable[float]], scale: float, reason: str
) -> tuple[Unmatched, ...]:
    """Name all printed numbers of one kind that do not come out, in one entry; nothing where all do.

    Parameters
    ----------
    what : str
        The kind of number, with its unit.
    printed : mapping from label to str
    ours : mapping from label to values over seeds
        Labels that are not there were not run.
    scale : float
        From our values to the printed unit.
    reason : str
    """
    values = {label: np.asarray(list(ours[label]), dtype=float) * scale for label in printed if label in ours}
    far = [label for label, own in values.items() if not comes_out(printed[label], own)]
    if not far:
        return ()
    count = f"{len(far)} of {len(values)}" if len(values) > 1 else "the one"
    listed = "; ".join(f"{label}: {printed[label]}" for label in far)
    found = "; ".join(f"{label}: {plus_minus(values[label])}" for label in far)
    return (Unmatched(f"{what} ({count} printed)", listed, found, reason),)


def plus_minus(values: Iterable[float], scale: float = 1.0, digits: int | None = None) -> str:
    """Mean ± standard deviation, with so many digits after the point, or else with three digits of the mean.

    One value stands alone: it has no deviation.
    """
    numbers = np.asarray(list(values), dtype=float) * scale
    if numbers.size == 0:
        return "—"
    mean = float(numbers.mean())
    places = digits
    if places is None:
        places = int(np.clip(2 - np.floor(np.log10(abs(mean))), 0, 5)) if mean else 0
    deviation = f" ± {numbers.std(ddof=1):.{places}f}" if numbers.size > 1 else ""
    return f"{mean:.{places}f}{deviation}".replace("-", "−")


def signed(value: float) -> str:
    """A correlation with a real minus sign."""
    return f"{value:.2f}".replace("-", "−")
