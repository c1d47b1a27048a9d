"""Whether protected columns form groups, or are numbers with distances."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ciplearn._core.columns import takes_few_values

# With more groups than this, groups are too small to compare their laws.
_MOST_GROUPS = 50


def form_groups(table: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Whether the rows of some columns are few enough to be compared as groups."""
    chosen = table[list(columns)]
    if not all(takes_few_values(chosen[name]) for name in chosen.columns):
        return False
    return len(chosen.drop_duplicates()) <= min(_MOST_GROUPS, max(2, len(table) // 2))
