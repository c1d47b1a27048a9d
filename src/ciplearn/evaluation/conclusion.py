"""`Limits`, and the `Conclusion` that an audit comes to by them: passes, fails, useless, or cannot be told.

No other place decides what passes: the report, the command line, the workbench and the goals of a fit ask here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ciplearn._core.arguments import finite
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.wording import as_list
from ciplearn.evaluation.scores import MODEL, NORMAL_ERRORS, decimal, explained, percent, wilson
from ciplearn.evaluation.vcf_result import typical

if TYPE_CHECKING:
    from ciplearn.evaluation.auditing import Audit
    from ciplearn.evaluation.effects import PairedEffects

PASSES, FAILS, USELESS, UNTOLD = "passes", "fails", "useless", "cannot be told"
OF_USE = 0.01  # a predictor that explains less than this of what a constant leaves open is of no use

# By default a probability may move by so much, and another prediction by this part of the outcome's deviation.
_PROBABILITY, _DEVIATIONS = 0.05, 0.1


@dataclass(frozen=True)
class Limits:
    """What an audit allows.

    Attributes
    ----------
    max_effect : float, optional
        How far predictions may move between two protected values: on average, and for all but the share ``moved_rows``
        of rows. By default 0.05 for probabilities, else a tenth of the outcome's standard deviation.
    max_vcf : float, optional
        How large VCF may be; it is not asked about by default.
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
    chance. Less than that nobody can tell, and nothing is trained against it. ``effect`` is its largest average effect
    under the other model, up to the end of the interval, and of a repair √(2 VCF); ``moved`` the share of rows that it
    moves by more than the limit, NaN where nobody knows; ``rows`` what the models were estimated from, half of them
    each; ``left``, of a repair, the VCF that is left as a share of the model's own.

    >>> from ciplearn.evaluation import Floor
    >>> Floor(effect=1.3, moved=0.2, rows=400).effect > 1.0
    True
    """

    effect: float
    moved: float
    rows: int
    left: float = math.nan

    def __str__(self) -> str:
        share = "" if math.isnan(self.left) else f" ({100 * self.left:.0f} % of the model's VCF)"
        return (
            f"Two causal models of {self.rows // 2} rows each disagree by {self.effect:.2g} about a strictly invariant "
            f"prediction{share}: on so few rows nobody can tell less."
        )


@dataclass(frozen=True)
class Check:
    """One thing that was asked of the predictor: ``"use"``, ``"effect"``, ``"rows"`` or ``"vcf"``.

    ``name`` and ``sentence`` are the question, and the answer with its number and its limit; ``before`` is what the
    predictor that was trained for accuracy alone, where there is one, has for a ``value``.

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
    """What an audit comes to.

    Its ``state`` is ``"useless"`` where the predictor is hardly better than a constant; else ``"passes"`` where the
    ends of all intervals keep to the limits; ``"cannot be told"`` where one does not, and the rows could not show that
    of any predictor; else ``"fails"``. The ``headline`` is the figure that decides, beside its limit and what it was
    before, the ``advice`` what to do next where the predictor does not pass.

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
    who, use, effects = as_list(audit.vcf.protected), _use(audit), audit.effects
    spread, typically = _spread(audit)
    effect, rows, most, moved = None, None, typically, ""
    if effects is not None:
        effect, most = _effect(audit, effects)
        rows, moved = _rows(audit, effects)
    counted = spread if effects is None or audit.limits.max_vcf is not None else None
    checks = tuple(check for check in (use, effect, rows, counted) if check is not None)
    broken = [check for check in checks if check is not use and not check.holds]
    if use is not None and not use.holds:
        explains = "is worse than a constant" if use.value < 0 else f"explains {percent(use.value)}"
        was = _was(lambda share: percent(max(share, 0.0)), use.before)
        headline = f"The predictor is of no use, however little {who} moves it: it {explains} "
        headline += f"(at least {percent(use.limit)} is required{was})."
        return Conclusion(USELESS, headline, checks, "Give it inputs that tell more of the outcome, or allow more.")
    if not broken:
        nodes = sorted({finding.node for finding in audit.vcf.doubts})
        doubt = f", if the causal model is right, which is in doubt about {as_list(nodes)}" if nodes else ""
        kept = f"Changing {who} moves the prediction for the same row by no more than is allowed{most}{doubt}."
        return Conclusion(PASSES, kept, checks)
    floor = audit.floor
    if floor is not None and spread not in broken and effect is not None and rows is not None:
        # Whether every limit that is not kept is one that these rows could not show to be kept, nor to be broken.
        on_average = effect.holds or effect.limit < floor.effect >= abs(effect.value)
        if on_average and (rows.holds or rows.limit < floor.moved >= rows.value):
            untold = _untold(audit, floor, who, most)
            least = f" than {audit.unit.amount(floor.effect)}" if floor.effect >= audit.limit else ""
            return Conclusion(UNTOLD, untold, checks, f"Fit and audit on more rows, or allow more{least}.")
    if (few := too_few_rows(audit)) and rows is not None and broken == [rows] and rows.value <= rows.limit:
        return Conclusion(UNTOLD, f"{few[0]} On average rows keep to the limit{most}.", checks, few[1])
    if effect in broken or effects is None:
        headline = f"Changing {who} moves the prediction for the same row by more than is allowed{most}."
    elif rows in broken:
        headline = f"Changing {who} moves too many single rows by more than is allowed: {moved}. Taken "
        headline += f"together, rows move less{most}."
    else:
        headline = f"Changing {who} makes the predictions for the same row vary more than is allowed{typically}."
    return Conclusion(FAILS, headline, checks, "Fit or repair a predictor to these limits, or allow more.")


def too_few_rows(audit: Audit) -> tuple[str, str] | None:
    """Why no model passes on so few rows, whatever it says, and what to do; None where one may."""
    # Means over draws are worth more than one trial each: then the interval may be narrower.
    if audit.effects is None or audit.vcf.n_draws > 1:
        return None
    n, allowed = audit.effects.n_points, audit.limits.moved_rows
    end = wilson(0.0, n)[1]
    if not 0 < allowed < end:
        return None
    why = f"No model can pass on {n} rows: even where none of them moves, up to {percent(end)} of all may"
    enough = math.ceil(NORMAL_ERRORS**2 * (1 / allowed - 1))
    return f"{why} ({percent(allowed)} is allowed).", f"Audit at least {enough} rows."


# Beyond this ratio of disagreement and limit no table is long enough.
_TOO_FAR = 1e6


def _untold(audit: Audit, floor: Floor, who: str, most: str) -> str:
    # Disagreement falls with the root of the rows, but nobody knows how many single rows it then moves.
    ratio = floor.effect / audit.limit if audit.limit > 0 else 0.0
    # A limit far below would make a figure of hundreds of digits.
    needed = "More rows than any table has"
    if ratio < _TOO_FAR:
        needed = f"More than {decimal(math.ceil(floor.rows * max(2.0, ratio**2)), 0)} rows"
    return (
        f"These rows cannot show whether changing {who} moves predictions by no more than is allowed{most}. A "
        f"prediction made from half of {decimal(floor.rows, 0)} rows so as not to follow {who} still moves by "
        f"{audit.unit.amount(floor.effect)} on average when the other half judges it, and by more than "
        f"is allowed for {percent(floor.moved)} of rows. {needed} are needed."
    )


def _was(write: Callable[[float], str], before: float | None) -> str:
    """What a figure was before, to stand behind its limit."""
    return "" if before is None or math.isnan(before) else f", {write(before)} before"


def _use(audit: Audit) -> Check | None:
    outcome = audit.rows[audit.verdict.outcome]
    share = explained(audit.scores, outcome)
    if math.isnan(share):
        return None
    if share < 0:
        sentence = "It is worse than a constant on these rows;"
    elif "r2" in audit.scores:
        sentence = f"It explains {percent(share)} of the variance on the audited rows;"
    else:
        # A good classifier, too, takes only a part off the log loss: rates that everybody can read come first.
        measure = "log loss" if "log_loss" in audit.scores else "share of wrong decisions"
        sentence = (
            f"It decides {percent(audit.scores['accuracy'])} of the audited rows rightly, a constant "
            f"{percent(outcome.value_counts(normalize=True).max())}; its {measure} is {percent(share)} below a "
            "constant's,"
        )
    sentence += f" at least {100 * OF_USE:g} % is required."
    before = None if audit.before is None else explained(audit.before.scores, outcome)
    return Check("Is it of use?", sentence, share >= OF_USE, "use", share, OF_USE, before)


def _pair(effects: PairedEffects, measure: str, limit: float) -> pd.Series:
    """The pair of the largest effect; another one speaks where its end alone is beyond a limit."""
    table = effects.table[effects.table["model"] == MODEL]
    ends = table[[f"{measure}_low", f"{measure}_high"]].abs().max(axis=1)
    row = effects.largest(MODEL)
    return table.loc[ends.idxmax()] if ends[row.name] <= limit < ends.max() else row


# Each of the next three returns a check, and the figure that decides beside its limit, as it stands in a headline.


def _effect(audit: Audit, effects: PairedEffects) -> tuple[Check, str]:
    limit, unit = audit.limit, audit.unit
    row = _pair(effects, "effect", limit)
    before, amount = audit.pair_before(row, "effect"), unit.amount(row["effect"], signed=True)
    low, high = row["effect_low"], row["effect_high"]
    end = max(low, high, key=abs)
    sentence = (
        f"From {row['first']} to {row['second']}: {amount} on average (95 % interval {unit.between(low, high)}"
        f"{_on_top(audit)}); at most {unit.allowed(limit)}."
    )
    # The largest effect decides, or one whose interval alone is too wide.
    which, reaches = "most ", ""
    if abs(row["effect"]) <= limit < abs(end):
        which, reaches = "", f"up to {unit.amount(end, signed=True)} by its interval; "
    was = _was(lambda effect: unit.amount(effect, signed=True), before)
    most = f": {which}from {row['first']} to {row['second']}, by {amount} on average "
    most += f"({reaches}{unit.allowed(limit)}{was})"
    holds = bool(abs(end) <= limit)
    return Check("Largest effect:", sentence, holds, "effect", float(row["effect"]), limit, before), most


def _on_top(audit: Audit) -> str:
    """What an interval leaves out, where people read it."""
    if not audit.model_based:
        return ""
    size = "" if audit.floor is None else f" by about {audit.unit.amount(audit.floor.effect)}"
    return f"; beyond it, the causal model itself may be wrong{size}"


def _rows(audit: Audit, effects: PairedEffects) -> tuple[Check, str]:
    allowed = audit.limits.moved_rows
    row = _pair(effects, "moved", allowed)
    before, pair = audit.pair_before(row, "moved"), f"{row['first']} to {row['second']}"
    share, low, high = (percent(row[f"moved{end}"]) for end in ("", "_low", "_high"))
    sentence = (
        f"From {pair}, {share} of rows move by more than {audit.unit.amount(audit.limit)} (95 % interval {low} to "
        f"{high}); at most {percent(allowed)} may."
    )
    reaches = "" if row["moved"] > allowed else f"up to {high} by its interval; "
    moved = f"{share} of them from {pair} ({reaches}{percent(allowed)} may{_was(percent, before)})"
    holds = bool(row["moved_high"] <= allowed)
    return Check("Single rows:", sentence, holds, "rows", float(row["moved"]), allowed, before), moved


def _spread(audit: Audit) -> tuple[Check, str]:
    """√(2 VCF), which is asked about where a bound on VCF was set or there are no pairs of values to list."""
    vcf, unit, most, before = audit.vcf, audit.unit, audit.limits.max_vcf, audit.before
    limit = audit.limit if most is None else typical(most)
    low, high = map(typical, vcf.interval)
    sentence = (
        f"{unit.amount(vcf.typical)} (95 % interval {unit.between(low, high)}{_on_top(audit)}) between two values as "
        f"they occur; at most {unit.allowed(limit)}."
    )
    reaches = f", up to {unit.amount(high)} by its interval" if high > limit else ""
    was = _was(unit.amount, audit.typical_before)
    typically = f": typically by {unit.amount(vcf.typical)}{reaches} ({unit.allowed(limit)}{was})"
    measured = (high <= limit, "effect", vcf.typical, limit, audit.typical_before)
    if most is not None:
        measured = (vcf.interval[1] <= most, "vcf", vcf.value, most, None if before is None else before.vcf.value)
    return Check("Typical difference:", sentence, *measured), typically
