"""`Conclusion`: passes, fails, or useless, with the checks that say so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.wording import as_list
from ciplearn.report.wording import MODEL, decimal, percent, short

if TYPE_CHECKING:
    from ciplearn.report.content import Report

PASSES, FAILS, USELESS = "passes", "fails", "useless"

# A predictor that explains less than this of what a constant leaves open is of no use.
_OF_USE = 0.01

# The share of rows that may move by more than the limit between two values.
_MOVED_ROWS = 0.05


@dataclass(frozen=True)
class Check:
    """One thing that was asked of the predictor.

    Attributes
    ----------
    name : str
    sentence : str
        What was found, with its number and its limit.
    holds : bool
    asks : str
        What it asks about: ``"use"``, ``"effect"`` or ``"vcf"``.
    """

    name: str
    sentence: str
    holds: bool
    asks: str


@dataclass(frozen=True)
class Conclusion:
    """What the audit comes to.

    Attributes
    ----------
    state : str
        ``"useless"`` where the predictor is hardly better than a constant; else ``"passes"`` where the ends of all
        intervals keep to the limits, and ``"fails"`` where one does not.
    headline : str
    checks : tuple of Check
    """

    state: str
    headline: str
    checks: tuple[Check, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the conclusion as JSON-ready data."""
        return fields_as_data(self)


def conclude(report: Report) -> Conclusion:
    """Judge a report by its limits."""
    who = as_list(report.audit.vcf.protected)
    use, effect, rows, spread = _use(report), _effect(report), _rows(report), _spread(report)
    checks = tuple(check for check in (use, effect, rows, spread) if check is not None)
    fails = [check is not None and not check.holds for check in (effect, rows, spread)]
    if use is not None and not use.holds:
        return Conclusion(USELESS, f"Nothing is gained by using this predictor, however little {who} moves it.", checks)
    most = _most(report)
    if not any(fails):
        said = f"Changing {who} moves the prediction for the same row by no more than is allowed{most}"
        return Conclusion(PASSES, f"{said}{_if_right(report)}.", checks)
    if fails[0] or report.effects is None:
        said = f"Changing {who} moves the prediction for the same row by more than is allowed{most}."
    elif fails[1]:
        said = (
            f"Changing {who} moves too many single rows by more than is allowed; on average it moves them less{most}."
        )
    else:
        said = f"Changing {who} makes the predictions for the same row vary more than is allowed{most}."
    return Conclusion(FAILS, said, checks)


def _most(report: Report) -> str:
    """The largest paired effect, however few rows show its values."""
    if report.effects is None:
        return ""
    row = report.effects.largest(MODEL)
    amount = report.unit.amount(row["effect"], signed=True)
    return f": most from {row['first']} to {row['second']}, by {amount} on average"


def _if_right(report: Report) -> str:
    nodes = sorted({finding.node for finding in report.audit.vcf.doubts})
    return f", if the causal model is right, which is in doubt about {as_list(nodes)}" if nodes else ""


def explained(report: Report) -> float:
    """1 − loss / loss of the best constant on the same rows; for labels alone, of the share of wrong ones."""
    scores = report.audit.scores
    if "r2" in scores:
        return scores["r2"]
    shares = report.rows[report.audit.verdict.outcome].value_counts(normalize=True).to_numpy()
    shares = shares[shares > 0]
    if "log_loss" in scores:
        constant, loss = float(-(shares * np.log(shares)).sum()), scores["log_loss"]
    else:
        constant, loss = 1 - float(shares.max()), 1 - scores["accuracy"]
    return 1 - loss / constant if constant > 0 else math.nan


def _use(report: Report) -> Check | None:
    share = explained(report)
    if math.isnan(share):
        return None
    of_what = "the variance" if "r2" in report.audit.scores else "what a constant gets wrong"
    said = f"It explains {percent(max(share, 0.0))} of {of_what} on the audited rows."
    if share < 0:
        said = "It is worse than a constant on these rows."
    return Check("Is it of use?", f"{said} {percent(_OF_USE)} is the least.", share >= _OF_USE, "use")


def _effect(report: Report) -> Check | None:
    effects, unit = report.effects, report.unit
    if effects is None:
        return None
    row = effects.largest(MODEL)
    end = max(abs(row["effect_low"]), abs(row["effect_high"]))
    return Check(
        "Largest effect:",
        f"From {row['first']} to {row['second']}: {unit.amount(row['effect'], signed=True)} on average "
        f"(95 % interval {unit.between(row['effect_low'], row['effect_high'])}); at most {unit.amount(report.limit)} "
        "is allowed.",
        bool(end <= report.limit),
        "effect",
    )


def _rows(report: Report) -> Check | None:
    """The pair of values that moves most rows by more than the limit."""
    if report.effects is None:
        return None
    table = report.effects.table
    own = table[table["model"] == MODEL]
    row = own.loc[own["moved"].idxmax()]
    return Check(
        "Single rows:",
        f"From {row['first']} to {row['second']}, {percent(row['moved'])} of rows move by more than "
        f"{report.unit.amount(report.limit)} (95 % interval {percent(row['moved_low'])} to "
        f"{percent(row['moved_high'])}); at most {percent(_MOVED_ROWS)} may.",
        bool(row["moved_high"] <= _MOVED_ROWS),
        "effect",
    )


def _spread(report: Report) -> Check | None:
    """VCF, where a bound on it was set; the typical difference, where there are no pairs of values to list."""
    vcf, unit = report.audit.vcf, report.unit
    low, high = vcf.interval
    if report.max_vcf is not None:
        return Check(
            "Variance of counterfactuals:",
            f"{short(vcf.value)} (95 % interval {short(low)} to {short(high)}); at most {short(report.max_vcf)} is "
            "allowed.",
            high <= report.max_vcf,
            "vcf",
        )
    if report.effects is not None:
        return None
    ends = [math.sqrt(2 * max(end, 0.0)) for end in (low, high)]
    return Check(
        "Typical difference:",
        f"{unit.amount(report.typical)} (95 % interval {unit.between(*ends)}) between two values as they occur; at "
        f"most {unit.amount(report.limit)} is allowed.",
        ends[1] <= report.limit,
        "effect",
    )


def scores_in_words(report: Report) -> dict[str, str]:
    """Names and values of the predictive scores, the more telling first."""
    found = report.audit.scores
    said = {}
    if "accuracy" in found:
        said["right decisions"] = percent(found["accuracy"])
    if not math.isnan(found.get("r2", math.nan)):
        said["variance explained"] = percent(found["r2"]) if found["r2"] >= 0 else "none"
    if "log_loss" in found:
        said["log loss"] = decimal(found["log_loss"])
    if "mse" in found:
        said["root mean squared error"] = report.unit.amount(math.sqrt(found["mse"]))
    return said
