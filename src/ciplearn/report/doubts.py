"""How wrong may it be: answers of the checks on graph and model, as they stand on the page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ciplearn._core.wording import as_list
from ciplearn.causal import Independence
from ciplearn.doubt import Falsification, HiddenConfounding, Sensitivity
from ciplearn.evaluation.bounds import VCFBounds
from ciplearn.evaluation.wording import decimal
from ciplearn.report.charts import Dot, Mark, Strip, over_correlation

if TYPE_CHECKING:
    from ciplearn.report.content import Report

# Changes of the graph that are shown.
_MOST_CHANGES = 8

# In words, as a bar, its typical difference, whether data refute it, and whether the verdict is another.
_Change = tuple[str, Markup, str, bool, bool]


@dataclass(frozen=True)
class Doubt:
    """A question, its answer in words, and what stands below it."""

    question: str
    kind: str  # what was done to answer it
    answer: str
    # the changes of the graph that move the predictions most, a tornado with its axis
    changes: tuple[_Change, ...] = ()
    axis: Markup | None = None
    tests: tuple[dict[str, Any], ...] = ()  # the independencies that were tested
    curve: Markup | None = None  # the typical difference over the correlation ρ that a hidden cause would make


def doubts(report: Report) -> list[Doubt]:
    """Return what was asked, and what the rows alone say."""
    answered = []
    for question, answer in report.doubts.items():
        if isinstance(answer, Sensitivity):
            changes, axis = _tornado(answer, report)
            answered.append(Doubt(question, "Other graphs were asked", str(answer), changes, axis))
        elif isinstance(answer, Falsification):
            tests = tuple(answer.to_dict()["tests"])
            answered.append(Doubt(question, "The graph was tested on the rows", str(answer), tests=tests))
        elif isinstance(answer, HiddenConfounding):
            curve = _curve(answer, report)
            answered.append(Doubt(question, "A hidden cause was imagined", str(answer), curve=curve))
        else:
            answered.append(Doubt(question, "The answer", str(answer)))
    if report.audit.bounds is not None:
        said = _beside_bounds(report, report.audit.bounds)
        answered.append(Doubt("What the rows say without a causal model", "Bounds, and what to conclude", said))
    return answered


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
            f"({'; '.join(map(_as_seen, answer.violated[:3]))}), so draw it anew before you rely on this page."
        )
    if answer.refuted is None:
        return "The rows cannot say whether the drawn graph is right: none of its statements can be tested well enough."
    weakest = tested["detectable"].max()
    power = "" if math.isnan(weakest) else f"; a correlation of {weakest:.2f} would have been noticed in 4 cases of 5"
    of_all = f" of its {len(answer.tests)}" if len(tested) < len(answer.tests) else ""
    what = f"{of_all} statement{'s' if len(answer.tests) > 1 else ''} {'was' if len(tested) == 1 else 'were'} tested"
    return f"The rows do not contradict the drawn graph: {len(tested)}{what}, none fails{power}."


def _as_seen(statement: Independence) -> str:
    """What the rows show in the place of an independence that they contradict."""
    among = f" among rows with the same {as_list(statement.given, 3)}" if statement.given else ""
    return f"{as_list(statement.left)} and {as_list(statement.right, 3)} go together{among}"


def _of_arrows(answer: Sensitivity, report: Report) -> str:
    amount = report.unit.amount
    base, low, high = (_typical(vcf) for vcf in (answer.unchanged, *answer.interval))
    counted = int(answer.kept["vcf"].iloc[1:].notna().sum())
    if not counted:
        return (
            f"What a wrong arrow would mean is not known: none of {len(answer.table) - 1} other graphs was "
            "measured; ask about more with --doubt."
        )
    matters = "" if answer.largest is None else f"; most of all: {answer.largest}"
    others = "1 other graph" if counted == 1 else f"{counted} other graphs"
    unknown = f" ({answer.late} more not asked about)" if answer.late else ""
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
        f"If something unmeasured moves both {answer.protected} and {worst['node']}, the typical difference"
        f"{alone} is at most {amount(_typical(worst['vcf']))} up to a correlation of {table['rho'].abs().max():.2g}"
    )
    crossings = [rho for rho in answer.crossing(report.audit.limit**2 / 2).values() if not math.isnan(rho)]
    if crossings:
        said += f", and it passes the limit of {amount(report.audit.limit)} at {decimal(min(crossings, key=abs), 2)}"
    if len(answer.benchmarks):
        known = answer.benchmarks.loc[answer.benchmarks["rho"].abs().idxmax()]
        said += f"; {known['covariate']}, were it not measured, would make {decimal(known['rho'], 2)}"
    if answer.late:
        n_late = len(answer.late)
        said += f"; {as_list(answer.late, 3)} {'was' if n_late == 1 else 'were'} not asked about, so it may be more"
    return f"{said}."


def _typical(vcf: float) -> float:
    """√(2 VCF), as everywhere on the page."""
    return math.sqrt(2 * max(0.0, float(vcf)))


def _curve(answer: HiddenConfounding, report: Report) -> Markup:
    times = report.unit.factor
    curves = [
        [Dot(row.rho, times * _typical(row.vcf), row.rho, name=f"ρ = {row.rho:g}, {node}") for row in part.itertuples()]
        for node, part in answer.table.groupby("node", sort=False)
    ]
    seen = [(float(row.rho), f"{row.covariate}") for row in answer.benchmarks.itertuples()]
    return over_correlation(curves, seen, times * report.audit.limit, f"typical difference{report.unit.name}")


def _beside_bounds(report: Report, bounds: VCFBounds) -> str:
    """Bounds on VCF as bounds on the typical difference √(2 VCF), beside that of the causal model."""
    vcf, amount = report.audit.vcf, report.unit.amount
    low, high = (_typical(end) for end in bounds.interval)
    ours = f"the causal model's typical difference of {amount(report.audit.typical)}"
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


def _tornado(answer: Sensitivity, report: Report) -> tuple[tuple[_Change, ...], Markup | None]:
    """The changes that move the typical difference most, and their axis; a bar runs from the graph as drawn."""
    table = answer.table.iloc[1:].dropna(subset="vcf")
    if table.empty:
        return (), None
    typical = table["vcf"].map(_typical)
    base = _typical(answer.table["vcf"].fillna(report.audit.vcf.value).iloc[0])
    size = (typical - base).abs().sort_values(ascending=False, kind="stable").index
    # What data refute matters less, however large it is.
    order = sorted(size, key=lambda place: bool(table.loc[place, "refuted"]))[:_MOST_CHANGES]
    strip = Strip.of([base, *typical[order]], zero=True)
    changes = []
    for place in order:
        value, refuted = float(typical[place]), bool(table.loc[place, "refuted"])
        bar = Mark(value, min(base, value), max(base, value), "before" if refuted else "now")
        amount, change = report.unit.amount(value), str(table.loc[place, "change"])
        drawn = strip.draw([bar], f"typical difference {change}: {amount}", report.audit.limit)
        other = bool(table.loc[place, "holds"] != answer.table["holds"].iloc[0])
        changes.append((change, drawn, amount, refuted, other))
    return tuple(changes), strip.axis(report.unit.factor)
