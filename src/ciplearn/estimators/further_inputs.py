"""What a network takes beside the encoded table: tensors in memory, and datasets that are read when needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, StackDataset, Subset

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.estimators.complaints import one_sentence
from ciplearn.learning.dataset_rows import checked_length, read_batches


@dataclass(frozen=True)
class FurtherInputs:
    """Tensors first, then what the dataset holds; one entry a row each."""

    tensors: tuple[Tensor, ...] = ()
    dataset: Dataset[Any] | None = None

    @classmethod
    def of(cls, parts: Sequence[Any], n_rows: int) -> Self:
        """Sort what was passed as ``tensors``, one entry a row each."""
        if not isinstance(parts, list | tuple):
            raise InputTypeError(f"tensors must be a list, got {type(parts).__name__}; pass for example [images].")
        datasets = [part for part in parts if isinstance(part, Dataset)]
        tensors = [_as_tensor(part) for part in parts if not isinstance(part, Dataset)]
        for size in (*map(checked_length, datasets), *(len(part) for part in tensors)):
            if size != n_rows:
                raise InputError(f"One of the tensors has {size} entries for {n_rows} rows; pass one entry a row.")
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


def _as_tensor(part: Any) -> Tensor:
    with one_sentence("One of the tensors cannot be used", "pass numbers with one entry a row"):
        tensor = torch.as_tensor(part.to_numpy() if hasattr(part, "to_numpy") else part)
        if tensor.dim() == 0:
            raise InputError("One of the tensors is a single number; pass one entry a row.")
    # Networks compute in single precision, numpy in double.
    return tensor.float() if tensor.dtype == torch.float64 else tensor
