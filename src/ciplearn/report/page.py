"""From a report to a page: one HTML file, no scripts, nothing fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import ciplearn
from ciplearn._core.wording import as_list
from ciplearn.report.charts import agreement, curve, over_gamma
from ciplearn.report.groups import FEW_ROWS, Affected
from ciplearn.report.wording import short

if TYPE_CHECKING:
    from ciplearn.report.content import Report

# What holds for every report; what holds for this one comes from its verdict.
_LIMITS = (
    "No data can prove a causal graph. Everything here that speaks of counterfactuals is as good as the graph.",
    "A penalty makes a dependence small, not zero, and a small dependence does not bound counterfactual differences.",
    "A test that does not reject is no proof of independence; with more rows it may.",
    "Invariance in the protected variables says nothing about other harms: look at the scores by group, too.",
)
_ESTIMATED = (
    "The causal model was estimated from data. That it fits does not mean that its counterfactuals are right: many "
    "models fit the same data and disagree about them."
)


def render(report: Report) -> str:
    """Return the page of a report."""
    environment = Environment(
        loader=PackageLoader("ciplearn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"short": short, "listed": as_list}
    # Our own drawing, which escapes every name in it.
    graph = Markup(report.audit.verdict.graph.to_svg(report.audit.verdict))
    return environment.get_template("report.html").render(
        report=report,
        audit=report.audit,
        verdict=report.audit.verdict,
        vcf=report.audit.vcf,
        graph=graph,
        graph_width=_width(graph),
        style=Markup(environment.get_template("style.css").render()),
        charts=_charts(report),
        baselines=[(name, number % 4, *place) for number, (name, place) in enumerate(report.baselines.items())],
        groups=report.group_scores(),
        affected=_with_bars(report.affected()),
        few_rows=FEW_ROWS,
        limits=[*([_ESTIMATED] if report.audit.model_based else []), *_LIMITS],
        fit_report=getattr(report.audit.scm, "report", None),
        settings={command: _as_yaml(options) for command, options in report.settings.items()},
        version=ciplearn.__version__,
    )


def _as_yaml(options: Mapping[str, Any]) -> str:
    """Options as lines of YAML; JSON values are YAML, too."""
    return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in options.items())


def _width(drawing: str) -> float:
    """The width that a drawing was made for, in pixels."""
    found = re.search(r'<svg[^>]* width="([0-9.]+)"', drawing)
    return float(found[1]) if found else 600.0


def _charts(report: Report) -> dict[str, Markup]:
    loss = "cross-entropy" if report.is_classifier else "mean squared error"
    violation, words = ("vcf", "VCF")
    if not report.dots("vcf", "loss"):
        violation, words = "penalty", report.penalty
    trade = report.dots(violation, "loss")
    if not trade:
        return {}
    charts = {
        "trade": curve(trade, words, loss, report.baselines if violation == "vcf" else None),
        "gamma": over_gamma(report.dots("gamma", violation), words),
    }
    if violation == "vcf":
        charts["agreement"] = agreement(report.dots("penalty", "vcf"), report.penalty, "VCF")
    return {name: chart for name, chart in charts.items() if chart}


def _with_bars(affected: list[Affected]) -> list[tuple[Affected, dict[str, float] | None]]:
    """Add to each row where its range of predictions lies on a common axis, in percent."""
    ends = [end for row in affected for end in (row.lowest, row.highest) if end is not None]
    if not ends or max(ends) == min(ends):
        return [(row, None) for row in affected]
    low, width = min(ends), max(ends) - min(ends)

    def share(value: Any) -> float:
        return round(100 * (value - low) / width, 2)

    return [
        (row, {"left": share(row.lowest), "width": share(row.highest) - share(row.lowest), "at": share(row.prediction)})
        for row in affected
    ]
