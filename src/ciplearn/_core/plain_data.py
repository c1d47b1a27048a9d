"""Results as plain data, which JSON can hold; and files that map names to values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.errors import InputError, optional_module
from ciplearn._core.files import read_bounded

# Of a file that maps names to values: it has a few lines, and hardly anything within anything.
_LARGEST_MIB, _DEEPEST = 1, 20
_LONG_NUMBER = re.compile(r"(?<![\w.])\d[\w.:]{300}")
_KEY = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?<![\w-]){_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{100}}")


def as_data(value: Any) -> Any:
    """Return a value as plain data, all the way down.

    A number that JSON does not have, NaN or infinity, is None. A frame is a list of its rows, a dataclass a dict of its
    fields, unless it has a ``to_dict`` of its own. What is none of this is its text.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.generic):
        number = value.item() if isinstance(value, np.generic) else value
        return None if isinstance(number, float) and not math.isfinite(number) else number
    if isinstance(value, Mapping):
        return {str(key): as_data(entry) for key, entry in value.items()}
    if isinstance(value, pd.DataFrame):
        return as_data(value.astype(object).where(value.notna(), None).to_dict(orient="records"))
    if hasattr(value, "_asdict"):
        return as_data(value._asdict())
    if isinstance(value, list | tuple | range):
        return [as_data(entry) for entry in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return fields_as_data(value) if is_dataclass(value) else str(value)


def fields_as_data(result: Any, *left_out: str, **more: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as plain data, some of them left out, with what else there is to say."""
    values = {field.name: getattr(result, field.name) for field in fields(result) if field.name not in left_out}
    return {name: as_data(value) for name, value in {**values, **more}.items()}


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML, TOML or JSON file that maps names to values, of bounded size and depth."""
    try:
        text = read_bounded(path, _LARGEST_MIB).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: it is not UTF-8 text; pass a YAML, TOML or JSON file.") from error
    content = _parsed(path, text)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InputError(f"{path} must map names to values, got {type(content).__name__}; write lines such as 'a: 1'.")
    return content


def _parsed(path: Path, text: str) -> Any:
    kind = path.suffix.lower()
    if _LONG_NUMBER.search(text):
        raise InputError(f"{path} holds a number of more than 300 digits; write it with fewer.")
    try:
        if kind == ".json":
            return json.loads(text)
        if kind == ".toml":
            import tomllib

            # Its time grows with the square of a key's depth.
            if _DEEP_KEY.search(text):
                raise RecursionError
            return tomllib.loads(text)
        if kind in (".yaml", ".yml"):
            return _yaml(text)
    except RecursionError:
        raise InputError(f"{path} has lists or mappings within each other, too deep to read; write it flat.") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid {kind[1:].upper()}: {error}; correct that place.") from error
    raise InputError(f"{path} ends in {kind or 'nothing'!r}; name it .yaml, .toml or .json, to say its notation.")


def _yaml(text: str) -> Any:
    yaml = optional_module("yaml", "YAML files need pyyaml", "pip install 'ciplearn[yaml]', or write TOML or JSON")
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                # A few lines of aliases can stand for more values than any memory holds.
                raise ValueError(f"the alias *{event.anchor} stands for other lines; write them out")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise RecursionError
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
