"""The joint law of discrete nodes, read from rows or from probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import check_cells
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal.names import nearest

Values = tuple[int, ...]  # one level number per node


@dataclass(frozen=True)
class DiscreteLaw:
    """Cells with their probabilities; levels are numbered in their natural order."""

    levels: Mapping[str, tuple[Any, ...]]  # the levels of each node
    cells: pd.DataFrame  # every cell of positive probability
    weights: np.ndarray  # its probability

    @classmethod
    def read(cls, probabilities: pd.DataFrame | pd.Series, nodes: Sequence[str]) -> DiscreteLaw:
        """Read a frame of rows, or a Series of joint probabilities indexed by the nodes."""
        if isinstance(probabilities, pd.DataFrame):
            cells, weights = _rows(probabilities, nodes)
        elif isinstance(probabilities, pd.Series):
            cells, weights = _cells(probabilities, nodes)
        else:
            raise InputTypeError(
                "probabilities must be a pandas frame of rows or a Series of joint probabilities, but "
                f"{type(probabilities).__name__} was received; convert it."
            )
        numbered, levels = {}, {}
        for node in nodes:
            numbered[node], found = pd.factorize(cells[node], sort=True)
            levels[node] = tuple(found)
        return cls(levels, pd.DataFrame(numbered), weights)

    def number(self, node: str, level: Any, role: str) -> int:
        """Return the number of a level, or say which levels there are."""
        for number, known in enumerate(self.levels[node]):
            if known == level:
                return number
        shown = ", ".join(str(known) for known in self.levels[node][:8])
        raise InputError(
            f"{role} gives {node!r} the level {level!r}, which the probabilities do not have; its levels are {shown}"
            f"{', ...' if len(self.levels[node]) > 8 else ''}."
        )

    def size(self, node: str) -> int:
        """The number of levels of a node."""
        return len(self.levels[node])

    @cached_property
    def _masses(self) -> dict[tuple[str, ...], dict[Values, float]]:
        return {}

    def mass(self, values: Mapping[str, int]) -> float:
        """P(nodes = values); 1 for no nodes at all."""
        nodes = tuple(sorted(values))
        if not nodes:
            return 1.0
        if nodes not in self._masses:
            groups = pd.Series(self.weights).groupby([self.cells[node] for node in nodes]).sum()
            keys = groups.index if len(nodes) > 1 else [(key,) for key in groups.index]
            self._masses[nodes] = {tuple(key): float(mass) for key, mass in zip(keys, groups, strict=True)}
        return self._masses[nodes].get(tuple(values[node] for node in nodes), 0.0)


def _rows(rows: pd.DataFrame, nodes: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray]:
    _has_all([str(column) for column in rows.columns], nodes, "column")
    if not rows.columns.is_unique:
        raise InputError("probabilities has two columns of the same name; rename one of them.")
    kept = rows[list(nodes)]
    if not len(kept):
        raise InputError("probabilities has no rows; pass at least one.")
    for name in nodes:
        check_cells(kept[name])
    missing = kept.columns[kept.isna().any()]
    if len(missing):
        count = int(kept[missing[0]].isna().sum())
        raise InputError(f"{missing[0]!r} is missing in {count} of {len(kept)} rows; drop or impute them.")
    counts = kept.value_counts(sort=False)
    return counts.index.to_frame(index=False), counts.to_numpy() / len(kept)


def _cells(law: pd.Series, nodes: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray]:
    if None in law.index.names:
        raise InputError(
            "The index of probabilities has no names; name its levels after the observed nodes, for example with "
            "rename_axis()."
        )
    _has_all([str(name) for name in law.index.names], nodes, "index level")
    values = law.to_numpy(dtype=float)
    if not np.isfinite(values).all() or (values < 0).any() or abs(values.sum() - 1.0) > 1e-6:
        raise InputError(
            f"Probabilities must be at least 0 and add up to 1, but they add up to {values.sum():.6g} and the smallest "
            f"is {values.min(initial=0.0):.3g}; divide by their sum, or pass the rows themselves."
        )
    if not law.index.is_unique:
        raise InputError("The index of probabilities names a cell twice; add such entries up with groupby().sum().")
    # Levels count even where their probability is 0: a question may set them.
    return law.index.to_frame(index=False), values / values.sum()


def _has_all(known: Sequence[str], nodes: Sequence[str], kind: str) -> None:
    for node in nodes:
        if node not in known:
            raise InputError(
                f"probabilities has no {kind} for the observed node {node!r}; {nearest(node, list(known), f'{kind}s')} "
                "If nobody has observed it, mark the node as latent."
            )
