"""How wrong may it be: answers of the checks on graph and model, as they stand on the page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ciplearn._core.wording import as_list
from ciplearn.doubt import Falsification, HiddenConfounding, Sensitivity
from ciplearn.evaluation.bounds import VCFBounds
from ciplearn.report.charts import Dot, over_correlation
from ciplearn.report.marks import Mark, Strip

if TYPE_CHECKING:
    from ciplearn.report.content import Report

# Changes of the graph that are shown.
_MOST_CHANGES = 8


@dataclass(frozen=True)
class Doubt:
    """A question, its answer in words, and what stands below it."""

    question: str
    answer: str
    # the changes of the graph that move the predictions most: a tornado
    changes: tuple[tuple[str, Markup, str, bool, bool], ...] = ()
    tests: tuple[dict[str, Any], ...] = ()  # the independencies that were tested
    curve: Markup | None = None  # the typical difference over the correlation ρ that a hidden cause would make


def doubts(report: Report) -> list[Doubt]:
    """Return what was asked, and what the rows alone say."""
    found = []
    if report.audit.bounds is not None:
        found.append(Doubt("What the rows say without a causal model", _beside_bounds(report, report.audit.bounds)))
    for question, answer in report.doubts.items():
        changes = _tornado(answer, report) if isinstance(answer, Sensitivity) else ()
        tests = tuple(answer.to_dict()["tests"]) if isinstance(answer, Falsification) else ()
        curve = _curve(answer, report) if isinstance(answer, HiddenConfounding) else None
        found.append(Doubt(question, str(answer), changes, tests, curve))
    return found


def in_short(report: Report) -> list[str]:
    """Say how wrong it may be in at most three sentences with numbers: rows, arrows, and what was not measured."""
    answers = report.doubts.values()
    said = [_of_rows(answer) for answer in answers if isinstance(answer, Falsification)][:1]
    said += [_of_arrows(answer, report) for answer in answers if isinstance(answer, Sensitivity)][:1]
    hidden = [answer for answer in answers if isinstance(answer, HiddenConfounding)]
    # Of several protected variables the worst speaks.
    return said + [_of_hidden_causes(one, report) for one in sorted(hidden, key=_worst, reverse=True)[:1]]


def _worst(answer: HiddenConfounding) -> float:
    return float(answer.table["vcf"].max())


def _of_rows(answer: Falsification) -> str:
    tested = answer.tests.dropna(subset="p")
    if answer.refuted:
        return (
            f"The rows contradict the drawn graph: of {len(tested)} statements that were tested, "
            f"{len(answer.violated)} {'is' if len(answer.violated) == 1 else 'are'} wrong "
            f"({as_list(map(str, answer.violated[:3]))}), so draw it anew before you rely on this page."
        )
    if answer.refuted is None:
        return "The rows cannot say whether the drawn graph is right: none of its statements can be tested well enough."
    weakest = tested["detectable"].max()
    power = "" if math.isnan(weakest) else f"; a correlation of {weakest:.2f} would have been noticed in 4 cases of 5"
    one, several = len(tested) == 1, len(answer.tests) > 1
    of_all = f" of {len(answer.tests)}" if len(tested) < len(answer.tests) else ""
    return (
        f"The rows do not contradict the drawn graph: {len(tested)}{of_all} statement{'s' if several else ''} that it "
        f"makes about them {'was' if one else 'were'} tested, and {'it holds' if one else 'none fails'}{power}."
    )


def _of_arrows(answer: Sensitivity, report: Report) -> str:
    amount = report.unit.amount
    base, low, high = (_typical(vcf) for vcf in (answer.unchanged, *answer.interval))
    counted = int(answer.kept["vcf"].iloc[1:].notna().sum())
    if not counted:
        return (
            f"What a wrong arrow would mean is not known: none of {len(answer.table) - 1} other graphs was "
            "measured; ask about more with --doubt."
        )
    matters = "" if answer.largest is None else f"; what matters most is: {answer.largest}"
    others = "1 other graph" if counted == 1 else f"{counted} other graphs"
    late = answer.late
    unknown = f"; {late} more {'was' if late == 1 else 'were'} not asked about" if late else ""
    return (
        f"If one arrow of the graph is wrong, the typical difference lies between {amount(low)} and "
        f"{amount(high)} instead of at {amount(base)}, over {others} {answer.others}{unknown}{matters}."
    )


def _of_hidden_causes(answer: HiddenConfounding, report: Report) -> str:
    amount, table = report.unit.amount, answer.table
    worst = table.loc[table["vcf"].idxmax()]
    # Several protected variables are asked about one by one.
    alone = f" that {answer.protected} alone makes" if len(report.audit.verdict.protected) > 1 else ""
    said = (
        f"If something that was not measured moves both {answer.protected} and {worst['node']}, the typical difference"
        f"{alone} is at most {amount(_typical(worst['vcf']))} up to a correlation of {table['rho'].abs().max():.2g}"
    )
    crossings = [rho for rho in answer.crossing(report.limit**2 / 2).values() if not math.isnan(rho)]
    if crossings:
        said += f", and it passes the limit of {amount(report.limit)} at {min(crossings, key=abs):.2g}"
    if len(answer.benchmarks):
        known = answer.benchmarks.loc[answer.benchmarks["rho"].abs().idxmax()]
        said += f"; {known['covariate']}, were it not measured, would make {known['rho']:.2g}"
    if answer.late:
        said += (
            f"; {as_list(answer.late)} {'was' if len(answer.late) == 1 else 'were'} not asked about, so it may be more"
        )
    return f"{said}."


def _typical(vcf: float) -> float:
    """√(2 VCF), as everywhere on the page."""
    return math.sqrt(2 * max(0.0, float(vcf)))


def _curve(answer: HiddenConfounding, report: Report) -> Markup:
    times = 100 if report.is_classifier else 1
    curves = [
        [Dot(row.rho, times * _typical(row.vcf), row.rho, name=f"ρ = {row.rho:g}, {node}") for row in part.itertuples()]
        for node, part in answer.table.groupby("node", sort=False)
    ]
    seen = [(float(row.rho), f"{row.covariate}") for row in answer.benchmarks.itertuples()]
    unit = " (points)" if report.is_classifier else ""
    return over_correlation(curves, seen, times * report.limit, f"typical difference{unit}")


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
    if vcf.doubts:
        return f"{ours} rests on a model that is in doubt; {between}: rely on these."
    return f"{ours} agrees with the rows: {between}."


def _tornado(answer: Sensitivity, report: Report) -> tuple[tuple[str, Markup, str, bool, bool], ...]:
    """The changes that move the typical difference most; a bar runs there from the graph as drawn."""
    table = answer.table.iloc[1:].dropna(subset="vcf")
    if table.empty:
        return ()
    typical = (2 * table["vcf"].clip(lower=0.0)) ** 0.5
    base = _typical(answer.table["vcf"].fillna(report.audit.vcf.value).iloc[0])
    size = (typical - base).abs().sort_values(ascending=False, kind="stable").index
    # What data refute matters less, however large it is.
    order = sorted(size, key=lambda place: bool(table.loc[place, "refuted"]))[:_MOST_CHANGES]
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
