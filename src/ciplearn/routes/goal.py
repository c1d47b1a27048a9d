"""What is asked of a predictor, and which candidate is taken for it.

A goal is a limit that must be met at the least loss, or a tolerance within which predictions shall vary least. What is
measured on the rows that judge is known up to chance, so bounds have to keep to a goal, not estimates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from ciplearn._core.arguments import share as checked_share
from ciplearn.estimators.criteria import Judged, loss
from ciplearn.evaluation.conclusion import OF_USE, Limits
from ciplearn.evaluation.scores import NORMAL_ERRORS, Unit, percent, wilson
from ciplearn.routes.judging import Measured, PairEffect
from ciplearn.routes.route import BASELINE, FREE, blindly

# How the first three were settled: `benchmarks/goals.py`.
_FAR_BETTER = 1.5  # what explains so many times as much is taken, although it varies more
_VCF_ALIKE = 1.25  # candidates that vary by at most so many times the least of them are not told apart
_VCF_LEFT = 0.1  # a candidate that keeps so little of the unconstrained predictor's VCF varies little
_NEARLY_STRICT = 19.0  # a twentieth of an effect is left where the protected variables have no causes
_NEXT_TO_NONE = 0.25  # an average effect below this share of the limit
_SURE = 1.2816  # one-sided: nine audits in ten of what is taken keep to the limits

# Two halves that judge each other err in opposite directions, so that the variance between them is twice a square.
_OF_AN_AUDIT = 5 / 8


@dataclass(frozen=True, eq=False)
class Field:
    """All candidates, measured."""

    table: pd.DataFrame  # one row per candidate, under its name
    measured: Mapping[str, Measured]
    free: str  # the best predictor without a constraint: "left" and "instead of" are relative to it
    unit: Unit  # how amounts of a prediction are written
    limit: float  # how far a prediction may move
    audited: int  # how many rows an audit will have
    standing: Mapping[str, int]  # of routes that rest on no estimated causal model, the first one zero

    def explained(self, name: str) -> float:
        """Return 1 − loss / loss of a constant."""
        return explained(self.measured[name].judged)

    def worst(self, name: str) -> PairEffect | None:
        """Return the pair of values that moves predictions most on average."""
        return max(self.measured[name].pairs, key=lambda pair: abs(pair.effect), default=None)

    def ends(self, name: str) -> tuple[float, float]:
        """Return where an audit's intervals will end, nine times in ten: of the largest effect, and of rows moved."""
        pairs = self.measured[name].pairs
        if not pairs:
            return math.sqrt(2 * max(self.measured[name].vcf, 0.0)), math.nan
        floors = [one.deviation for one in self.measured[self.strict(name)].pairs]
        ends = [self._ends(pair, floor) for pair, floor in zip(pairs, floors, strict=True)]
        return max(effect for effect, _ in ends), max(moved for _, moved in ends)

    def strict(self, name: str) -> str:
        """Return the strict end beside a candidate, or the candidate itself where there is none."""
        return strict_end(self.table, self.table.loc[name, "learner"]) or name

    def _ends(self, pair: PairEffect, floor: float) -> tuple[float, float]:
        """Allow for chance in both sets of rows, and for the causal model of the audit, which is another one again."""
        own, theirs = (pair.deviation / math.sqrt(rows) for rows in (pair.rows, self.audited))
        # Models of two halves differ by a variance of 4 σ² / n, that of an audit of n / 4 rows from ours by 5 σ² / n.
        # One difference says little, so half of what single rows disagree by is taken at least.
        disagreement = max(_OF_AN_AUDIT * pair.between, (floor / 2) ** 2)
        effect = abs(pair.effect) + _SURE * math.sqrt(own**2 + theirs**2 + disagreement) + NORMAL_ERRORS * theirs
        moved = max(pair.moved, float((np.abs(pair.each) + _SURE * math.sqrt(disagreement) > self.limit).mean()))
        chance = math.sqrt(moved * (1 - moved) * (1 / pair.rows + 1 / self.audited))
        return effect, wilson(min(1.0, moved + _SURE * chance), self.audited)[1]


def strict_end(table: pd.DataFrame, learner: str) -> str | None:
    """Return the predictor of a learner that is the same in every world of its causal model.

    What it still moves by under another model is how far two causal models of such rows disagree. Where rows leave
    noise open, the ends of other paths still follow the row: only what was repaired blindly, whoever learnt it, is
    strict.
    """
    ends = dict(table.loc[table["strict"], ["learner", "name"]].itertuples(index=False))
    blind = [path for path in map(blindly, table["learner"]) if path in ends]
    paths = (learner, *blind) if learner in blind else (blindly(learner), *blind, learner)
    return next((ends[path] for path in paths if path in ends), None)


@dataclass(frozen=True)
class Choice:
    """What a goal comes to."""

    name: str  # of the candidate that is taken
    met: bool  # whether it keeps to the goal
    reason: str
    notes: tuple[str, ...] = ()


class Goal(ABC):
    """What is asked of a predictor: `WithinLimits`, `ShareOfVCF`, `Strict` or `Tolerance`.

    Examples
    --------
    >>> from ciplearn.routes import Goal, Strict
    >>> isinstance(Strict(), Goal)
    True
    """

    # Whether paired effects have to be measured.
    needs_effects: ClassVar[bool] = False

    @abstractmethod
    def allows(self, field: Field) -> pd.Series:
        """Return, by name, which candidates keep to the goal."""

    @abstractmethod
    def pick(self, field: Field) -> Choice:
        """Take one candidate; ``field.table`` has a column ``allowed``."""

    def broken(self, field: Field, name: str) -> str:
        """Return the bound by which a candidate breaks the goal, in words; nothing where the table shows it."""
        return ""

    def goes_on(self, judged: Judged, free: Judged) -> bool:
        """Whether a stronger candidate than this one could still be taken."""
        return True


@dataclass(frozen=True)
class WithinLimits(Goal):
    """The least loss among predictors that an audit will pass.

    Examples
    --------
    >>> from ciplearn.evaluation import Limits
    >>> from ciplearn.routes import WithinLimits
    >>> WithinLimits(Limits(max_effect=2)).limits.moved_rows
    0.05
    """

    limits: Limits = field(default_factory=Limits)
    needs_effects: ClassVar[bool] = True

    def allows(self, field: Field) -> pd.Series:
        """Keep candidates whose bounds are within the limits."""
        return pd.Series({name: _excess(field, name, self.limits) <= 1 for name in field.table.index})

    def broken(self, field: Field, name: str) -> str:
        """Return the end of an audit's intervals that is beyond its limit."""
        effect, moved = field.ends(name)
        if effect > field.limit:
            return f"effect up to {field.unit.amount(effect)}"
        return f"up to {percent(moved)} of rows move" if moved > self.limits.moved_rows else ""

    def pick(self, field: Field) -> Choice:
        """Take the least loss within the limits, or what comes nearest to them."""
        table = _takeable(field)
        if table["vcf"].isna().all():
            return _unjudged(field)
        useful = table[[field.explained(name) >= OF_USE for name in table.index]]
        meeting = useful[useful["allowed"]]
        if len(meeting):
            name = _strictest(field, meeting)
            # Limits that somebody has named are kept at any price; those of the house are not worth a useless model.
            far_better = self._far_better(field, useful, name) if self.limits.are_defaults else None
            if far_better is None:
                reason = f"Meets the limits{_how_far(field, name)}; {_price(field, name)}."
                return Choice(name, True, reason, _half(field, name))
            reason = (
                f"The best candidate that these rows show to meet the limits is {name}: {_price(field, name)}. Taken "
                f"instead: {far_better}, whose differences are typically within the limit"
                f"{_how_far(field, far_better)}; {_price(field, far_better)}. Name the limit, "
                f"--max-effect {field.limit:.3g} or max_effect={field.limit:.3g}, to have it kept at any price."
            )
            return Choice(far_better, False, reason, _half(field, far_better))
        if useful.empty:
            name = _strictest(field, table[table["allowed"]]) if table["allowed"].any() else self._nearest(field, table)
            return Choice(name, False, "No predictor of these columns is better than a constant; add inputs, or rows.")
        name = _at_the_floor(field, useful, self.limits.moved_rows) or self._nearest(field, useful)
        name = self._far_better(field, useful, name) or name
        cost = f"{_how_far(field, name)}; {_price(field, name)}."
        if table["allowed"].any():
            reason = "Only predictors that are of no use meet the limits; the nearest useful one is taken"
            return Choice(name, False, reason + cost)
        if strict_end(field.table, field.table.loc[name, "learner"]) is None:
            reason = f"No candidate is shown to meet the limits. The nearest is taken: {name}{cost}"
            return Choice(name, False, reason, _half(field, name))
        effect, _ = field.ends(field.strict(name))
        reason = (
            "These rows cannot show that the limits are met: a prediction made from half of them so as not to follow "
            f"what is protected still moves by up to {field.unit.amount(effect)} on average when the other half judges "
            f"it. Taken: {name}{cost}"
        )
        return Choice(name, False, reason, _half(field, name))

    def _nearest(self, field: Field, table: pd.DataFrame) -> str:
        """The candidate whose bounds exceed the limits by least; of several, the one that varies least."""
        return str(min(table.index, key=lambda name: (_excess(field, name, self.limits), table.loc[name, "vcf"])))

    def _far_better(self, field: Field, useful: pd.DataFrame, name: str) -> str | None:
        """A nearly strict candidate that explains half as much again and varies little, as far as estimates tell."""
        near = useful[useful["strength"] >= _NEARLY_STRICT]
        little = (near["vcf"].map(_reach) <= field.limit) | (near["vcf"] <= _VCF_LEFT * field.measured[field.free].vcf)
        # One that moves more single rows than a strict predictor would is shown to break the limit on these.
        moved = [max(self.limits.moved_rows, field.ends(field.strict(one))[1]) for one in near.index]
        near = near[little & (near["effect"].abs() <= field.limit) & ~(near["moved"] > moved)]
        if near.empty:
            return None
        best = str(near["loss"].idxmin())
        return best if field.explained(best) >= _FAR_BETTER * field.explained(name) else None


@dataclass(frozen=True)
class ShareOfVCF(Goal):
    """The least loss among predictors that keep at most a share of the unconstrained predictor's VCF.

    Examples
    --------
    >>> from ciplearn.routes import ShareOfVCF
    >>> ShareOfVCF(0.05)
    ShareOfVCF(share=0.05)
    """

    share: float

    def __post_init__(self) -> None:
        checked_share(self.share, "vcf")

    def allows(self, field: Field) -> pd.Series:
        """Keep candidates with little enough VCF."""
        return field.table["vcf"] <= self.share * field.table.loc[field.free, "vcf"]

    def pick(self, field: Field) -> Choice:
        """Take the least loss, or the least VCF where none is little enough."""
        table = _takeable(field)
        if table["vcf"].isna().all():
            return _unjudged(field)
        meeting = table[table["allowed"]]
        name = str(meeting["loss"].idxmin() if len(meeting) else table["vcf"].idxmin())
        left = table.loc[name, "vcf"] / field.table.loc[field.free, "vcf"]
        said = "Keeps" if len(meeting) else f"No candidate keeps as little as {percent(self.share)}; the nearest keeps"
        reason = f"{said} {percent(left)} of VCF; {_price(field, name)}."
        return Choice(name, bool(len(meeting)), reason, _half(field, name))


@dataclass(frozen=True)
class Strict(Goal):
    """The least loss among the strict ends of all paths.

    Examples
    --------
    >>> from ciplearn import CIPRegressor, compare_routes, datasets
    >>> from ciplearn.learners import Linear
    >>> from ciplearn.routes import Strict
    >>> world = datasets.applicants()
    >>> people = world.sample(400, random_state=0)
    >>> model = CIPRegressor(graph=world.graph, outcome="income", protected=["sex"], random_state=0)
    >>> more = {"routes": ["repair"], "learners": {"linear": Linear()}, "baselines": False, "cv": 2}
    >>> compare_routes(model, people.drop(columns="income"), people["income"], Strict(), **more).chosen
    'linear, repaired at full strength'
    """

    def allows(self, field: Field) -> pd.Series:
        """Keep the strict ends."""
        return (field.table["strength"] == np.inf) | (field.table["share"] == 0)

    def pick(self, field: Field) -> Choice:
        """Take the strict end of least loss."""
        table = _takeable(field)
        strict = table[table["allowed"]]
        if strict.empty:
            return _unjudged(field)
        name = str(strict["loss"].idxmin())
        left = strict.loc[name, "vcf"] / max(field.measured[field.free].vcf, 1e-300)
        kept = "" if math.isnan(left) else f" ({percent(min(1.0, left))} of VCF is left under the other causal model)"
        return Choice(name, True, f"As strict as its route allows{kept}; {_price(field, name)}.")


def _unjudged(field: Field) -> Choice:
    """Without a causal model nothing is shown: the protected columns are left out where they are among the inputs."""
    table = _takeable(field)
    name = str(table["loss"].idxmin()) if len(table) else field.free
    said = "its predictions may still follow" if len(table) else "nothing keeps its predictions from following"
    reason = (
        f"No route to the goal could be judged, so nothing is shown. Taken: {name}; {said} the protected variables, "
        f"and {_price(field, name)}. With --tolerance routes that rest on the graph alone are tried."
    )
    return Choice(name, False, reason)


def explained(judged: Judged) -> float:
    """Return 1 − loss / loss of a constant on the same rows."""
    constant = loss(judged.of_constant())
    return 1 - loss(judged) / constant if constant > 0 else 0.0


def _takeable(field: Field) -> pd.DataFrame:
    """Candidates of a route: baselines are shown, and a predictor without a constraint is no answer."""
    table = field.table
    return table[~table["kind"].isin((FREE, BASELINE)) & ~table["shrinks"]]


def _excess(field: Field, name: str, limits: Limits) -> float:
    """How far the bounds of a candidate reach, as a multiple of the limits."""
    (effect, moved), vcf = field.ends(name), field.measured[name].vcf
    parts = [_ratio(effect, field.limit)]
    parts += [] if math.isnan(moved) else [_ratio(moved, limits.moved_rows)]
    parts += [] if limits.max_vcf is None else [_ratio(vcf, limits.max_vcf)]
    return math.inf if math.isnan(vcf) else max(parts)


def _ratio(value: float, limit: float) -> float:
    return value / limit if limit > 0 else (math.inf if value > 0 else 0.0)


def _strictest(field: Field, table: pd.DataFrame) -> str:
    """The least VCF among candidates whose loss is not told apart from the least: within one standard error of it."""
    least = field.measured[str(table["loss"].idxmin())].judged.losses()
    more = {name: field.measured[name].judged.losses() - least for name in table.index}
    alike = [name for name, each in more.items() if each.mean() <= each.std() / math.sqrt(len(each))]
    return str(table.loc[alike, "vcf"].idxmin())


def _reach(vcf: float) -> float:
    """How far 95 % of rows move at most, if differences are normal: they deviate by √(2 VCF)."""
    return NORMAL_ERRORS * math.sqrt(2 * max(vcf, 0.0))


def _at_the_floor(field: Field, useful: pd.DataFrame, moved_rows: float) -> str | None:
    """The least loss among repaired predictors that are nearly strict: what more strength would buy cannot be seen."""
    near = useful["strength"] >= _NEARLY_STRICT
    least = useful.loc[near, "vcf"].min()
    # A simpler predictor that varies as little, and hardly on average, is worth more than strength.
    simpler = useful["strength"].isna() & (useful["effect"].abs() <= _NEXT_TO_NONE * field.limit)
    # Predictors that keep as many rows within the limit as have to be are not told apart by how much they vary.
    within = (useful["moved"] <= moved_rows).where(useful["moved"].notna(), useful["vcf"].map(_reach) <= field.limit)
    alike = within | (useful["vcf"] <= _VCF_ALIKE * least)
    # Where A moves little, imagined worlds err by more: then a weak repair varies less than all strict ones.
    taken = useful[((near | simpler) & alike) | (useful["vcf"] <= least)]
    return str(taken["loss"].idxmin()) if len(taken) else None


def _how_far(field: Field, name: str) -> str:
    """The largest effect, with what it was before."""
    pair, before = field.worst(name), field.worst(field.free)
    if pair is None or before is None:
        return ""
    amount = field.unit.amount
    return (
        f" (largest effect {amount(abs(pair.effect))}, {amount(abs(before.effect))} without a constraint, "
        f"{amount(field.limit)} allowed; {percent(pair.moved)} of rows move by more than that)"
    )


def _price(field: Field, name: str) -> str:
    now, before = (percent(max(0.0, field.explained(one))) for one in (name, field.free))
    if field.unit.probability:
        # A share of log loss is small for good models, too: it is not called what a model explains.
        return f"its log loss is {now} below a constant's, {before} without a constraint"
    return f"it explains {now} instead of {before}"


def _half(field: Field, name: str) -> tuple[str, ...]:
    """What half of the price would buy, on the same path."""
    table, own = field.table, field.table.loc[name]
    path = table[(table["kind"] == own["kind"]) & (table["learner"] == own["learner"])]
    middle = (field.explained(name) + field.explained(field.free)) / 2
    cheaper = [other for other in path.index if field.explained(other) >= middle]
    if not cheaper or field.explained(field.free) - field.explained(name) < OF_USE:
        return ()
    least = min(cheaper, key=lambda other: field.measured[other].vcf)
    pair = field.worst(least)
    left = percent(min(1.0, field.measured[least].vcf / max(field.measured[field.free].vcf, 1e-300)))
    moves = ""
    if pair is not None:
        moved = percent(max(each.moved for each in field.measured[least].pairs))
        effect, limit = field.unit.amount(abs(pair.effect)), field.unit.amount(field.limit)
        moves = f" and a largest effect of {effect}; it moves {moved} of rows by more than {limit}"
    return (f"A model that gives up half as much accuracy would keep {left} of VCF{moves}.",)
