"""How wrong may it be: answers of the checks on graph and model, as they stand on the page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ciplearn.doubt import Falsification, Sensitivity
from ciplearn.evaluation.bounds import VCFBounds
from ciplearn.report.marks import Mark, Strip

if TYPE_CHECKING:
    from ciplearn.report.content import Report

# Changes of the graph that are shown.
_MOST_CHANGES = 8


@dataclass(frozen=True)
class Doubt:
    """A question, its answer in words, and what stands below it.

    Attributes
    ----------
    question, answer : str
    changes : tuple of (change, strip, typical difference, refuted, other verdict)
        The changes of the graph that move the predictions most: a tornado.
    tests : tuple of dict
        The independencies that were tested.
    """

    question: str
    answer: str
    changes: tuple[tuple[str, Markup, str, bool, bool], ...] = ()
    tests: tuple[dict[str, Any], ...] = ()


def doubts(report: Report) -> list[Doubt]:
    """Return what was asked, and what the rows alone say."""
    found = []
    if report.audit.bounds is not None:
        found.append(Doubt("What the rows say without a causal model", _beside_bounds(report, report.audit.bounds)))
    for question, answer in report.doubts.items():
        changes = _tornado(answer, report) if isinstance(answer, Sensitivity) else ()
        tests = tuple(answer.to_dict()["tests"]) if isinstance(answer, Falsification) else ()
        found.append(Doubt(question, str(answer), changes, tests))
    return found


def _beside_bounds(report: Report, bounds: VCFBounds) -> str:
    """Bounds on VCF as bounds on the typical difference √(2 VCF), beside that of the causal model."""
    vcf, amount = report.audit.vcf, report.unit.amount
    low, high = (math.sqrt(2 * max(0.0, end)) for end in bounds.interval)
    ours = f"the causal model's typical difference of {amount(report.typical)}"
    if bounds.alarm:
        return f"{bounds} So the rows can neither confirm nor contradict {ours}."
    ours = ours.capitalize()
    between = f"without any causal model, the rows put it between {amount(low)} and {amount(high)}"
    if bounds.contradicts(vcf):
        which = "less" if vcf.interval[1] < bounds.interval[0] else "more"
        return f"{ours} is {which} than the rows allow: {between}. Do not trust the model's counterfactuals."
    return f"{ours} agrees with the rows: {between}."


def _tornado(answer: Sensitivity, report: Report) -> tuple[tuple[str, Markup, str, bool, bool], ...]:
    """The changes that move the typical difference most; a bar runs there from the graph as drawn."""
    table = answer.table.iloc[1:].dropna(subset="vcf")
    if table.empty:
        return ()
    typical = (2 * table["vcf"].clip(lower=0.0)) ** 0.5
    base = math.sqrt(2 * max(0.0, float(answer.table["vcf"].fillna(report.audit.vcf.value).iloc[0])))
    order = (typical - base).abs().sort_values(ascending=False, kind="stable").index[:_MOST_CHANGES]
    strip = Strip.of([base, *typical[order]], zero=True)
    holds = answer.table["holds"].iloc[0]
    return tuple(
        (
            str(table.loc[place, "change"]),
            strip.draw(
                [_bar(base, float(typical[place]), bool(table.loc[place, "refuted"]))],
                "typical difference under this change",
                report.limit,
            ),
            report.unit.amount(typical[place]),
            bool(table.loc[place, "refuted"]),
            bool(table.loc[place, "holds"] != holds),
        )
        for place in order
    )


def _bar(base: float, value: float, refuted: bool) -> Mark:
    return Mark(value, min(base, value), max(base, value), "before" if refuted else "now")
