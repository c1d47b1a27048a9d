"""`Limits`, and the `Conclusion` that an audit comes to by them: passes, fails, useless, or cannot be told.

No other place decides what passes: the report, the command line, the workbench and the goals of a fit ask here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ciplearn._core.numbers import finite
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.wording import as_list
from ciplearn.evaluation.wording import MODEL, decimal, percent, short

if TYPE_CHECKING:
    from ciplearn.evaluation.auditing import Audit
    from ciplearn.evaluation.paired_effects import PairedEffects

PASSES, FAILS, USELESS, UNTOLD = "passes", "fails", "useless", "cannot be told"

# A predictor that explains less than this of what a constant leaves open is of no use.
OF_USE = 0.01

# By default a probability may move by so much, and another prediction by this part of the outcome's deviation.
_PROBABILITY = 0.05
_DEVIATIONS = 0.1


@dataclass(frozen=True)
class Limits:
    """What an audit allows.

    Attributes
    ----------
    max_effect : float, optional
        How far predictions may move between two protected values: on average, and for all but a few rows. By default
        0.05 for probabilities, else a tenth of the outcome's standard deviation.
    max_vcf : float, optional
        How large VCF may be; it is not asked about by default.
    moved_rows : float
        The share of rows that may move by more than ``max_effect``.

    Examples
    --------
    >>> from ciplearn.evaluation import Limits
    >>> Limits().effect(probability=False, deviation=20.0)
    2.0
    """

    max_effect: float | None = None
    max_vcf: float | None = None
    moved_rows: float = 0.05

    def __post_init__(self) -> None:
        for name in ("max_effect", "max_vcf", "moved_rows"):
            if getattr(self, name) is not None:
                finite(getattr(self, name), name)

    @property
    def are_defaults(self) -> bool:
        """Whether nobody has set a limit."""
        return self.max_effect is None and self.max_vcf is None

    def effect(self, *, probability: bool, deviation: float) -> float:
        """Return the limit of an effect, for probabilities or for an outcome of some standard deviation."""
        if self.max_effect is not None:
            return self.max_effect
        return _PROBABILITY if probability else _DEVIATIONS * deviation


@dataclass(frozen=True)
class Floor:
    """How far two causal models of such rows disagree.

    A predictor that is the same in every world of one causal model still moves under another one of the same rows, by
    chance. Less than that nobody can tell.

    Attributes
    ----------
    effect : float
        Its largest average effect under the other model, up to the end of the interval.
    moved : float
        The share of rows that it moves by more than the limit.
    rows : int
        How many rows the models were estimated from.

    Examples
    --------
    >>> from ciplearn.evaluation import Floor
    >>> Floor(effect=1.3, moved=0.2, rows=400).effect > 1.0
    True
    """

    effect: float
    moved: float
    rows: int


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
        What it asks about: ``"use"``, ``"effect"``, ``"rows"`` or ``"vcf"``.
    value, limit : float
        What was measured, and what is allowed.
    before : float, optional
        The same quantity of the predictor that was trained for accuracy alone, where there is one.

    Examples
    --------
    >>> from ciplearn import audit, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(100, random_state=0)
    >>> found = audit(lambda frame: frame["age"], world, people, "income", ["sex"], n_points=20, n_interventions=4)
    >>> [check.asks for check in found.conclusion.checks]
    ['use', 'effect', 'rows']
    """

    name: str
    sentence: str
    holds: bool
    asks: str
    value: float
    limit: float
    before: float | None = None


@dataclass(frozen=True)
class Conclusion:
    """What the audit comes to.

    Attributes
    ----------
    state : str
        ``"useless"`` where the predictor is hardly better than a constant; else ``"passes"`` where the ends of all
        intervals keep to the limits; ``"cannot be told"`` where one does not, and the rows could not show that of any
        predictor; else ``"fails"``.
    headline : str
    checks : tuple of Check

    Examples
    --------
    >>> from ciplearn import audit, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(100, random_state=0)
    >>> found = audit(lambda frame: 0 * frame["age"], world, people, "income", ["sex"], n_points=20, n_interventions=4)
    >>> found.conclusion.state
    'useless'
    """

    state: str
    headline: str
    checks: tuple[Check, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the conclusion as JSON-ready data."""
        return fields_as_data(self)


def conclude(audit: Audit) -> Conclusion:
    """Judge an audit by its limits."""
    who = as_list(audit.vcf.protected)
    use, effect, rows, spread = _use(audit), _effect(audit), _rows(audit), _spread(audit)
    checks = tuple(check for check in (use, effect, rows, spread) if check is not None)
    fails = [check is not None and not check.holds for check in (effect, rows, spread)]
    if use is not None and not use.holds:
        return Conclusion(USELESS, f"Nothing is gained by using this predictor, however little {who} moves it.", checks)
    most = _most(audit)
    if not any(fails):
        said = f"Changing {who} moves the prediction for the same row by no more than is allowed{most}"
        return Conclusion(PASSES, f"{said}{_if_right(audit)}.", checks)
    if _below_the_floor(audit, effect, rows) and not fails[2]:
        return Conclusion(UNTOLD, _untold(audit, who), checks)
    if fails[0] or audit.effects is None:
        said = f"Changing {who} moves the prediction for the same row by more than is allowed{most}."
    elif fails[1]:
        said = (
            f"Changing {who} moves too many single rows by more than is allowed; on average it moves them less{most}."
        )
    else:
        said = f"Changing {who} makes the predictions for the same row vary more than is allowed{most}."
    return Conclusion(FAILS, said, checks)


def _below_the_floor(audit: Audit, effect: Check | None, rows: Check | None) -> bool:
    """Whether every limit that is not kept is one that these rows could not show to be kept, nor to be broken."""
    floor = audit.floor
    if floor is None or effect is None or rows is None:
        return False
    on_average = effect.holds or effect.limit < floor.effect >= abs(effect.value)
    return on_average and (rows.holds or rows.limit < floor.moved >= rows.value)


def _untold(audit: Audit, who: str) -> str:
    floor, limit = audit.floor, audit.limit
    if floor is None:
        return ""
    # Disagreement falls with the root of the rows, but nobody knows how many single rows it then moves.
    times = max(2.0, (floor.effect / limit) ** 2 if limit > 0 else 2.0)
    return (
        f"These rows cannot show whether changing {who} moves predictions by no more than is allowed: two causal "
        f"models, of half of {floor.rows} rows each, disagree by {audit.unit.amount(floor.effect)} on average and move "
        f"{percent(floor.moved)} of rows for a predictor that depends on neither; more than "
        f"{math.ceil(floor.rows * times):,} rows are needed."
    )


def _most(audit: Audit) -> str:
    """The largest paired effect, however few rows show its values."""
    if audit.effects is None:
        return ""
    row = audit.effects.largest(MODEL)
    amount = audit.unit.amount(row["effect"], signed=True)
    return f": most from {row['first']} to {row['second']}, by {amount} on average"


def _if_right(audit: Audit) -> str:
    nodes = sorted({finding.node for finding in audit.vcf.doubts})
    return f", if the causal model is right, which is in doubt about {as_list(nodes)}" if nodes else ""


def explained(scores: Mapping[str, float], outcome: pd.Series) -> float:
    """1 − loss / loss of the best constant on the same rows; for labels alone, of the share of wrong ones."""
    if "r2" in scores:
        return scores["r2"]
    shares = outcome.value_counts(normalize=True).to_numpy()
    shares = shares[shares > 0]
    if "log_loss" in scores:
        constant, loss = float(-(shares * np.log(shares)).sum()), scores["log_loss"]
    else:
        constant, loss = 1 - float(shares.max()), 1 - scores["accuracy"]
    return 1 - loss / constant if constant > 0 else math.nan


def _use(audit: Audit) -> Check | None:
    outcome = audit.rows[audit.verdict.outcome]
    share = explained(audit.scores, outcome)
    if math.isnan(share):
        return None
    of_what = "the variance" if "r2" in audit.scores else "what a constant gets wrong"
    said = f"It explains {percent(max(share, 0.0))} of {of_what} on the audited rows."
    if share < 0:
        said = "It is worse than a constant on these rows."
    before = None if audit.before is None else explained(audit.before.scores, outcome)
    return Check(
        "Is it of use?",
        f"{said} At least {percent(OF_USE)} is required.",
        share >= OF_USE,
        "use",
        share,
        OF_USE,
        before,
    )


def _pair(effects: PairedEffects, measure: str, limit: float) -> pd.Series:
    """The pair of the largest effect; another one speaks where its end alone is beyond a limit."""
    table = effects.table[effects.table["model"] == MODEL]
    ends = table[[f"{measure}_low", f"{measure}_high"]].abs().max(axis=1)
    row = effects.largest(MODEL)
    other: pd.Series = table.loc[ends.idxmax()]
    return other if ends[row.name] <= limit < ends.max() else row


def _effect(audit: Audit) -> Check | None:
    if audit.effects is None:
        return None
    row, unit = _pair(audit.effects, "effect", audit.limit), audit.unit
    end = max(abs(row["effect_low"]), abs(row["effect_high"]))
    return Check(
        "Largest effect:",
        f"From {row['first']} to {row['second']}: {unit.amount(row['effect'], signed=True)} on average "
        f"(95 % interval {unit.between(row['effect_low'], row['effect_high'])}); at most {unit.amount(audit.limit)} "
        "is allowed.",
        bool(end <= audit.limit),
        "effect",
        float(row["effect"]),
        audit.limit,
        audit.pair_before(row, "effect"),
    )


def _rows(audit: Audit) -> Check | None:
    if audit.effects is None:
        return None
    allowed = audit.limits.moved_rows
    row = _pair(audit.effects, "moved", allowed)
    return Check(
        "Single rows:",
        f"From {row['first']} to {row['second']}, {percent(row['moved'])} of rows move by more than "
        f"{audit.unit.amount(audit.limit)} (95 % interval {percent(row['moved_low'])} to "
        f"{percent(row['moved_high'])}); at most {percent(allowed)} may.",
        bool(row["moved_high"] <= allowed),
        "rows",
        float(row["moved"]),
        allowed,
        audit.pair_before(row, "moved"),
    )


def _spread(audit: Audit) -> Check | None:
    """VCF, where a bound on it was set; the typical difference, where there are no pairs of values to list."""
    vcf, unit, most = audit.vcf, audit.unit, audit.limits.max_vcf
    low, high = vcf.interval
    before = None if audit.before is None else audit.before.vcf.value
    if most is not None:
        return Check(
            "Variance of counterfactuals:",
            f"{short(vcf.value)} (95 % interval {short(low)} to {short(high)}); at most {short(most)} is allowed.",
            high <= most,
            "vcf",
            vcf.value,
            most,
            before,
        )
    if audit.effects is not None:
        return None
    ends = [math.sqrt(2 * max(end, 0.0)) for end in (low, high)]
    return Check(
        "Typical difference:",
        f"{unit.amount(audit.typical)} (95 % interval {unit.between(*ends)}) between two values as they occur; at "
        f"most {unit.amount(audit.limit)} is allowed.",
        ends[1] <= audit.limit,
        "effect",
        audit.typical,
        audit.limit,
        audit.typical_before,
    )


def scores_in_words(audit: Audit) -> dict[str, str]:
    """Names and values of the predictive scores, the more telling first."""
    found = audit.scores
    said = {}
    if "accuracy" in found:
        said["right decisions"] = percent(found["accuracy"])
    if not math.isnan(found.get("r2", math.nan)):
        said["variance explained"] = percent(found["r2"]) if found["r2"] >= 0 else "none"
    if "log_loss" in found:
        said["log loss"] = decimal(found["log_loss"])
    if "mse" in found:
        said["root mean squared error"] = audit.unit.amount(math.sqrt(found["mse"]))
    return said
