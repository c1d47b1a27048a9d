"""Unfinished training on disk: written whole or not at all, and tied to its rows and settings."""

from __future__ import annotations

import io
import os
import pickle
import time
from pathlib import Path
from typing import Any

import torch

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.files import checksum, whole_file

# Written at the end of an epoch, but not more often than this: a kill costs at most so many seconds and one epoch.
_SECONDS_BETWEEN = 2.0

# Of the checksum that a checkpoint begins with: a flipped bit would train on to another model.
_DIGITS = 64


class Checkpoint:
    """Where training writes its state, and finds it again after a kill.

    ``path``: A file; it exists while training is unfinished and is removed at the end. ``identity``: what the training
    is: rows, settings and network. A file of another training is refused.
    """

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputTypeError(f"checkpoint must be a path, got {path!r}; pass for example 'work.ckpt'.")
        self.path = Path(path)
        self.identity = identity
        self._written = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """Return the saved state, or None if there is no file."""
        try:
            if not self.path.exists():
                return None
        except OSError as error:
            raise InputError(f"{self.path} cannot name a checkpoint: {error.strerror}; pass another path.") from error
        damaged = InputError(
            f"The checkpoint {self.path} cannot be read, it is damaged or no checkpoint; delete it to start anew."
        )
        if not self.path.is_file():
            raise damaged
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise damaged from error
        said, state_bytes = content[:_DIGITS], content[_DIGITS:]
        if checksum(state_bytes).encode() != said:
            raise damaged
        try:
            # Tensors and plain values only: loading never runs code from the file.
            state = torch.load(io.BytesIO(state_bytes), map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
            raise damaged from error
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
        content = io.BytesIO()
        torch.save({"identity": self.identity, **state}, content)
        with whole_file(self.path) as stream:
            stream.write(checksum(content.getvalue()).encode())
            stream.write(content.getbuffer())
        self._written = time.monotonic()

    def remove(self) -> None:
        """Forget the state: training is done."""
        self.path.unlink(missing_ok=True)
