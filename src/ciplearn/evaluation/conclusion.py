"""`Limits`, and the `Conclusion` that an audit comes to by them: passes, fails, useless, or cannot be told.

No other place decides what passes: the report, the command line, the workbench and the goals of a fit ask here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ciplearn._core.numbers import finite
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.wording import as_list
from ciplearn.evaluation.scores import explained
from ciplearn.evaluation.wording import MODEL, percent

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
    of_fit : float, optional
        What the fit of the audited model has kept to, in the outcome's unit: the default of ``max_effect`` then.

    Examples
    --------
    >>> from ciplearn.evaluation import Limits
    >>> Limits().effect(probability=False, deviation=20.0)
    2.0
    """

    max_effect: float | None = None
    max_vcf: float | None = None
    moved_rows: float = 0.05
    of_fit: float | None = None

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            if limit is not None:
                finite(limit, name)

    @property
    def are_defaults(self) -> bool:
        """Whether nobody has set a limit for this audit."""
        return self.max_effect is None and self.max_vcf is None

    def effect(self, *, probability: bool, deviation: float) -> float:
        """Return the limit of an effect, for probabilities or for an outcome of some standard deviation."""
        limits = (self.max_effect, self.of_fit, _PROBABILITY if probability else _DEVIATIONS * deviation)
        return next(limit for limit in limits if limit is not None)


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
    >>> from ciplearn.evaluation import Check
    >>> Check("Largest effect:", "From a to b: +3; at most 2 is allowed.", False, "effect", value=3.0, limit=2.0).holds
    False
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
        The figure that decides, beside its limit and what it was before.
    checks : tuple of Check
    advice : str
        What to do next, where the predictor does not pass.

    Examples
    --------
    >>> from ciplearn import audit, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(100, random_state=0)
    >>> audit(lambda frame: 0 * frame["age"], world, people, "income", ["sex"], n_points=20).conclusion.state
    'useless'
    """

    state: str
    headline: str
    checks: tuple[Check, ...]
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the conclusion as JSON-ready data."""
        return fields_as_data(self)


def conclude(audit: Audit) -> Conclusion:
    """Hold an audit against its limits."""
    who, most = as_list(audit.vcf.protected), _most(audit)
    use, effect, rows, spread = _use(audit), _effect(audit), _rows(audit), _spread(audit)
    checks = tuple(check for check in (use, effect, rows, spread) if check is not None)
    if use is not None and not use.holds:
        explains = "is worse than a constant" if use.value < 0 else f"explains {percent(use.value)}"
        was = _was(lambda share: percent(max(share, 0.0)), use.before)
        headline = f"The predictor is of no use, however little {who} moves it: it {explains} "
        headline += f"(at least {percent(use.limit)} is required{was})."
        return Conclusion(USELESS, headline, checks, "Give it inputs that tell more of the outcome, or allow more.")
    broken = [check for check in (effect, rows, spread) if check is not None and not check.holds]
    if not broken:
        kept = f"Changing {who} moves the prediction for the same row by no more than is allowed{most}"
        return Conclusion(PASSES, f"{kept}{_if_right(audit)}.", checks)
    if spread not in broken and _below_the_floor(audit.floor, effect, rows):
        return Conclusion(UNTOLD, _untold(audit, who, most), checks, "Audit it on more rows, or allow more.")
    advice = "Fit or repair a predictor to these limits, or allow more."
    if effect in broken or audit.effects is None:
        headline = f"Changing {who} moves the prediction for the same row by more than is allowed{most}."
    elif rows in broken:
        moved = _moved(audit, audit.effects)
        headline = f"Changing {who} moves too many single rows by more than is allowed: {moved}. On average it moves "
        headline += f"them less{most}."
    else:
        headline = (
            f"Changing {who} makes the predictions for the same row vary more than is allowed{_typically(audit)}."
        )
    return Conclusion(FAILS, headline, checks, advice)


def _below_the_floor(floor: Floor | None, effect: Check | None, rows: Check | None) -> bool:
    """Whether every limit that is not kept is one that these rows could not show to be kept, nor to be broken."""
    if floor is None or effect is None or rows is None:
        return False
    on_average = effect.holds or effect.limit < floor.effect >= abs(effect.value)
    return on_average and (rows.holds or rows.limit < floor.moved >= rows.value)


def _untold(audit: Audit, who: str, most: str) -> str:
    floor = audit.floor or Floor(math.nan, math.nan, 0)
    # Disagreement falls with the root of the rows, but nobody knows how many single rows it then moves.
    times = max(2.0, (floor.effect / audit.limit) ** 2 if audit.limit > 0 else 2.0)
    return (
        f"These rows cannot show whether changing {who} moves predictions by no more than is allowed{most}. Two causal "
        f"models, of half of {floor.rows} rows each, disagree by {audit.unit.amount(floor.effect)} on average and move "
        f"{percent(floor.moved)} of rows for a predictor that depends on neither; more than "
        f"{math.ceil(floor.rows * times):,} rows are needed."
    )


def _was(write: Callable[[float], str], before: float | None) -> str:
    """What a figure was before, to stand behind its limit."""
    return "" if before is None or math.isnan(before) else f", {write(before)} before"


def _most(audit: Audit) -> str:
    """The effect that decides, beside its limit: the largest, or one whose interval alone is too wide."""
    unit = audit.unit
    if audit.effects is None:
        return _typically(audit)
    row = _pair(audit.effects, "effect", audit.limit)
    end = max(row["effect_low"], row["effect_high"], key=abs)
    which, reaches = "most ", ""
    if abs(row["effect"]) <= audit.limit < abs(end):
        which, reaches = "", f"up to {unit.amount(end, signed=True)} by its interval; "
    was = _was(lambda effect: unit.amount(effect, signed=True), audit.pair_before(row, "effect"))
    return (
        f": {which}from {row['first']} to {row['second']}, by {unit.amount(row['effect'], signed=True)} on average "
        f"({reaches}{unit.allowed(audit.limit)}{was})"
    )


def _typically(audit: Audit) -> str:
    """The typical difference beside its limit, and the end of its interval where that is beyond."""
    amount, limit = audit.unit.amount, _typical_limit(audit)
    end = math.sqrt(2 * max(audit.vcf.interval[1], 0.0))
    reaches = f", up to {amount(end)} by its interval" if end > limit else ""
    was = _was(amount, audit.typical_before)
    return f": typically by {amount(audit.typical)}{reaches} ({audit.unit.allowed(limit)}{was})"


def _typical_limit(audit: Audit) -> float:
    """How large √(2 VCF) may be: by the bound on VCF where one was set."""
    most = audit.limits.max_vcf
    return audit.limit if most is None else math.sqrt(2 * max(most, 0.0))


def _moved(audit: Audit, effects: PairedEffects) -> str:
    """The share of single rows that move too far, beside its limit."""
    row = _pair(effects, "moved", audit.limits.moved_rows)
    reaches = "" if row["moved"] > audit.limits.moved_rows else f"up to {percent(row['moved_high'])} by its interval; "
    was = _was(percent, audit.pair_before(row, "moved"))
    return (
        f"{percent(row['moved'])} of them from {row['first']} to {row['second']} ({reaches}"
        f"{percent(audit.limits.moved_rows)} may{was})"
    )


def _if_right(audit: Audit) -> str:
    nodes = sorted({finding.node for finding in audit.vcf.doubts})
    return f", if the causal model is right, which is in doubt about {as_list(nodes)}" if nodes else ""


def _use(audit: Audit) -> Check | None:
    outcome = audit.rows[audit.verdict.outcome]
    share = explained(audit.scores, outcome)
    if math.isnan(share):
        return None
    required = f"at least {100 * OF_USE:g} % is required."
    if share < 0:
        said = f"It is worse than a constant on these rows; {required}"
    elif "r2" in audit.scores:
        said = f"It explains {percent(share)} of the variance on the audited rows; {required}"
    else:
        # A good classifier, too, takes only a part off the log loss: rates that everybody can read come first.
        measure = "log loss" if "log_loss" in audit.scores else "share of wrong decisions"
        said = (
            f"It decides {percent(audit.scores['accuracy'])} of the audited rows rightly, a constant "
            f"{percent(outcome.value_counts(normalize=True).max())}; its {measure} is {percent(share)} below a "
            f"constant's, {required}"
        )
    before = None if audit.before is None else explained(audit.before.scores, outcome)
    return Check("Is it of use?", said, share >= OF_USE, "use", share, OF_USE, before)


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
        f"(95 % interval {unit.between(row['effect_low'], row['effect_high'])}); at most "
        f"{unit.allowed(audit.limit)}.",
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
    """The typical difference √(2 VCF), where a bound on VCF was set or there are no pairs of values to list."""
    vcf, unit, most = audit.vcf, audit.unit, audit.limits.max_vcf
    if most is None and audit.effects is not None:
        return None
    limit = _typical_limit(audit)
    ends = [math.sqrt(2 * max(end, 0.0)) for end in vcf.interval]
    said = (
        f"{unit.amount(audit.typical)} (95 % interval {unit.between(*ends)}) between two values as they occur; at "
        f"most {unit.allowed(limit)}."
    )
    name, before = "Typical difference:", audit.before
    if most is None:
        return Check(name, said, ends[1] <= limit, "effect", audit.typical, limit, audit.typical_before)
    return Check(
        name, said, vcf.interval[1] <= most, "vcf", vcf.value, most, None if before is None else before.vcf.value
    )
