"""How wrong may it be: answers of the checks on graph and model, as they stand on the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.wording import as_list, written
from ciplearn.causal import Independence
from ciplearn.doubt import Falsification, HiddenConfounding, Sensitivity
from ciplearn.evaluation import Audit, GroupScores, group_scores
from ciplearn.evaluation.counterfactual_rows import Points, as_known_beforehand, known_columns
from ciplearn.evaluation.effects import setting_text
from ciplearn.evaluation.interventions import compared_values
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.scores import MODEL, decimal
from ciplearn.evaluation.vcf_result import typical
from ciplearn.report.charts import Dot, Mark, Strip, over_correlation
from ciplearn.scm.kinds import Array

if TYPE_CHECKING:
    from ciplearn.report.content import Report

_MOST_CHANGES = 8  # changes of the graph that are shown

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
    causes: tuple[str, ...] = ()  # what each line of the curve imagines


def doubts(report: Report) -> list[Doubt]:
    """Return what was asked, and what the rows alone say."""
    answered = []
    for question, answer in report.doubts.items():
        kind, more = "The answer", dict[str, Any]()
        if isinstance(answer, Sensitivity):
            kind, (changes, axis) = "Other graphs were asked", _tornado(answer, report)
            more = {"changes": changes, "axis": axis}
        elif isinstance(answer, Falsification):
            kind, more = "The graph was tested on the rows", {"tests": tuple(answer.tests.to_dict("records"))}
        elif isinstance(answer, HiddenConfounding):
            kind, more = "A hidden cause was imagined", {"curve": _curve(answer, report)}
            more["causes"] = tuple(f"{answer.protected} and {node}" for node in answer.table["node"].unique())
        answered.append(Doubt(question, kind, str(answer), **more))
    if report.audit.bounds is not None:
        beside = report.audit.bounds.beside(report.audit.vcf, report.unit.amount)
        answered.append(Doubt("What the rows say without a causal model", "Bounds, and what to conclude", beside))
    return answered


def in_short(report: Report) -> list[str]:
    """Say how wrong it may be: what the rows say, wrong arrows, what was not measured, and what could not be asked."""
    answers = report.doubts.values()
    sentences = [_of_rows(answer) for answer in answers if isinstance(answer, Falsification)][:1]
    sentences += [_of_arrows(answer, report) for answer in answers if isinstance(answer, Sensitivity)][:1]
    hidden = [answer for answer in answers if isinstance(answer, HiddenConfounding)]
    # Of several protected variables the worst speaks.
    worst = sorted(hidden, key=lambda answer: float(answer.table["vcf"].max()), reverse=True)[:1]
    sentences += [_of_hidden_causes(answer, report) for answer in worst]
    return sentences + [f"{question} {answer}" for question, answer in report.doubts.items() if isinstance(answer, str)]


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
    base, low, high = (typical(vcf) for vcf in (answer.unchanged, *answer.interval))
    counted = int(answer.kept["vcf"].iloc[1:].notna().sum())
    if not counted:
        return (
            f"What a wrong arrow would mean is not known: none of {len(answer.table) - 1} other graphs was "
            "measured; ask about more with --doubt."
        )
    matters = "" if answer.largest is None else f"; most of all: {answer.largest}"
    others = "1 other graph" if counted == 1 else f"{counted} other graphs"
    unknown = f" ({answer.late} more were not tried)" if answer.late else ""
    return (
        f"If one arrow of the graph is wrong, the typical difference lies between {amount(low)} and "
        f"{amount(high)} instead of at {amount(base)}, over {others} {answer.others}{unknown}{matters}."
    )


def _of_hidden_causes(answer: HiddenConfounding, report: Report) -> str:
    amount, table = report.unit.amount, answer.table
    worst = table.loc[table["vcf"].idxmax()]
    # Several protected variables are asked about one by one.
    alone = f" that {answer.protected} alone makes" if len(report.audit.verdict.protected) > 1 else ""
    most, rho = amount(typical(worst["vcf"])), table["rho"].abs().max()
    sentence = (
        f"If something unmeasured moves both {answer.protected} and {worst['node']}, the typical difference{alone} is "
        f"at most {most} where it correlates them by at most {rho:.2g}"
    )
    crossings = [rho for rho in answer.crossing(report.audit.limit**2 / 2).values() if not math.isnan(rho)]
    if crossings:
        passed = decimal(min(crossings, key=abs), 2)
        sentence += f", and exceeds the limit of {amount(report.audit.limit)} beyond a correlation of {passed}"
    if len(answer.benchmarks):
        strongest = answer.benchmarks.loc[answer.benchmarks["rho"].abs().idxmax()]
        by = decimal(strongest["rho"], 2)
        sentence += f"; {strongest['covariate']}, had it not been measured, would correlate them by {by}"
    if answer.late:
        late = as_list(answer.late, 3)
        sentence += f"; what moves both {answer.protected} and {late} was not tried, so it may be more"
    return f"{sentence}."


def _curve(answer: HiddenConfounding, report: Report) -> Markup:
    times = report.unit.factor
    curves = [
        [Dot(row.rho, times * typical(row.vcf), row.rho, name=f"ρ = {row.rho:g}, {node}") for row in part.itertuples()]
        for node, part in answer.table.groupby("node", sort=False)
    ]
    strongest = answer.benchmarks.sort_values("rho", key=abs).drop_duplicates("covariate", keep="last")
    seen = [(float(row.rho), f"{row.covariate}") for row in strongest.itertuples()]
    return over_correlation(curves, seen, times * report.audit.limit, f"typical difference{report.unit.name}")


def _tornado(answer: Sensitivity, report: Report) -> tuple[tuple[_Change, ...], Markup | None]:
    """The changes that move the typical difference most, and their axis; a bar runs from the graph as drawn."""
    table = answer.table.iloc[1:].dropna(subset="vcf")
    if table.empty:
        return (), None
    differences = table["vcf"].map(typical)
    base = typical(answer.table["vcf"].fillna(report.audit.vcf.value).iloc[0])
    size = (differences - base).abs().sort_values(ascending=False, kind="stable").index
    # What data refute matters less, however large it is.
    order = sorted(size, key=lambda place: bool(table.loc[place, "refuted"]))[:_MOST_CHANGES]
    strip = Strip.of([base, *differences[order]], zero=True)
    changes = []
    for place in order:
        value, refuted = float(differences[place]), bool(table.loc[place, "refuted"])
        bar = Mark(value, min(base, value), max(base, value), "before" if refuted else "now")
        amount, change = report.unit.amount(value), str(table.loc[place, "change"])
        drawn = strip.draw([bar], f"typical difference {change}: {amount}", report.audit.limit)
        other = bool(table.loc[place, "holds"] != answer.table["holds"].iloc[0])
        changes.append((change, drawn, amount, refuted, other))
    return tuple(changes), strip.axis(report.unit.factor)


FEW_ROWS = 30  # a score of fewer rows says little

# The rules of the law allow to leave out categories with less than this share of the rows; here they are marked.
SMALL_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class BiasAudit:
    """Rates and ratios by group and crossing."""

    # ``columns``, ``group``, ``n_rows``, ``selected``, ``rate`` and ``ratio`` with its interval, and ``small``
    table: pd.DataFrame
    scored: bool  # whether a number was scored: then a row counts as selected above the median score of all
    threshold: float
    # rows without a value there: of those audited, which the tables by that column leave out, and of those that were
    # left out before
    unknown: dict[str, int]
    n_rows: int

    @classmethod
    def of(cls, report: Report) -> BiasAudit:
        """Count the decisions of the audited model: rate = selected / rows, ratio = rate / highest rate."""
        if (count := len(report.audit.vcf.per_output)) != 1:
            raise InputError(
                f"A bias audit is about one decision per row, but the predictor gives {count} numbers; audit one class "
                "at a time."
            )
        predictor = report.audit.predictors[MODEL]
        scored, columns = not report.audit.is_classifier, report.group_columns
        if not columns:
            raise InputError("A bias audit needs columns to group by; name some with groups.")
        threshold = float(np.median(predictor.numbers(predictor.in_blocks(report.rows)))) if scored else None
        tables = []
        for family in [[column] for column in columns] + [list(pair) for pair in combinations(columns, 2)]:
            rows, outcome = report.rows.dropna(subset=family), report.audit.verdict.outcome
            scores = group_scores(predictor, rows, outcome, family, threshold=threshold)
            tables.append(scores.table[scores.table["columns"] == " × ".join(family)])
        table = pd.concat(tables, ignore_index=True).rename(columns={"positive_rate": "rate"})
        table["selected"] = (table["rate"] * table["n_rows"]).round().astype(int)
        table["small"] = table["n_rows"] < SMALL_SHARE * len(report.rows)
        kept = ["columns", "group", "n_rows", "selected", "rate", "ratio", "ratio_low", "ratio_high", "small"]
        missing = report.rows[columns].isna().sum()
        unknown = {column: int(missing[column]) + int(report.unknown.get(column, 0)) for column in columns}
        used = scores.threshold if scores.threshold is not None else 0.5
        return cls(table[kept], scored, used, unknown, len(report.rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as JSON-ready data."""
        return fields_as_data(self, "table", "n_rows", groups=self.table)


def scores_by_group(
    models: Mapping[str, Predictor], rows: pd.DataFrame, outcome: str, columns: Sequence[str]
) -> GroupScores:
    """Return `group_scores` of the models, with a column ``output`` that names the class where there are several."""
    one = next(iter(models.values()))
    n_outputs = one(rows.iloc[:1]).shape[1]
    if n_outputs == 1:
        scores = group_scores(models, rows, outcome, columns)
        return GroupScores(scores.table.assign(output=""), scores.threshold, scores.positive)
    tables = []
    for place, output in enumerate(one.outputs(n_outputs)):
        truth = (rows[outcome].astype(str) == output).astype(np.float64)
        single = {name: partial(_output, each, place) for name, each in models.items()}
        scores = group_scores(single, rows.assign(**{outcome: truth}), outcome, columns, inputs=one.inputs)
        tables.append(scores.table.assign(output=output))
    return GroupScores(pd.concat(tables, ignore_index=True), None, None)


def _output(predictor: Predictor, place: int, frame: pd.DataFrame) -> Array:
    return predictor(frame)[:, place]


@dataclass(frozen=True)
class Answer:
    """The predictions for one row in one world, by model; the first is the world as it is."""

    world: str
    predictions: dict[str, float]


@dataclass(frozen=True)
class Individual:
    """A row, in words."""

    place: Any  # the row's label in the table
    values: dict[str, str]  # each column that matters, with its value in words
    answers: tuple[Answer, ...]  # as it is, and under each value of each protected variable

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON-ready data."""
        answers = [{"world": answer.world, **answer.predictions} for answer in self.answers]
        return fields_as_data(self, "place", row=self.place, answers=answers)


def asked_about(audit: Audit, labels: Sequence[Any], columns: Sequence[str]) -> list[Individual]:
    """Ask the models about some rows as they are, and under each value of each protected variable.

    Where several outputs are given, the first is shown. A vector of protected columns has no list of values, so its
    rows are shown as they are.
    """
    if not len(labels):
        return []
    predictors, scm, rows, outcome = audit.predictors, audit.scm, audit.rows, audit.verdict.outcome
    table = as_known_beforehand(scm, known_columns(scm, rows)[0], outcome)
    chosen, n_draws = table.loc[list(labels)], max(audit.vcf.n_draws, 10)
    factual = {name: predictor(chosen)[:, 0] for name, predictor in predictors.items()}
    answers = [[_answer("as it is", factual, n)] for n in range(len(chosen))]
    read = {column for predictor in predictors.values() for column in predictor.inputs}
    for variable in audit.vcf.protected:
        try:
            values = compared_values(table, scm, variable, {})
        except InputError:
            continue
        settings = [{variable: value} for value in values]
        points = Points.of(scm, chosen, [variable], read, np.random.default_rng(0), n_draws=n_draws)
        parts = list(points.answers_under(predictors, settings))
        means = {name: np.concatenate([part[name].mean(axis=2)[:, :, 0] for part in parts]) for name in predictors}
        for n, told in enumerate(answers):
            told += [_answer(setting_text(setting), means, (n, place)) for place, setting in enumerate(settings)]
    words = [
        {str(column): in_words(rows[column], row[column]) for column in (*columns, outcome)}
        for _, row in rows.loc[list(labels)].iterrows()
    ]
    return [Individual(*one) for one in zip(chosen.index, words, map(tuple, answers), strict=True)]


def _answer(world: str, predictions: Mapping[str, Array], at: Any) -> Answer:
    return Answer(world, {name: float(each[at]) for name, each in predictions.items()})


def in_words(column: pd.Series, value: Any) -> str:
    """Say a value; a number of many with where it stands among the rows."""
    if pd.isna(value):
        return "not known"
    if not holds_numbers(column):
        return str(value)
    at = float(value)
    number = written(at).replace("-", "−")
    if column.nunique() < 10:
        return number
    below = int(100 * (column.to_numpy(dtype=np.float64) < at).mean())
    return f"{number}, above {below} % of rows"
