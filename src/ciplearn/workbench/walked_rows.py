"""`WalkedRows`: the rows of a table, in the kinds of the drawing, cut into those that train, judge and are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from ciplearn._core.columns import CLASSIFICATION, task_of
from ciplearn._core.row_digests import copy_groups
from ciplearn.cli.trained_rows import held_out_rows
from ciplearn.cli.training_table import as_target
from ciplearn.workbench.document import Document
from ciplearn.workbench.tables import Table

# The share of rows that ``ciplearn fit`` keeps from training, by default.
_HELD_OUT = 0.2

# Of the others, the share that judges.
_JUDGES = 0.25


@dataclass(frozen=True, eq=False)
class WalkedRows:
    """Three fifths train and a fifth judges; the fifth that ``ciplearn fit`` keeps for its audit is seen by neither."""

    task: str
    every: pd.DataFrame  # all complete rows, outcome included; labels as the command line has them
    # training, judging, held: without, among those that judge, labels that training has not seen: no probability was
    # learnt for them
    training: pd.DataFrame
    judging: pd.DataFrame
    held: pd.DataFrame

    @classmethod
    def of(cls, table: Table, document: Document, seed: int) -> Self:
        """Read a table as a drawing says, and cut it: always alike for the same table and seed."""
        outcome = document.verdict().outcome
        rows = table.typed(document)
        task = task_of(rows[outcome])
        if task == CLASSIFICATION:
            labels = as_target(rows[outcome], task).astype("category").cat.remove_unused_categories()
            rows = rows.assign(**{outcome: labels})
        # Copies of a row stay together; a row with a gap is none.
        copies = np.arange(len(table.text))
        copies[rows.index] = rows.index[copy_groups(rows)]
        kept = rows.index.isin(held_out_rows(len(copies), _HELD_OUT, seed, copies))
        seen = rows[~kept]
        judges = np.zeros(len(seen), dtype=bool)
        judges[held_out_rows(len(seen), _JUDGES, seed, copies[seen.index])] = True
        training, judging = seen[~judges], seen[judges]
        if task == CLASSIFICATION:
            judging = judging[judging[outcome].isin(training[outcome].unique())]
        return cls(task, rows, training, judging, rows[kept])
