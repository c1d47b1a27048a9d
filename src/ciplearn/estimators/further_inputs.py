"""What a network takes beside the encoded table: tensors in memory, and datasets that are read when needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, StackDataset, Subset

from ciplearn._core.errors import InputError
from ciplearn.learning.dataset_rows import read_batches


@dataclass(frozen=True)
class FurtherInputs:
    """Tensors first, then what the dataset holds; one entry a row each."""

    tensors: tuple[Tensor, ...] = ()
    dataset: Dataset[Any] | None = None

    @classmethod
    def of(cls, parts: Sequence[Any]) -> Self:
        """Sort what was passed as ``tensors``."""
        datasets = [part for part in parts if isinstance(part, Dataset)]
        tensors = [torch.as_tensor(part) for part in parts if not isinstance(part, Dataset)]
        if any(isinstance(part, Dataset) for part in parts[: len(tensors)]):
            raise InputError(
                "Tensors come before datasets among a network's inputs, got a dataset first; reorder them."
            )
        if not datasets:
            return cls(tuple(tensors))
        return cls(tuple(tensors), datasets[0] if len(datasets) == 1 else StackDataset(*datasets))

    @property
    def is_empty(self) -> bool:
        """Whether the network takes the table only."""
        return not self.tensors and self.dataset is None

    def take(self, kept: np.ndarray) -> Self:
        """Return the entries of some rows."""
        where = torch.from_numpy(kept)
        positions = torch.arange(len(where))[where].tolist()
        dataset = None if self.dataset is None else Subset(self.dataset, positions)
        return type(self)(tuple(part[where] for part in self.tensors), dataset)

    def read(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the entries of a few rows, read where they were not in memory."""
        read = () if self.dataset is None else next(read_batches(self.dataset, [rows]))
        return (*(part[rows] for part in self.tensors), *read)
