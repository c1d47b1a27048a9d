"""From a report to a page: one HTML file, no scripts, nothing fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import ciplearn
from ciplearn._core.columns import takes_few_values
from ciplearn._core.wording import as_list
from ciplearn.evaluation.scores import FREE, MODEL, UNKNOWN, decimal, percent, short, tied
from ciplearn.report.charts import SHAPES, Dot, Mark, Strip, agreement, look, over_gamma, trade_off
from ciplearn.report.content import Report
from ciplearn.report.sections import FEW_ROWS, BiasAudit, Individual, doubts

if TYPE_CHECKING:
    from ciplearn.causal import Verdict

_FRONT_GROUPS = 4  # groups that stand before the appendix
_BEFORE = "before"  # what the unconstrained model is called where there is little room


@cache
def _templates() -> Environment:
    """The templates of all pages, each compiled once."""
    environment = Environment(
        loader=PackageLoader("ciplearn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"short": short, "percent": percent, "decimal": decimal, "listed": as_list, "tied": tied}
    environment.filters["look"] = look
    return environment


def render(report: Report, profile: str) -> str:
    """Return the page of a report in one of its profiles."""
    environment = _templates()
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
        "was": _BEFORE if report.free_name == FREE else report.free_name,
        "style": Markup(files("ciplearn.report").joinpath("templates/style.css").read_text(encoding="utf-8")),
        "version": ciplearn.__version__,
    }
    if profile == "bias-audit":
        return environment.get_template("bias_audit.html").render(**shared, rates=BiasAudit.of(report))
    groups = _groups(report)
    if profile == "model-card":
        return environment.get_template("model_card.html").render(**shared, groups=groups)
    front_groups, front_axis = _front_groups(groups, report)
    candidates = report.candidates
    return environment.get_template("report.html").render(
        **shared,
        graph=_drawing(verdict),
        scores=_scores(report),
        effects=_effects(report),
        groups=groups,
        front_groups=front_groups,
        front_axis=front_axis,
        trade=_trade(report),
        over_gamma=over_gamma(report.dots("gamma", "vcf"), "VCF"),
        agreement=agreement(report.dots("penalty", "vcf"), report.penalty, "VCF"),
        shapes=SHAPES,
        paths=candidates.loc[~candidates["alone"], "kind"].unique().tolist(),
        baselines=candidates.loc[candidates["alone"], "name"].tolist(),
        people=_people(report),
        doubts=doubts(report),
        fit_report=getattr(report.audit.scm, "report", None),
        # JSON values are YAML, too.
        settings={
            command: "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in options.items())
            for command, options in report.settings.items()
        },
    )


def _drawing(verdict: Verdict) -> tuple[Markup, float]:
    """Our own drawing, which escapes every name in it, with the width in pixels that it was made for."""
    drawn = verdict.graph.to_svg(verdict)
    width = re.search(r'<svg[^>]* width="([0-9.]+)"', drawn)
    return Markup(drawn), float(width[1]) if width else 600.0


def _scores(report: Report) -> list[tuple[str, str, str, str]]:
    """The scores that everybody can read: name, value, value before, and what a constant reaches."""
    shares = report.rows[report.audit.verdict.outcome].value_counts(normalize=True)
    most = f"always “{shares.index[0]}”: {percent(shares.iloc[0])}"
    constants = {"right decisions": most, "AUC": "tossing a coin: 0.50"}
    now, before = report.scores(), report.scores(before=True)
    names = [name for name in now if name in constants] or list(now)[:1]
    return [(name, now[name], before.get(name, ""), constants.get(name, "")) for name in names]


def _effects(report: Report) -> list[dict[str, Any]]:
    """Per variable or crossing its pairs, the largest effect first, each with its strip on one axis for all."""
    if report.effects is None or report.effects.table.empty:
        return []
    table = report.effects.table
    zone = (-report.audit.limit, report.audit.limit)
    strip = Strip.of([*zone, *table["effect_low"], *table["effect_high"], *table["effect"]], zero=True)
    families = []
    for variable in table["variable"].unique():
        rows = _paired(table[table["variable"] == variable], ["first", "second", "output"], report)
        rows.sort(key=lambda row: -abs(row["now"]["effect"]))
        marked = {"counted": _has_levels(report, variable), "several": len({row["now"]["output"] for row in rows}) > 1}
        for row in rows:
            drawn = strip.draw(_marks(row, "effect", report.unit.amount), "average effect", report.audit.limit)
            row |= {"strip": drawn, **marked}
        families.append({"name": variable, "rows": rows, "axis": strip.axis(report.unit.factor), **marked})
    return families


def _has_levels(report: Report, variable: str) -> bool:
    """Whether a variable, or both of a crossing, take a few values each, so that rows of each can be counted."""
    names = [name for name in report.audit.vcf.protected if name in (variable, *variable.split(" × "))]
    return all(takes_few_values(report.rows[name].dropna()) for name in names if name in report.rows)


def _groups(report: Report) -> list[dict[str, Any]]:
    """Per column or crossing its groups, each with a strip of what tells most: positive decisions, or calibration."""
    if report.by_group is None:
        return []
    table, decides = report.by_group.table, report.by_group.threshold is not None
    measure, write = ("positive_rate", percent) if decides else ("calibration", report.unit.amount)
    label = "rate of positive decisions" if decides else "prediction less outcome"
    families = []
    for columns in table["columns"].unique():
        part = table[table["columns"] == columns]
        strip = Strip.of([*part[f"{measure}_low"], *part[f"{measure}_high"], *part[measure]], zero=not decides)
        rows = _paired(part, ["group", "output"], report)
        for row in rows:
            row["strip"] = strip.draw(_marks(row, measure, write), label)
        families.append({"name": columns, "rows": rows, "decides": decides, "axis": strip.axis(report.unit.factor)})
    return families


def _front_groups(groups: list[dict[str, Any]], report: Report) -> tuple[list[dict[str, Any]], Markup]:
    """The groups of single columns that are predicted worst, too low ones first, with strips and their axis."""
    single = [row for family in groups if " × " not in family["name"] for row in family["rows"]]
    single.sort(key=lambda row: -abs(row["now"]["calibration"]))
    rows = sorted(single[:_FRONT_GROUPS], key=lambda row: row["now"]["calibration"])
    marks = [_marks(row, "calibration", report.unit.amount) for row in rows]
    strip = Strip.of([end for row in marks for mark in row for end in (mark.low, mark.value, mark.high)], zero=True)
    drawn = [strip.draw(row, "prediction less outcome") for row in marks]
    return [row | {"strip": one} for row, one in zip(rows, drawn, strict=True)], strip.axis(report.unit.factor)


def _paired(table: pd.DataFrame, keys: list[str], report: Report) -> list[dict[str, Any]]:
    """The audited model's rows, each with that of the unconstrained one, if there is one."""
    now, before = (
        {tuple(row[key] for key in keys): row for row in table[table["model"] == name].to_dict(orient="records")}
        for name in (MODEL, report.free_name)
    )
    return [{"now": row, "before": before.get(key)} for key, row in now.items()]


def _marks(row: Mapping[str, Any], measure: str, write: Callable[[float], str]) -> list[Mark]:
    marks = []
    for kind in ("before", "now"):
        if row[kind] is not None:
            value, low, high = (row[kind][f"{measure}{end}"] for end in ("", "_low", "_high"))
            marks.append(Mark(value, low, high, kind, f"{kind}: {write(value)}"))
    return marks


def _people(report: Report) -> list[tuple[Individual, Markup]]:
    """Single rows, each with where its predictions lie: as it is, and in the other worlds."""
    people = report.shown_individuals
    every = [value for one in people for answer in one.answers for value in answer.predictions.values()]
    strip = Strip(0.0, 1.0) if report.audit.is_classifier else Strip.of(every)
    drawn = []
    for one in people:
        told = [(answer.world, answer.predictions[MODEL]) for answer in one.answers]
        marks = [Mark(value, value, value, "now", f"{world}: {report.unit.level(value)}") for world, value in told]
        # The row as it is lies over the others, all on one line.
        label = f"predictions for row {one.place}, {'; '.join(mark.title for mark in marks)}"
        marks = [*marks[1:], replace(marks[0], kind="as-is")]
        drawn.append((one, strip.draw_on_one_line(marks, label)))
    return drawn


def _trade(report: Report) -> Markup:
    """Every candidate by its typical difference and its loss."""
    table = report.candidates.dropna(subset=["vcf"])
    if len(table) < 2:
        return Markup("")
    dots = {
        place: Dot(report.unit.factor * row["typical"], row["loss"], -row["vcf"], bool(row["chosen"]), row["name"])
        for place, row in table.iterrows()
    }
    paths = [[dots[place] for place in part.index] for _, part in table[~table["alone"]].groupby("kind", sort=False)]
    loss = "log loss" if report.audit.is_classifier else "mean squared error"
    label = f"typical difference between two values{report.unit.name}"
    return trade_off(paths, [dots[place] for place in table.index[table["alone"]]], label, loss)
