"""`sensitivity`: what verdict and VCF of a finished predictor would be under other graphs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from ciplearn._core.answers import KeptAnswers, digest_of
from ciplearn._core.arguments import first, of_kind, processes
from ciplearn._core.errors import CiplearnError, GraphError, InputError, InputTypeError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.rows import RandomState, as_seed
from ciplearn._core.wording import as_set
from ciplearn._core.workers import Engine
from ciplearn.causal import CausalGraph
from ciplearn.causal.names import Names
from ciplearn.doubt.falsification import Refutation, table_columns
from ciplearn.evaluation.counterfactual_rows import context_that_can_be_drawn_from
from ciplearn.evaluation.predictors import Predictor, verdict_on
from ciplearn.evaluation.vcf import variance_of_counterfactuals
from ciplearn.scm import fit_scm
from ciplearn.scm.estimated_model import EstimatedModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS_WITH_HIDDEN_CAUSES = 1000  # laws of hidden causes are learnt by gradient steps, whose cost grows with the rows
_AT_ONCE = 4  # graphs per task of a process: more of them share what is fitted, fewer are lost when a job is stopped
_MOST_MEMBERS = 200  # of a larger class, one member per set of parents that the protected nodes may have is compared
_DRAWN = "as drawn"
_LEFT_OUT = "not among the graphs that were asked about"
_BARS = 15
_RED, _BLUE, _GREY = "#b3362b", "#2f6690", "#9aa3ad"


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The answer of `sensitivity`.

    Attributes
    ----------
    table : DataFrame
        One row per graph, the one as drawn first: ``change``; ``holds`` and ``adjustment`` of its verdict; ``vcf``, its
        interval ``low`` and ``high``, and ``relative``, NaN where no model could be estimated; ``refuted``, whether
        a test contradicts one of the graph's independencies (5 % per graph); ``note``, what stood in the way.
    graphs : tuple of CausalGraph
        In the order of the rows.

    Examples
    --------
    >>> from ciplearn import CausalGraph, datasets, sensitivity
    >>> people = datasets.applicants().sample(200, random_state=0)[["sex", "hours", "income"]]
    >>> graph = CausalGraph.from_edges("sex -> hours, hours -> income, sex -> income")
    >>> more = {"outcome": "income", "protected": ["sex"], "inputs": ["hours"], "n_points": 30}
    >>> sensitivity(lambda frame: frame["hours"], graph, people, [graph], **more).flips
    ()
    """

    table: pd.DataFrame
    graphs: tuple[CausalGraph, ...]
    protected: tuple[str, ...]

    @property
    def kept(self) -> pd.DataFrame:
        """The part of `table` that counts: graphs that data do not refute; all, where they refute the one as drawn.

        One changed arrow seldom repairs a refuted graph, and how far its VCF may move is asked all the same.
        """
        refuted = self.table["refuted"]
        return self.table[~refuted | bool(refuted.iloc[0])]

    @property
    def others(self) -> str:
        """Which other graphs are counted, in words."""
        if self.table["refuted"].iloc[0]:
            return "that the rows contradict no more than the drawn one, which is refuted"
        return "that the rows do not contradict"

    @property
    def interval(self) -> tuple[float, float]:
        """The smallest and largest VCF over the graphs that are `kept`."""
        kept = self.kept["vcf"].dropna()
        return (float(kept.min()), float(kept.max())) if len(kept) else (math.nan, math.nan)

    @property
    def unchanged(self) -> float:
        """VCF under the graph itself."""
        return float(self.table["vcf"].iloc[0])

    @property
    def late(self) -> int:
        """How many graphs were not asked about."""
        return int((self.table["note"] == _LEFT_OUT).sum())

    @property
    def flips(self) -> tuple[str, ...]:
        """Changes after which the verdict is another."""
        return tuple(self.table["change"][self.table["holds"] != self.table["holds"].iloc[0]])

    @property
    def largest(self) -> str | None:
        """The change, among graphs that are `kept`, that moves VCF most; None where none does."""
        kept = self.kept
        moved = (kept["vcf"] - self.unchanged).abs().dropna()
        return str(kept.loc[moved.idxmax(), "change"]) if len(moved) and moved.max() > 0 else None

    def __str__(self) -> str:
        (low, high), others, late = self.interval, len(self.table) - 1, self.late
        counted = int(self.kept["vcf"].iloc[1:].notna().sum())
        answer = (
            f"VCF is {self.unchanged:.3g} under the graph as drawn, and {low:.3g} to {high:.3g} over it and the "
            f"{counted} of {others - late} other graphs {self.others}."
        )
        if self.largest is not None:
            answer += f" The change that matters most is: {self.largest}."
        answer += f" The verdict changes in {len(self.flips)} of {others}."
        notes = self.table["note"][self.table["vcf"].isna() & (self.table["note"] != _LEFT_OUT)]
        if len(notes):
            answer += f" For {len(notes)} VCF could not be measured: {notes.iloc[0]}"
        return f"{answer} {late} {'was' if late == 1 else 'were'} {_LEFT_OUT}." if late else answer

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        more = {"interval": self.interval, "largest": self.largest, "flips": self.flips, "sentence": str(self)}
        return fields_as_data(self, "graphs", "protected", **more)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a tornado: one bar per change from the VCF as drawn, largest on top; grey where data refute it."""
        import matplotlib.pyplot as plt

        axes = plt.subplots(figsize=(7, 5))[1] if ax is None else ax
        base, holds, moved = self.unchanged, self.table["holds"].iloc[0], self.table.iloc[1:].dropna(subset="vcf")
        order = (moved["vcf"] - base).abs().sort_values(ascending=False, kind="stable").index[:_BARS]
        shown = moved.loc[order[::-1]]
        for number, row in enumerate(shown.itertuples()):
            colour = _GREY if row.refuted else _BLUE if row.holds == holds else _RED
            axes.barh(number, row.vcf - base, left=base, color=colour, height=0.7)
        axes.axvline(base, color="black", linewidth=1)
        axes.set_yticks(range(len(shown)), list(shown["change"]))
        axes.set_xlabel("VCF; blue: same verdict, red: another, grey: refuted by data")
        return axes


def sensitivity(
    model: Any,
    graph: CausalGraph,
    table: pd.DataFrame,
    graphs: Any = None,
    random_state: RandomState = 0,
    *,
    outcome: str | None = None,
    protected: Names | None = None,
    context: Names | None = None,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    n_points: int = 300,
    n_interventions: int = 100,
    n_draws: int | None = 20,
    n_jobs: int | None = None,
    engine: Engine | None = None,
    file: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    like: EstimatedModel | None = None,
) -> Sensitivity:
    """Ask the same questions of other graphs: verdict, adjustment set, estimated model and VCF of one predictor.

    Parameters
    ----------
    model, graph, table
        A finished predictor, its graph, and rows with all observed nodes.
    graphs : list or dict of CausalGraph, optional
        Graphs over the same observed nodes, a bootstrap bag for example. By default the members of a graph with
        undirected edges (of more than 200, one per set of parents that the protected nodes may have), or else the graph
        with every single edge removed, reversed or added, and with a hidden common cause of every pair.
    outcome, protected, context
        Roles, as in `CausalGraph.criterion`; by default those of the model, or those written in the graph's text.
    inputs, method, n_points, n_interventions, n_draws, n_jobs, random_state
        See `variance_of_counterfactuals`; processes share the graphs.
    engine : Engine, optional
        Who asks, instead of processes here: for example ``ciplearn.scale.RayEngine(workers=2)``, a task per graph.
    file : path, optional
        Where answers are written down as they come; graphs that it holds are not asked about again. It belongs to one
        model, its table and its settings, and refuses others.
    limit : int, optional
        Ask about so many other graphs at most: changes at a protected node first; graphs that look refuted and hidden
        causes last. The others have a verdict and no VCF, and that is said.
    like : EstimatedModel, optional
        A model of `fit_scm` from the same rows and seed, whose mechanisms are not fitted again.

    Examples
    --------
    >>> from ciplearn import CausalGraph, datasets, sensitivity
    >>> people = datasets.applicants().sample(200, random_state=0)[["sex", "hours", "income"]]
    >>> graph = CausalGraph.from_edges("sex -> hours, hours -> income, sex -> income")
    >>> other = {"hours first": CausalGraph.from_edges("hours -> sex, hours -> income, sex -> income")}
    >>> more = {"outcome": "income", "protected": ["sex"], "inputs": ["hours"], "n_points": 30}
    >>> float(sensitivity(lambda frame: frame["hours"], graph, people, other, **more).table["vcf"].iloc[1])
    0.0
    """
    of_kind(graph, CausalGraph, "graph", "pass the drawing")
    jobs = processes(n_jobs)
    verdict = verdict_on(model, _directed(graph), {"outcome": outcome, "protected": protected, "context": context})
    variants = variants_of(graph, graphs, verdict.protected)
    columns = table_columns(variants[0].graph, table)
    seen = table[[column for held in columns.values() for column in held]]
    roles: dict[str, Any] = {name: getattr(verdict, name) for name in ("outcome", "protected", "context")}
    measured = {"inputs": inputs, "method": method, "n_points": n_points, "n_interventions": n_interventions}
    question = _GraphQuestion(model, seen, roles, measured | {"n_draws": n_draws}, as_seed(random_state))
    base = like if variants[0].hidden else question.estimated(variants[0], like)
    kept = None if file is None else KeptAnswers(file, question.digest(variants[0]))
    refuted = Refutation(question.table.dropna(), columns, question.seed)
    drawn, *others = sorted(variants, key=lambda variant: _urgency(variant, variants[0], verdict.protected, refuted))
    wanted = [drawn, *first(others, limit)]
    known = {} if kept is None else {one: kept.known[one.key] for one in wanted if one.key in kept.known}
    missing = [variant for variant in wanted if variant not in known]
    for variant, row in zip(missing, _answers(question, missing, base, jobs, engine), strict=True):
        known[variant] = row
        if kept is not None:
            kept.add(variant.key, row)
    rows = [
        {**known[variant], "refuted": refuted(variant.graph)}
        if variant in known
        else {**question.verdict(variant), "refuted": False, "note": _LEFT_OUT}
        for variant in variants
    ]
    order = ["change", "holds", "adjustment", "vcf", "low", "high", "relative", "refuted", "note"]
    return Sensitivity(pd.DataFrame(rows)[order], tuple(variant.graph for variant in variants), verdict.protected)


@dataclass(frozen=True)
class _GraphQuestion:
    """What is asked of every graph."""

    model: Any
    table: pd.DataFrame
    roles: dict[str, Any]
    measured: dict[str, Any]
    seed: int

    def digest(self, drawn: Variant) -> str:
        """What tells it apart from other questions."""
        settings = (self.roles, *self.measured.values(), self.seed)
        # A model is what it says: about the rows, and about others in which every column is taken from another row.
        predictor = Predictor.of(self.model, list(self.table.columns), self.measured["inputs"], self.measured["method"])
        rows = self.table.dropna()
        order = np.arange(len(rows))
        moved = {name: rows[name].take(np.roll(order, number + 1)).array for number, name in enumerate(rows.columns)}
        answers = [predictor.in_blocks(shown) for shown in (rows, rows.assign(**moved))]
        return digest_of(drawn.graph.to_dagitty(), self.table, settings, answers)

    def estimated(self, variant: Variant, like: EstimatedModel | None) -> EstimatedModel:
        rows = self.table
        if variant.hidden and len(rows) > _ROWS_WITH_HIDDEN_CAUSES:
            rows = rows.sample(_ROWS_WITH_HIDDEN_CAUSES, random_state=self.seed)
        return fit_scm(variant.graph, rows, random_state=self.seed if like is None else None, like=like)

    def verdict(self, variant: Variant) -> dict[str, Any]:
        verdict = variant.graph.criterion(**self.roles)
        row = {"change": variant.change, "holds": verdict.holds, "adjustment": as_set(verdict.adjustment)}
        return row | dict.fromkeys(("vcf", "low", "high", "relative"), math.nan) | {"note": ""}

    def answer(self, variant: Variant, like: EstimatedModel | None) -> dict[str, Any]:
        row = self.verdict(variant)
        try:
            scm, points = self.estimated(variant, like), self.table.dropna()
            # As in an audit a row is known by its context; but a hidden cause is inferred from all that is seen.
            context = None if variant.hidden else context_that_can_be_drawn_from(scm, points, self.roles["context"])
            measured = {"context": context, "random_state": self.seed, **self.measured}
            vcf = variance_of_counterfactuals(self.model, scm, points, self.roles["protected"], **measured)
        except CiplearnError as error:
            return {**row, "note": str(error)}
        low, high = vcf.interval
        return {**row, "vcf": vcf.value, "low": low, "high": high, "relative": vcf.relative}


def _urgency(variant: Variant, drawn: Variant, protected: Sequence[str], refuted: Refutation) -> tuple[bool, ...]:
    """Sorts the graph as drawn first, hidden causes last, before them graphs that look refuted, and these by nearness.

    A graph that is refuted has no say in the interval; near are changes at a protected node.
    """
    changed = set(variant.graph.directed) ^ set(drawn.graph.directed)
    far = not any(set(edge) & set(protected) for edge in changed)
    return variant is not drawn, variant.hidden, bool(refuted.suspects(variant.graph)[0]), far


def _answers(
    question: _GraphQuestion, variants: list[Variant], base: EstimatedModel | None, n_jobs: int, engine: Engine | None
) -> Iterator[dict[str, Any]]:
    """The answer of each graph, in their order, as they come."""
    if engine is not None:
        return engine.each(partial(question.answer, like=base), variants)
    # Every fit adds to the memory of the first: a node with the same parents is fitted once per task.
    tasks = (delayed(question.answer)(variant, base) for variant in variants)
    return iter(Parallel(n_jobs=n_jobs, batch_size=_AT_ONCE, return_as="generator")(tasks))


@dataclass(frozen=True)
class Variant:
    """A graph and what makes it differ."""

    change: str  # ``"as drawn"``, ``"without A → B"``, ``"A → B reversed"``, ..., or the name that a user gave
    graph: CausalGraph
    hidden: bool = False  # whether an unobserved common cause was added

    @property
    def key(self) -> str:
        """What tells it apart from others, also from one of another list that has the same name."""
        return f"{self.change}: {self.graph.to_dagitty()}"


def single_changes(graph: CausalGraph) -> Iterator[Variant]:
    """Yield the graph with each edge removed or reversed, each edge added, and each pair given a hidden common cause.

    Changes that would make a cycle are left out, and so are edges at latent nodes. Hidden causes come last: a model
    with one takes longest to learn.
    """
    for a, b in graph.directed:
        if not {a, b} & graph.latent:
            rest = tuple(edge for edge in graph.directed if edge != (a, b))
            yield Variant(f"without {a} → {b}", replace(graph, directed=rest))
            yield from _acyclic(f"{a} → {b} reversed", graph, (*rest, (b, a)))
    pairs = list(combinations(graph.observed, 2))
    common = {frozenset(edge) for edge in graph.bidirected}
    joined = common | {frozenset(edge) for edge in graph.directed}
    for pair in pairs:
        if frozenset(pair) not in joined:
            for a, b in (pair, pair[::-1]):
                yield from _acyclic(f"with {a} → {b}", graph, (*graph.directed, (a, b)))
    for a, b in pairs:
        if frozenset((a, b)) not in common:
            yield Variant(f"with {a} ↔ {b}", replace(graph, bidirected=(*graph.bidirected, (a, b))), hidden=True)


def _acyclic(change: str, graph: CausalGraph, directed: tuple[tuple[str, str], ...]) -> Iterator[Variant]:
    with suppress(GraphError):
        yield Variant(change, replace(graph, directed=directed))


def variants_of(graph: CausalGraph, graphs: Any, protected: Sequence[str] = ()) -> list[Variant]:
    """Return the graph as drawn and those to compare it with: a user's, its members, or its single changes."""
    if graphs is not None:
        return [Variant(_DRAWN, _directed(graph)), *_named(graph, graphs)]
    if not graph.undirected:
        return [Variant(_DRAWN, graph), *single_changes(graph)]
    members = list(graph.members(_MOST_MEMBERS + 1))
    if len(members) > _MOST_MEMBERS:
        members = list(graph.members(by_parents_of=protected))
    variants = [Variant(f"member {number}", member) for number, member in enumerate(members, start=1)]
    return [replace(variants[0], change=f"{_DRAWN}, member 1"), *variants[1:]]


def _directed(graph: CausalGraph) -> CausalGraph:
    return next(graph.members(1)) if graph.undirected else graph


def _named(graph: CausalGraph, graphs: Any) -> Iterator[Variant]:
    named: Iterable[tuple[Any, Any]]
    if isinstance(graphs, Mapping):
        named = graphs.items()
    elif isinstance(graphs, Sequence) and not isinstance(graphs, str):
        named = ((f"graph {number}", each) for number, each in enumerate(graphs, start=1))
    else:
        raise InputTypeError(f"graphs must be a list or a dict of graphs, got {type(graphs).__name__}.")
    if not graphs:
        raise InputError("graphs is empty; pass at least one graph, or leave it out for all single changes.")
    for name, each in named:
        of_kind(each, CausalGraph, str(name), "pass graphs")
        differing = sorted(set(each.observed) ^ set(graph.observed))
        if differing:
            why = f"{name} is over other observed nodes than the graph: {', '.join(differing)} is in one of them only"
            raise InputError(f"{why}; compare graphs of the same columns.")
        yield Variant(str(name), _directed(each), hidden=bool(each.bidirected or each.latent))
