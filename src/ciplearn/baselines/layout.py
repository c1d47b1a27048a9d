"""Encoded rows, and where in them each column stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import pandas as pd
import torch
from torch import Tensor

from ciplearn._core.columns import CATEGORY, TableEncoding
from ciplearn.baselines.latents import Part


@dataclass(frozen=True)
class Layout:
    """The encoding of several columns side by side: a number in [0, 1], or one indicator a level."""

    encoding: TableEncoding

    @classmethod
    def of(cls, table: pd.DataFrame, names: Iterable[str]) -> Self:
        """Learn the encoding of the named columns on training rows."""
        return cls(TableEncoding.of(table, tuple(dict.fromkeys(names))))

    def rows(self, table: pd.DataFrame) -> Tensor:  # (n, width)
        """Encode rows."""
        return torch.from_numpy(self.encoding.features(table))

    def places(self, names: Iterable[str]) -> list[int]:
        """Positions of the named columns in an encoded row."""
        return self.encoding.places(tuple(names))

    def is_category(self, name: str) -> bool:
        """Whether a column holds categories."""
        return next(column.kind == CATEGORY for column in self.encoding.columns if column.name == name)

    def parts(self, names: Iterable[str]) -> list[Part]:
        """Where the named columns stand in a row that holds nothing else."""
        found = [column for name in names for column in self.encoding.columns if column.name == name]
        ends = accumulate(column.width for column in found)
        return [
            Part(slice(end - column.width, end), column.width, column.kind == CATEGORY)
            for column, end in zip(found, ends, strict=True)
        ]
