"""Estimated models as one file: numbers as safetensors, everything else as JSON in its header. No pickle.

What is written are the dataclasses that mechanisms are made of, field by field, each registered under its name by the
line ``@kept`` above it. A mechanism with foreign parts, such as a scikit-learn regressor, is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as save_arrays
from torch import nn

from ciplearn._core.errors import InputError
from ciplearn._core.files import whole_file

Array = np.ndarray[Any, Any]
_Part = TypeVar("_Part", bound=type)

_FORMAT = "1"
_HEADER = "ciplearn.scm"

# The classes that a saved model may be made of, by name; nothing else is ever made from a file.
KEPT: dict[str, type] = {}


def kept(part: _Part) -> _Part:
    """Register a dataclass whose fields are data, networks, or registered themselves.

    A class that cannot be made from its fields alone has a ``restored(fields)`` that makes one.
    """
    KEPT[part.__name__] = part
    return part


def write_parts(parts: Mapping[str, Any], path: Path) -> None:
    """Write named parts of a model to one file, whole or not at all."""
    arrays: dict[str, Array] = {}
    content = {name: _written(part, arrays, name) for name, part in parts.items()}
    header = {_HEADER: json.dumps(content, allow_nan=False), "format": _FORMAT}
    with whole_file(path) as stream:
        stream.write(save_arrays(arrays, metadata=header))


def read_parts(path: Path) -> dict[str, Any]:
    """Read what `write_parts` wrote."""
    try:
        with safe_open(str(path), framework="numpy") as stream:
            header = stream.metadata() or {}
            arrays = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read as a saved model: {error}; write it anew with save.") from error
    if header.get("format") != _FORMAT or _HEADER not in header:
        raise InputError(f"{path} holds no causal model that this version reads; write it anew with save.")
    try:
        return {name: _read(part, arrays) for name, part in json.loads(header[_HEADER]).items()}
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{path} is damaged: {error!r}; write it anew with save.") from error


def _written(value: Any, arrays: dict[str, Array], node: str) -> Any:
    """Return a value as JSON, its arrays by their place among ``arrays``."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float):
        return value if isinstance(value, int) or math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray) and value.dtype == object:
        levels = list(dict.fromkeys(value.tolist()))
        code_of = {level: code for code, level in enumerate(levels)}
        codes = np.array([code_of[label] for label in value], dtype=np.int64)
        return {"labels": [_written(level, arrays, node) for level in levels], "codes": _written(codes, arrays, node)}
    if isinstance(value, np.ndarray):
        name = str(len(arrays))
        arrays[name] = np.ascontiguousarray(value)
        return {"array": name}
    if isinstance(value, tuple | list):
        return {"tuple": [_written(part, arrays, node) for part in value]}
    if isinstance(value, Mapping):
        # A mapping is by node, so what cannot be written is named by its key.
        return {"mapping": [[key, _written(part, arrays, str(key))] for key, part in value.items()]}
    if isinstance(value, nn.Module):
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in value.state_dict().items()}
        return {"network": {name: _written(array, arrays, node) for name, array in weights.items()}}
    if KEPT.get(type(value).__name__) is type(value) and is_dataclass(value):
        return {
            "class": type(value).__name__,
            "fields": {field.name: _written(getattr(value, field.name), arrays, node) for field in fields(value)},
        }
    raise InputError(
        f"The mechanism of {node} holds a {type(value).__name__}, which cannot be kept as data; leave its mechanism to "
        "fit_scm, or keep the table and fit again."
    )


def _read(value: Any, arrays: Mapping[str, Array]) -> Any:
    """Undo `_written`."""
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "array" in value:
        return arrays[value["array"]]
    if "labels" in value:
        labels = np.empty(len(value["labels"]), dtype=object)
        labels[:] = value["labels"]
        return labels[_read(value["codes"], arrays)]
    if "tuple" in value:
        return tuple(_read(part, arrays) for part in value["tuple"])
    if "mapping" in value:
        return {key: _read(part, arrays) for key, part in value["mapping"]}
    if "network" in value:
        return {name: _read(array, arrays) for name, array in value["network"].items()}
    parts = {name: _read(part, arrays) for name, part in value["fields"].items()}
    part = KEPT[value["class"]]
    return part.restored(parts) if hasattr(part, "restored") else part(**parts)
