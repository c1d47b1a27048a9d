"""Rows of a table as they would be in other worlds, where the protected variables have other values."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor


class ImaginedRows(ABC):
    """For each row, the network's inputs as they would be in m worlds that differ in the protected variables.

    ``device``: where rows arrive. ``weights``: the probability of each world, where the worlds are all the values that
    the protected variables take. None where each row has m values of its own, drawn from their law.
    """

    n_rows: int
    n_worlds: int
    device: torch.device
    weights: Tensor | None

    @abstractmethod
    def read(self, index: Tensor, worlds: Tensor) -> tuple[Tensor, ...]:  # (b,), (k,) -> (b, k, ...) each
        """Return the inputs of some rows in some worlds."""

    @abstractmethod
    def take(self, index: Tensor) -> ImaginedRows:
        """Return some of the rows."""

    @abstractmethod
    def to(self, device: torch.device) -> ImaginedRows:
        """Return rows that arrive on a device."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """What tells them apart from others."""


@dataclass(frozen=True)
class ImaginedTensors(ImaginedRows):
    """Imagined inputs in memory, each of shape (n, m, ...)."""

    inputs: tuple[Tensor, ...]
    weights: Tensor | None = None

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """N."""
        return self.inputs[0].shape[0]

    @property
    def n_worlds(self) -> int:  # type: ignore[override]
        """M."""
        return self.inputs[0].shape[1]

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where the tensors are."""
        return self.inputs[0].device

    def read(self, index: Tensor, worlds: Tensor) -> tuple[Tensor, ...]:
        """Look the rows up."""
        return tuple(part[index.to(part.device)[:, None], worlds.to(part.device)] for part in self.inputs)

    def take(self, index: Tensor) -> ImaginedTensors:
        """Cut the tensors."""
        return replace(self, inputs=tuple(part[index.to(part.device)] for part in self.inputs))

    def to(self, device: torch.device) -> ImaginedTensors:
        """Move the tensors."""
        weights = None if self.weights is None else self.weights.to(device)
        return replace(self, inputs=tuple(part.to(device) for part in self.inputs), weights=weights)

    @property
    def identity(self) -> str:
        """A digest of all entries."""
        digest = hashlib.sha256()
        for part in self.inputs:
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()
