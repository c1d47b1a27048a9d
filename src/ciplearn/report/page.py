"""From a report to a page: one HTML file, no scripts, nothing fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import ciplearn
from ciplearn._core.columns import takes_few_values
from ciplearn._core.wording import as_list
from ciplearn.evaluation.wording import FREE, MODEL, UNKNOWN, decimal, percent, short, tied
from ciplearn.report.bias_audit import BiasAudit
from ciplearn.report.charts import SHAPES, Dot, agreement, over_gamma, trade_off
from ciplearn.report.content import Report
from ciplearn.report.doubts import doubts
from ciplearn.report.groups import FEW_ROWS
from ciplearn.report.individuals import Individual
from ciplearn.report.marks import Mark, Strip

if TYPE_CHECKING:
    from ciplearn.causal import Verdict

# Pairs and groups of one variable that are shown before the rest is folded away.
_FIRST = 8

# From this many nodes on, a drawing leaves out the edges into the prediction.
_WIDE = 10

# What the unconstrained model is called where there is little room.
_BEFORE = "before"

# What holds for every report; what holds for this one comes from its verdict.
_LIMITS = (
    "A test that does not reject is no proof of independence; with more rows it may.",
    "Invariance in the protected variables says nothing about other harms: look at the scores by group, too.",
)
_ESTIMATED = (
    "That an estimated causal model fits does not mean that its counterfactuals are right: many models fit the same "
    "data and disagree about them."
)


def render(report: Report, profile: str) -> str:
    """Return the page of a report in one of its profiles."""
    environment = Environment(
        loader=PackageLoader("ciplearn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"short": short, "percent": percent, "decimal": decimal, "listed": as_list, "tied": tied}
    verdict = report.audit.verdict
    shared = {
        "report": report,
        "audit": report.audit,
        "verdict": verdict,
        "vcf": report.audit.vcf,
        "unit": report.unit,
        "few_rows": FEW_ROWS,
        "unknown": UNKNOWN,
        "model_name": MODEL,
        "free_name": report.free_name,
        "was": _BEFORE if report.free_name == FREE else report.free_name,
        "style": Markup(environment.get_template("style.css").render()),
        "version": ciplearn.__version__,
    }
    if profile == "bias-audit":
        return environment.get_template("bias_audit.html").render(**shared, found=BiasAudit.of(report))
    if profile == "model-card":
        return environment.get_template("model_card.html").render(**shared, groups=_groups(report))
    return environment.get_template("report.html").render(
        **shared,
        graph=_drawing(verdict),
        graph_with_inputs=_drawing(verdict, prediction_edges=True) if len(verdict.graph.nodes) >= _WIDE else None,
        effects=_effects(report),
        groups=_groups(report),
        charts=_charts(report),
        shapes=SHAPES,
        paths=_paths(report.candidates)["kind"].unique().tolist(),
        baselines=_baselines(report.candidates)["name"].tolist(),
        people=[(one, _strip_of(one, report)) for one in report.shown_individuals],
        assumptions=[(said, said.check, _evidence(said, report)) for said in verdict.assumptions],
        limits=[*([_ESTIMATED] if report.audit.model_based else []), *_LIMITS],
        doubts=doubts(report),
        fit_report=getattr(report.audit.scm, "report", None),
        settings={command: _as_yaml(options) for command, options in report.settings.items()},
    )


def _drawing(verdict: Verdict, *, prediction_edges: bool | None = None) -> tuple[Markup, float]:
    """Our own drawing, which escapes every name in it, with the width in pixels that it was made for."""
    drawn = verdict.graph.to_svg(verdict, prediction_edges=prediction_edges)
    found = re.search(r'<svg[^>]* width="([0-9.]+)"', drawn)
    return Markup(drawn), float(found[1]) if found else 600.0


def _as_yaml(options: Mapping[str, Any]) -> str:
    """Options as lines of YAML; JSON values are YAML, too."""
    return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in options.items())


def _evidence(assumption: str, report: Report) -> str:
    """What this audit has found that bears on an assumption."""
    if assumption.startswith("The graph is right"):
        return " ".join(report.how_wrong) or "Nothing in this audit bears on it."
    if assumption.startswith("Overlap"):
        return f"{report.outside} of the imagined rows lie where there are no data."
    if assumption.startswith("The independence is exact"):
        return f"{report.audit.test} What is left is a typical difference of {report.unit.amount(report.typical)}."
    return ""


def _effects(report: Report) -> list[dict[str, Any]]:
    """Per variable or crossing its pairs, the largest effect first, each with its strip; the rest is folded away."""
    if report.effects is None or report.effects.table.empty:
        return []
    table = report.effects.table
    ends = [*table["effect_low"], *table["effect_high"], *table["effect"]]
    strip = Strip.of(ends, zero=True)
    found = []
    for variable in table["variable"].unique():
        rows = _paired(table[table["variable"] == variable], ["first", "second", "output"], report)
        rows.sort(key=lambda row: -abs(row["now"]["effect"]))
        for row in rows:
            row["strip"] = strip.draw(_marks(row, "effect", report.unit.amount), "average effect", report.limit)
        several = len({row["now"]["output"] for row in rows}) > 1
        family = {"name": variable, "rows": rows[:_FIRST], "more": rows[_FIRST:], "several": several}
        found.append(family | {"counted": _has_levels(report, variable)})
    return found


def _has_levels(report: Report, variable: str) -> bool:
    """Whether a variable, or both of a crossing, take a few values each, so that rows of each can be counted."""
    names = [name for name in report.audit.vcf.protected if name in (variable, *variable.split(" × "))]
    return all(takes_few_values(report.rows[name].dropna()) for name in names if name in report.rows)


def _groups(report: Report) -> list[dict[str, Any]]:
    """Per column or crossing its groups, each with a strip of what tells most: positive decisions, or calibration."""
    if report.by_group is None:
        return []
    table = report.by_group.table
    decides = report.by_group.threshold is not None
    measure, write = ("positive_rate", percent) if decides else ("calibration", report.unit.amount)
    label = "rate of positive decisions" if decides else "prediction less outcome"
    found = []
    for columns in table["columns"].unique():
        part = table[table["columns"] == columns]
        strip = Strip.of([*part[f"{measure}_low"], *part[f"{measure}_high"], *part[measure]], zero=not decides)
        rows = _paired(part, ["group", "output"], report)
        for row in rows:
            row["strip"] = strip.draw(_marks(row, measure, write), label)
        found.append({"name": columns, "rows": rows[:_FIRST], "more": rows[_FIRST:], "decides": decides})
    return found


def _paired(table: pd.DataFrame, keys: list[str], report: Report) -> list[dict[str, Any]]:
    """The audited model's rows, each with that of the unconstrained one, if there is one."""
    now = table[table["model"] == MODEL].to_dict(orient="records")
    before = {
        tuple(row[key] for key in keys): row
        for row in table[table["model"] == report.free_name].to_dict(orient="records")
    }
    return [{"now": row, "before": before.get(tuple(row[key] for key in keys))} for row in now]


def _marks(row: Mapping[str, Any], measure: str, write: Any) -> list[Mark]:
    found = []
    for kind in ("before", "now"):
        each = row[kind]
        if each is not None:
            value, low, high = each[measure], each[f"{measure}_low"], each[f"{measure}_high"]
            found.append(Mark(value, low, high, kind, f"{kind}: {write(value)}"))
    return found


def _strip_of(one: Individual, report: Report) -> Markup:
    """Where the predictions for one row lie: as it is, and in the other worlds."""
    values = [answer.predictions[MODEL] for answer in one.answers]
    strip = Strip(0.0, 1.0) if report.is_classifier else Strip.of(_predictions(report))
    marks = [
        Mark(value, value, value, "now" if place else "as-is", f"{answer.world}: {report.unit.level(value)}")
        for place, (answer, value) in enumerate(zip(one.answers, values, strict=True))
    ]
    # The row as it is lies over the others, all on one line.
    return strip.draw_on_one_line([*marks[1:], marks[0]], f"predictions for row {one.place}")


def _predictions(report: Report) -> Iterable[float]:
    return [value for one in report.shown_individuals for a in one.answers for value in a.predictions.values()]


def _baselines(candidates: pd.DataFrame) -> pd.DataFrame:
    """Candidates that stand alone; the others lie on a path with their kind."""
    alone = candidates["kind"].str.startswith("baseline") | ~candidates["kind"].duplicated(keep=False)
    return candidates[alone]


def _paths(candidates: pd.DataFrame) -> pd.DataFrame:
    return candidates.drop(index=_baselines(candidates).index)


def _charts(report: Report) -> dict[str, Markup]:
    charts = {
        "trade": _trade(report),
        "gamma": over_gamma(report.dots("gamma", "vcf"), "VCF"),
        "agreement": agreement(report.dots("penalty", "vcf"), report.penalty, "VCF"),
    }
    return {name: chart for name, chart in charts.items() if chart}


def _trade(report: Report) -> Markup:
    table = report.candidates.dropna(subset=["vcf"])
    if len(table) < 2:
        return Markup("")
    times = 100 if report.is_classifier else 1
    alone = _baselines(table)
    dots = {
        place: Dot(times * row["typical"], row["loss"], -row["vcf"], bool(row["chosen"]), row["name"])
        for place, row in table.iterrows()
    }
    paths = [[dots[place] for place in part.index] for _, part in _paths(table).groupby("kind", sort=False)]
    unit = " (points)" if report.is_classifier else ""
    loss = "log loss" if report.is_classifier else "mean squared error"
    label = f"typical difference between two values{unit}"
    return trade_off(paths, [dots[place] for place in alone.index], label, loss)
