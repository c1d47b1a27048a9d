"""Whether protected columns form groups, or are numbers with distances."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ciplearn.estimators.encoding import is_number

# A number with more values than this has distances that matter.
_MOST_VALUES = 10

# With more groups than this, groups are too small to compare their laws.
_MOST_GROUPS = 50


def is_discrete(column: pd.Series) -> bool:
    """Whether a column holds categories, or numbers that take few values."""
    return not is_number(column) or column.nunique() <= _MOST_VALUES


def form_groups(table: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Whether the rows of some columns are few enough to be compared as groups."""
    chosen = table[list(columns)]
    if not all(is_discrete(chosen[name]) for name in chosen.columns):
        return False
    return len(chosen.drop_duplicates()) <= min(_MOST_GROUPS, max(2, len(table) // 2))
