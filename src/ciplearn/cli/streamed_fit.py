"""Fitting a table beyond memory: everything is chosen on rows drawn from all files, then one training sees all rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from ciplearn._core.column_sums import ColumnSum, TableSums
from ciplearn._core.columns import CATEGORY, in_kinds, read_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.rows import RowsDrawn, TrainedRows, digested, row_digests, smallest
from ciplearn._core.workers import Engine, give_back_what_is_free, give_back_what_is_freed
from ciplearn.cli.output import note, progress
from ciplearn.cli.plan import Plan
from ciplearn.cli.training import Trained, scored, train
from ciplearn.cli.training_table import FitRequest, TrainingTable, nodes_in, refuse_beyond_floats, stray_text
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.streaming import fit_stream
from ciplearn.learning import Frontier
from ciplearn.sources import Part, TableFiles

# Rows that gamma is chosen on, and that are kept for the audit.
_ROWS_TO_CHOOSE = 40_000

# Of rows that chance repeats more often copies are not told from others.
_BY_CHANCE = 0.05

# The training on all rows takes so many times the steps of one on these rows, and goes through all rows so often.
_MORE_STEPS, _LEAST_EPOCHS = 3, 3


@dataclass(frozen=True)
class _Looking:
    """A part as sums over its columns."""

    columns: tuple[str, ...]
    categories: frozenset[str]

    def __call__(self, part: Part) -> TableSums:
        sums = TableSums(self.columns, self.categories)
        for chunk in part.chunks(self.columns, self.categories):
            sums.update(chunk, part.where)
        return sums


@dataclass(frozen=True)
class _Drawing:
    """Some rows of a part, drawn at random."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]

    def __call__(self, job: tuple[Part, int]) -> RowsDrawn:
        part, start = job
        drawn = RowsDrawn(_ROWS_TO_CHOOSE)
        numbers = [name for name in self.columns if name not in self.labels]
        for chunk in part.chunks(self.columns, self.labels):
            # As numbers they take a tenth of the memory of their text.
            known = chunk.assign(**{name: read_numbers(chunk[name]) for name in numbers})
            drawn.update(known.set_axis(known.index + start))
        return drawn


def sampled_table(source: TableFiles, request: FitRequest, engine: Engine) -> TrainingTable:
    """Settle kinds on all rows, and everything else on rows that are drawn from all files."""
    give_back_what_is_freed()
    nodes = tuple(nodes_in(request, source.names))
    parts = source.parts()
    total = TableSums(nodes, request.categories)
    sizes = []
    with source.unchanged(), progress("reading", "part", 2 * len(parts)) as bar:
        identity = source.identity()
        for sums in engine.each(_Looking(nodes, frozenset(request.categories)), parts):
            total.merge(sums)
            sizes.append(sums.rows)
            bar.update()
        kinds = total.finalise()
        categories = _categories(kinds, request)
        drawn = RowsDrawn(_ROWS_TO_CHOOSE)
        starts = [sum(sizes[:number]) for number in range(len(sizes))]
        for some in engine.each(_Drawing(nodes, tuple(categories)), list(zip(parts, starts, strict=True))):
            drawn.merge(some)
            bar.update()
    # What is a category in one file is one in all, also among the rows that were drawn.
    settled = replace(request, categories=tuple(dict.fromkeys((*request.categories, *categories))))
    return TrainingTable.understood(drawn.finalise(), source.names, identity, settled, total.rows)


@dataclass(frozen=True)
class _Telling:
    """The digests of the rows of a part, all or the smallest, and the places of rows that are like those held out."""

    kinds: Mapping[str, str]
    held_out: np.ndarray[Any, Any]

    def __call__(self, part: Part) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
        labels = [name for name, kind in self.kinds.items() if kind == CATEGORY]
        digests, copies, n_rows = np.empty(0, dtype=np.uint64), [np.empty(0, dtype=np.int64)], 0
        for chunk in part.chunks(list(self.kinds), labels):
            own = row_digests(in_kinds(chunk, self.kinds, part.where), list(self.kinds))
            held = np.isin(own, self.held_out)
            digests = smallest(np.concatenate([digests, own[~held]]))
            copies.append(n_rows + np.flatnonzero(held))
            n_rows += len(chunk)
        return digests, np.concatenate(copies), n_rows


def told_apart(rows: TrainingTable, source: TableFiles, engine: Engine) -> TrainingTable:
    """Keep copies of held-out rows from training wherever they are, and what the rows that train are known by.

    Where chance repeats rows like those that were drawn, as it does those of a few categories, nothing is told.
    """
    columns = tuple(rows.told_by)
    digests, repeats = digested(rows.table, rows.told_by)
    # As often more as there are more rows.
    chance = float(np.minimum(1, repeats * rows.n_rows / len(digests)).mean())
    if chance > _BY_CHANCE:
        return replace(rows, trained=TrainedRows.of(columns, digests[:0], repeats[:0]))
    held_out = np.unique(digests[rows.table.index.isin(rows.held_out)])
    tell = _Telling(rows.told_by, held_out)
    parts = source.parts()
    trained, copies, start = np.empty(0, dtype=np.uint64), [rows.held_out], 0
    with source.unchanged(), progress("telling rows apart", "part", len(parts)) as bar:
        for own, places, n_rows in engine.each(tell, parts):
            trained = smallest(np.concatenate([trained, own]))
            copies.append(start + places)
            start += n_rows
            bar.update()
    known = TrainedRows.of(columns, trained, np.full(len(trained), chance))
    return replace(rows, held_out=np.unique(np.concatenate(copies)), trained=known)


def _categories(kinds: Mapping[str, ColumnSum], request: FitRequest) -> list[str]:
    """Columns that hold labels; a stray one among numbers is named with its file."""
    found = []
    for name, column in kinds.items():
        if column.kind != CATEGORY:
            continue
        found.append(name)
        confirmed = name in request.categories or (name == request.outcome and request.task is not None)
        if column.stray is None or confirmed:
            continue
        labels = pd.Series(list(column.labels), name=name)
        if name != request.outcome or len(labels) != 2:
            refuse_beyond_floats(labels, "--task classification" if name == request.outcome else f"--categories {name}")
        if stray_text(labels) is not None:
            cell, where = column.stray
            raise InputError(
                f"Column {name!r} holds mostly numbers, but also cells like {cell!r} in {where}; correct these, name "
                f"them with --na, or pass --categories {name}."
            )
    return found


def train_streamed(base: CIPEstimator, rows: TrainingTable, plan: Plan, source: TableFiles, engine: Engine) -> Trained:
    """Choose route and gamma on the rows that were drawn, then train on all rows but those kept for the audit."""
    torch.set_num_threads(1)
    give_back_what_is_free()
    some, steps = len(rows.training()[0]), math.ceil(rows.n_rows / base.batch_size)
    wanted = _MORE_STEPS * base.epochs * math.ceil(some / base.batch_size)
    count = plan.epochs or max(_LEAST_EPOCHS, math.ceil(wanted / steps))
    if plan.gamma is not None and not plan.compare:
        # Nothing is left to choose.
        trained, how = Trained(clone(base).set_params(gamma=plan.gamma), {}, Frontier(()), "", {}), ""
    else:
        trained, how = train(base, rows, plan), f"chosen on {some} rows drawn from all; now "
    if source.identity() != rows.identity:
        raise InputError(f"{source.path} was changed since rows were drawn from it; run again when it is written.")
    note(f"{how}training on {rows.n_rows} rows, {count} epochs.")
    labels = [name for name, kind in rows.kinds.items() if kind == CATEGORY]
    model = fit_stream(
        clone(trained.model).set_params(epochs=count, verbose=True),
        source,
        rows.outcome,
        engine,
        left_out=rows.held_out,
        categories=labels,
        share=getattr(trained.model, "share_", None),
    )
    # What was chosen knows its route; where nothing was, the fit has found it.
    model.route_ = getattr(trained.model, "route_", model.route_)
    give_back_what_is_free()
    return replace(trained, model=model.set_params(verbose=False), scores=scored(model, rows))
