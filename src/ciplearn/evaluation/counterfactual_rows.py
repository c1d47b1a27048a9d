"""The doorway that all counterfactual measures share: points, their noise, and their counterfactual rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.arguments import of_kind, whole
from ciplearn._core.columns import checked_table, holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.causal.names import Names, as_names
from ciplearn.scm import StructuralCausalModel, Units
from ciplearn.scm.kinds import Array, plain, read_nodes
from ciplearn.scm.model import DEFAULT_CANDIDATES
from ciplearn.scm.noise import draw_hidden

if TYPE_CHECKING:
    from ciplearn.evaluation.predictors import Thresholds

CHUNK_ROWS = 200_000  # counterfactual rows held at a time
DEFAULT_DRAWS = 100  # draws of the noise per point where it is not determined by what is known of the point
_ADVICE = "estimate one with fit_scm(graph, df)"


@dataclass(frozen=True, eq=False)
class Points:
    """Rows with their noise."""

    scm: StructuralCausalModel
    rows: pd.DataFrame  # all rows that were passed, with the columns that the causal model knows
    places: Array  # where the points stand among the rows
    units: Units  # the points with their noise: the one that fits, or draws from its law given what is known of a point
    context: tuple[str, ...]  # the nodes that a point is known by
    # how many draws of one row stand together in ``rows``: more than one only where such units were passed
    row_draws: int = 1

    @classmethod
    def of(
        cls,
        scm: StructuralCausalModel,
        rows: pd.DataFrame | Units,
        changed: Sequence[str],
        columns: Iterable[str],
        generator: Generator,
        *,
        n_points: int | None = None,
        n_draws: int | None = None,
        context: Names | None = None,
    ) -> Points:
        """Choose the points and do the abduction for what predictors need that read some ``columns``.

        That is the noise of nodes that an action on ``changed`` reaches and that are read, directly or through others.
        Noise that is left open costs many draws, and no other noise can move a prediction.
        """
        frame, _ = table_of(scm, rows)
        # Units may hold several draws of a row, so their frame may be longer than their index.
        n = len(rows.index)
        places = np.arange(n)
        if n_points is not None and n_points < n:
            places = np.sort(generator.choice(n, n_points, replace=False))
        given = nodes_in(scm, frame.columns)
        if context is not None:
            given = scm.graph.known_observed(as_names(context, "context"), "context")
            missing = [column for column in scm.columns(given) if column not in frame.columns]
            if missing:
                advice = "add it, or name another context"
                raise InputError(f"rows lacks the column {missing[0]!r} of the context; {advice}.")
        # What is set needs its ancestors, too: a setting may be a function of its parents.
        kept = scm.graph.ancestors([*nodes_in(scm, columns), *changed])
        reached = (scm.graph.descendants(changed) - set(changed)) & kept
        draws = DEFAULT_DRAWS if n_draws is None else whole(n_draws, "n_draws", minimum=1)
        row_draws = rows.draws if isinstance(rows, Units) else 1
        if isinstance(rows, Units) and context is None:
            return cls(scm, frame, places, rows.take(places).only(kept), given, row_draws)
        picked = frame.iloc[places * row_draws][scm.columns(given)]
        if context is None or leaves_nothing_out(scm.graph, given, kept):
            units = scm.abduct(picked, nodes=reached, random_state=generator)
            if not units.exact:
                units = scm.abduct(picked, nodes=reached, n_draws=draws, random_state=generator)
        else:
            units = units_given(scm, picked, given, kept, reached, draws, generator)
        return cls(scm, frame, places, units.only(kept), given, row_draws)

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.units.index)

    def as_they_are(self) -> pd.DataFrame:
        """Return the points' own rows."""
        return self.rows.iloc[(self.places[:, None] * self.row_draws + np.arange(self.row_draws)).ravel()]

    def one_per_row(self) -> pd.DataFrame:
        """Return all rows that the points were chosen from, once each where units hold several draws."""
        return self.rows.iloc[:: self.row_draws]

    def only(self, places: Array) -> Points:
        """Return some of the points."""
        return replace(self, rows=self.rows.iloc[:0], places=self.places[places], units=self.units.take(places))

    def counterfactuals(self, values: pd.DataFrame, k: int, generator: Generator) -> pd.DataFrame:
        """Return the points' rows under k joint values each; the draws of one row under one value stand together."""
        units = self.units.take(np.repeat(np.arange(self.n), k))
        kinds = self.scm.kinds
        nodes = [node for node in self.scm.graph.nodes if kinds[node].columns(node)[0] in values.columns]
        # Plain arrays: drawn values stand in the order of the units, whatever their labels are.
        columns = {node: values[list(kinds[node].columns(node))] for node in nodes}
        settings = {node: plain(each.squeeze(axis=1), kinds[node]) for node, each in columns.items()}
        return self.scm.do(settings).predict(units, generator)

    def answers_under(
        self, predictors: Mapping[str, Callable[[pd.DataFrame], Array]], settings: Sequence[Mapping[str, Any] | None]
    ) -> Iterator[dict[str, Array]]:  # (d, settings, draws, q) each
        """Iterate over chunks of points: what each model says under each setting; None is the rows as they are.

        All settings use the units' own noise, so nothing but the setting differs between them.
        """
        worlds = [None if setting is None else self.scm.do(setting) for setting in settings]
        for places in row_chunks(self.n, self.units.draws):
            units = self.units.take(places)
            answers: dict[str, list[Array]] = {name: [] for name in predictors}
            for world in worlds:
                frame = self.scm.frame(units) if world is None else world.predict(units)
                for name, ask in predictors.items():
                    answers[name].append(ask(frame).reshape(len(places), self.units.draws, -1))
            yield {name: np.stack(each, axis=1) for name, each in answers.items()}

    def compared(
        self,
        predictors: Mapping[str, Callable[[pd.DataFrame], Array]],
        settings: Sequence[Mapping[str, Any]],
        pairs: Sequence[tuple[int, int]],
        thresholds: Mapping[str, Thresholds],
        moved_by: float,
    ) -> dict[str, list[list[dict[str, Array]]]]:
        """Per model, pair and output: each measure of each point, averaged over the draws of its noise."""
        parts: dict[str, list[list[dict[str, Array]]]] = {name: [] for name in predictors}
        for answers in self.answers_under(predictors, settings):
            for name, each in answers.items():
                parts[name].append([_pair(each[:, i], each[:, j], thresholds.get(name), moved_by) for i, j in pairs])
        return {
            name: [
                [
                    {measure: np.concatenate([part[measure][:, output] for part in same]) for measure in same[0]}
                    for output in range(same[0]["effect"].shape[1])
                ]
                for same in zip(*chunks, strict=True)
            ]
            for name, chunks in parts.items()
        }


def _pair(one: Array, two: Array, thresholds: Thresholds | None, moved_by: float) -> dict[str, Array]:  # (d, draws, q)
    measures = {"effect": (two - one).mean(axis=1), "moved": (np.abs(two - one) > moved_by).mean(axis=1)}
    if thresholds is not None:
        for key, t in (("flips", thresholds.given), ("flips_at_equal_rate", thresholds.equal_rate)):
            measures[key] = ((one > t) != (two > t)).mean(axis=1)
    return measures  # (d, q) each


def row_chunks(n: int, each: int = 1) -> Iterator[Array]:
    """Iterate over the places of n rows, few enough at a time that ``each`` counterfactual rows of each fit."""
    size = max(1, CHUNK_ROWS // each)
    for start in range(0, n, size):
        yield np.arange(start, min(start + size, n))


def table_of(scm: Any, rows: Any, needed: Sequence[str] = ()) -> tuple[pd.DataFrame, list[Any]]:
    """Check a model and rows; return the columns that the model knows, and the names of all others.

    All columns of the nodes that are ``needed`` must be there.
    """
    of_kind(scm, StructuralCausalModel, "scm", _ADVICE)
    table = scm.frame(rows) if isinstance(rows, Units) else rows
    if not isinstance(table, pd.DataFrame):
        raise InputTypeError(f"rows must be a pandas DataFrame, got {type(rows).__name__}; pass the table.")
    if table.empty:
        raise InputError("rows has no rows; pass at least two.")
    of_model, ignored = known_columns(scm, table)
    missing = [column for column in scm.columns(needed) if column not in of_model]
    if missing:
        raise InputError(f"rows lacks the protected column {missing[0]!r}; add it.")
    return checked_table(of_model, "rows"), ignored


def known_columns(scm: StructuralCausalModel, table: pd.DataFrame) -> tuple[pd.DataFrame, list[Any]]:
    """Split a table into the columns of the model's nodes and the names of all others, which nothing here reads."""
    of_model = table.columns.isin(scm.columns(scm.graph.observed))
    return table.loc[:, of_model], list(table.columns[~of_model])


def sample_with_every_label(rows: pd.DataFrame, most: int, generator: Generator) -> pd.DataFrame:
    """Sample rows where there are more than ``most``, and one more row for each label that the sample would lack."""
    if len(rows) <= most:
        return rows
    picked = set(generator.choice(len(rows), most, replace=False).tolist())
    for name in rows.columns:
        if not holds_numbers(rows[name]):
            codes = pd.factorize(rows[name])[0]
            _, first = np.unique(codes, return_index=True)
            seen = np.unique(codes[list(picked)])
            picked |= {int(row) for row in first if codes[row] not in seen}
    return rows.iloc[sorted(picked)]


def leaves_nothing_out(graph: CausalGraph, context: Collection[str], needed: Collection[str]) -> bool:
    """Whether the context holds every observed node that it, or what is needed, descends from."""
    return graph.ancestors([*context, *needed]) & set(graph.observed) <= set(context)


def read_by_encoders(scm: StructuralCausalModel) -> set[str]:
    """Return the nodes that latent nodes are read off: without one of them nothing is known of these."""
    encoders = (scm.mechanisms[node] for node in scm.graph.latent)
    return {name for encoder in encoders for name in getattr(encoder, "evidence", ())}


def context_that_can_be_drawn_from(
    scm: StructuralCausalModel, rows: pd.DataFrame, context: Collection[str]
) -> tuple[str, ...]:
    """Return the context, with its observed ancestors where they cannot be drawn given the context alone.

    Drawing them takes mechanisms that know how likely their values are, which not all do. What latent nodes are read
    off, be it the outcome, is always part of it.
    """
    graph = scm.graph
    context = tuple(dict.fromkeys([*context, *sorted(read_by_encoders(scm))]))
    if leaves_nothing_out(graph, context, ()):
        return context
    given = read_nodes(rows.head(2), scm.kinds, [node for node in context if set(scm.columns([node])) <= set(rows)])
    try:
        draw_hidden(graph, scm.mechanisms, given, 1, DEFAULT_CANDIDATES, np.random.default_rng(0))
    except InputError:
        return tuple(node for node in graph.observed if node in graph.ancestors(context))
    return context


def units_given(
    scm: StructuralCausalModel,
    rows: pd.DataFrame,
    context: Collection[str],
    needed: Collection[str],
    reached: Collection[str],
    n_draws: int,
    generator: Generator,
) -> Units:
    """Draw the noise of the nodes that are ``reached``, and values of all that are ``needed``, given the context.

    VCF as the paper defines it conditions on W [quinzan2024]: the inner mean runs over every noise that fits W = w, be
    it that of a latent node or of a column that W leaves out. Ancestors of the context that are not in it are drawn by
    weighting (`ciplearn.scm.noise`); what descends from it, or has nothing to do with it, from its mechanism.
    """
    given = read_nodes(rows, scm.kinds, context)
    hidden = draw_hidden(scm.graph, scm.mechanisms, given, n_draws, DEFAULT_CANDIDATES, generator) if given else None
    values: dict[str, Array] = {node: np.repeat(array, n_draws, axis=0) for node, array in given.items()}
    values |= {} if hidden is None else hidden.values
    noise: dict[str, Array] = {} if hidden is None else dict(hidden.noise)
    n = len(rows) * n_draws
    for node in scm.graph.topological_order():
        if node not in needed or node in noise:
            continue
        mechanism = scm.mechanisms[node]
        parents = {parent: values[parent] for parent in scm.graph.parents(node) if parent in values}
        if node not in values:
            noise[node] = mechanism.draw(n, generator)
            values[node] = mechanism.evaluate(parents, noise[node])
        elif node in reached:
            noise[node] = mechanism.posterior(parents, values[node], generator)
    effective = None if hidden is None else hidden.effective
    return Units(values, noise, rows.index, n_draws, exact=False, effective_draws=effective)


def as_known_beforehand(scm: StructuralCausalModel, rows: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """Return rows without their outcome, which nobody knows when a prediction is made.

    It stays where it acts on another column, whose own noise cannot be told without it, and where hidden nodes are read
    off it.
    """
    follow = scm.graph.descendants([outcome]) - {outcome}
    tells = outcome in read_by_encoders(scm) or not follow.isdisjoint(nodes_in(scm, rows.columns))
    return rows if tells or outcome not in rows.columns else rows.drop(columns=outcome)


def checked_protected(scm: Any, protected: Names) -> tuple[str, ...]:
    """Return the protected nodes, each known and observed."""
    of_kind(scm, StructuralCausalModel, "scm", _ADVICE)
    names: tuple[str, ...] = scm.graph.known_observed(as_names(protected, "protected"), "protected")
    if not names:
        raise InputError("Nothing is protected; name the variables whose change is imagined.")
    return names


def nodes_in(scm: StructuralCausalModel, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the observed nodes that some columns belong to."""
    shown = set(columns)
    return tuple(node for node in scm.graph.observed if not shown.isdisjoint(scm.columns([node])))


def known_by(verdict: Verdict, scm: StructuralCausalModel, table: pd.DataFrame) -> tuple[str, ...]:
    """The nodes that a point is known by: the context of the criterion, or more where the model cannot do with it."""
    present = nodes_in(scm, table.columns)
    # By default the context is everything but the outcome, and then what the table has is enough.
    everything = set(scm.graph.observed) - {verdict.outcome} <= set(verdict.context)
    context = [node for node in verdict.context if node in present or not everything]
    return context_that_can_be_drawn_from(scm, table, context)
