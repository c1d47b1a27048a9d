"""Answers that are kept on disk, line by line, and the short name of values by which they know what they belong to."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from ciplearn._core.columns import as_frame
from ciplearn._core.errors import InputError

_HOLDS_NOTHING_ELSE = (bool, int, float, str, bytes, type, np.generic, np.ndarray, torch.Tensor, nn.Module)


class KeptAnswers:
    """Answers to one question, a line each, written down as they come: a job that was stopped goes on where it was.

    ``path``: the file, which may not be there yet. ``digest``: what tells the question apart: a file with answers to
    another one is refused. ``known``: answers that the file holds, by key.
    """

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path, self.digest = Path(path), digest
        self.known: dict[str, dict[str, Any]] = {}
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        # A line that a kill has cut short is forgotten, and written anew.
        whole = content[: content.rfind(b"\n") + 1]
        for line in whole.splitlines():
            try:
                entry = json.loads(line)
                key, answer, other = entry["key"], entry["answer"], entry["digest"]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path} holds no answers of this kind; name another file, or delete it.") from error
            if other != digest:
                raise InputError(f"{path} holds answers to another question; name another file, or delete this one.")
            self.known[key] = answer
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))

    def add(self, key: str, answer: dict[str, Any]) -> None:
        """Write an answer down."""
        self.known[key] = answer
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"key": key, "digest": self.digest, "answer": answer}) + "\n")
            stream.flush()
            os.fsync(stream.fileno())


def digest_of(*values: Any) -> str:
    """Return 16 hexadecimal digits that differ where the values do.

    Tables, arrays, tensors and networks count with their numbers, functions with their code and the plain values that
    they hold, objects that have ``digest_parts`` with these, unknown ones with the name of their class only.
    """
    total = hashlib.sha256()
    for part in _parts(values):
        # With its length each part stays apart from the next.
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.hexdigest()[:16]


def _parts(value: Any) -> Iterator[bytes]:
    """Bytes that say what a value is; never its ``repr``, which may hold an address in memory."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str | bytes):
        yield repr(value).encode()
    elif isinstance(value, list | tuple):
        yield f"sequence of {len(value)}".encode()
        for entry in value:
            yield from _parts(entry)
    elif isinstance(value, set | frozenset):
        yield from _parts(sorted(digest_of(entry) for entry in value))
    elif isinstance(value, Mapping):
        yield from _parts(sorted((digest_of(key), digest_of(entry)) for key, entry in value.items()))
    elif isinstance(value, pd.Series | pd.Index):
        yield from _parts(value.to_frame())
    elif isinstance(value, np.ndarray):
        yield from _array_parts(value)
    elif isinstance(value, torch.Tensor):
        yield from _array_parts(value.detach().cpu().numpy())
    elif isinstance(value, nn.Module):
        yield from _parts([(name, type(part)) for name, part in value.named_modules()])
        yield from _parts(value.state_dict())
    elif isinstance(value, partial):
        yield from _parts((value.func, value.args, value.keywords))
    elif isinstance(value, FunctionType):
        yield from _function_parts(value)
    elif hasattr(value, "digest_parts") and not isinstance(value, type):
        yield from _parts((type(value), value.digest_parts()))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _parts(type(value))
        yield from _parts({field.name: getattr(value, field.name) for field in fields(value) if field.compare})
    elif (frame := as_frame(value)) is not None:
        yield from _parts([(name, str(dtype)) for name, dtype in frame.dtypes.items()])
        yield pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
    elif hasattr(value, "to_numpy"):
        yield from _array_parts(value.to_numpy())
    else:
        named = value if hasattr(value, "__qualname__") else type(value)
        yield f"{named.__module__}.{named.__qualname__}".encode()


def _function_parts(function: FunctionType) -> Iterator[bytes]:
    yield f"{function.__module__}.{function.__qualname__}".encode()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        yield from _parts((code.co_code, code.co_names))
        codes.extend(entry for entry in code.co_consts if isinstance(entry, CodeType))
        yield from _parts([entry for entry in code.co_consts if not isinstance(entry, CodeType)])
    # What a function holds may hold the function: only what holds nothing else is looked into.
    values = [*(function.__defaults__ or ()), *(cell.cell_contents for cell in function.__closure__ or ())]
    yield from _parts([value if isinstance(value, _HOLDS_NOTHING_ELSE) else type(value) for value in values])


def _array_parts(array: np.ndarray) -> Iterator[bytes]:
    yield f"{array.dtype.str} {array.shape}".encode()
    if array.dtype.hasobject:
        array = pd.util.hash_array(array.ravel())
    yield np.ascontiguousarray(array).tobytes()
