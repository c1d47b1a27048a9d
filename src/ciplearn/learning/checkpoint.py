"""Unfinished training on disk: written whole or not at all, and tied to its rows and settings."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any

import torch

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.files import whole_file

# Written at the end of an epoch, but not more often than this: a kill costs at most so many seconds and one epoch.
_SECONDS_BETWEEN = 2.0


class Checkpoint:
    """Where training writes its state, and finds it again after a kill.

    Parameters
    ----------
    path : path
        A file; it exists while training is unfinished and is removed at the end.
    identity : str
        What the training is: rows, settings and network. A file of another training is refused.
    """

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputTypeError(f"checkpoint must be a path, got {path!r}; pass for example 'work.ckpt'.")
        self.path = Path(path)
        self.identity = identity
        self._written = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """Return the saved state, or None if there is no file."""
        if not self.path.exists():
            return None
        try:
            # Tensors and plain values only: loading never runs code from the file.
            state = torch.load(self.path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
            raise InputError(
                f"The checkpoint {self.path} cannot be read, it is damaged or no checkpoint; delete it to start anew."
            ) from error
        if not isinstance(state, dict) or state.get("identity") != self.identity:
            raise InputError(
                f"The checkpoint {self.path} belongs to a training on other rows or with other settings; "
                f"delete it, or pass another path."
            )
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Write the state, if the last one is old enough; a kill while writing leaves the last one in place."""
        if time.monotonic() - self._written < _SECONDS_BETWEEN:
            return
        with whole_file(self.path) as stream:
            torch.save({"identity": self.identity, **state}, stream)
        self._written = time.monotonic()

    def remove(self) -> None:
        """Forget the state: training is done."""
        self.path.unlink(missing_ok=True)
