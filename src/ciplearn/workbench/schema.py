"""The one reader of what comes in: messages, links and saved files are checked against a schema before anything else.

A schema is a part of JSON Schema: type, enum, minimum, maximum, maxLength, pattern, items, minItems, maxItems,
properties, required and additionalProperties. Beyond it, every number is finite, every text can be written as UTF-8,
and nothing is nested deeper than a drawing or a run ever is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ciplearn._core.errors import InputError

Schema = Mapping[str, Any]

# Lists and objects within each other; a curve of a run's stop is five deep.
_DEEPEST = 12

# The square of a larger number is no number any more.
_LARGEST = 1e150

_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    # The one thing beyond JSON: a file that comes beside its message.
    "bytes": (bytes,),
}
_JSON = tuple(kind for kind in _TYPES if kind != "bytes")
_WORDS = {"null": "nothing", "boolean": "true or false", "integer": "a whole number", "number": "a number"}
_WORDS |= {"string": "text", "array": "a list", "object": "an object", "bytes": "a file"}


def check(value: Any, schema: Schema, what: str, depth: int = 0) -> None:
    """Refuse a value that a schema does not describe; an empty one takes whatever is JSON.

    ``what``: how the value is called in the sentence that refuses it; ``depth``: of lists and objects around it.
    """
    kinds = schema.get("type", _JSON)
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if not any(_is(value, kind) for kind in kinds):
        raise _refused(value, what, " or ".join(_WORDS[kind] for kind in kinds))
    if "enum" in schema and value not in schema["enum"]:
        raise _refused(value, what, f"one of {', '.join(map(str, schema['enum']))}")
    if isinstance(value, str):
        _check_text(value, schema, what)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", -_LARGEST), schema.get("maximum", _LARGEST)
        if not math.isfinite(min(max(value, -_LARGEST), _LARGEST)) or not low <= value <= high:
            raise _refused(value, what, f"a number from {low:g} to {high:g}")
    elif isinstance(value, list | dict):
        if depth >= _DEEPEST:
            raise InputError(f"{_begun(what)} is nested too deeply; send less.")
        if isinstance(value, list):
            _check_list(value, schema, what, depth + 1)
        else:
            _check_object(value, schema, what, depth + 1)


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _check_text(value: str, schema: Schema, what: str) -> None:
    longest = schema.get("maxLength", math.inf)
    if len(value) > longest:
        raise InputError(f"{_begun(what)} has {len(value)} characters, and {longest} are allowed; send fewer.")
    if not value.isascii() and re.search("[\ud800-\udfff]", value):
        raise _refused(value, what, "text of whole characters")
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        raise _refused(value, what, "a name of ours")


def _check_list(value: list[Any], schema: Schema, what: str, depth: int) -> None:
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not least <= len(value) <= most:
        raise _refused(value, what, f"a list of {least} to {most}" if least != most else f"a list of {least}")
    for entry in value:
        check(entry, schema.get("items", {}), f"an entry of {what}", depth)


def _check_object(value: dict[Any, Any], schema: Schema, what: str, depth: int) -> None:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        raise InputError(f"{_begun(what)} lacks {missing[0]!r}; send it too.")
    for name, entry in value.items():
        check(name, {"type": "string", "maxLength": 10_000}, f"a key of {what}")
        if name not in known and others is False:
            raise InputError(f"{_begun(what)} has no key {name[:80]!r}; send {', '.join(known)}.")
        check(entry, known.get(name, others), f"{name[:80]!r} of {what}", depth)


def _begun(what: str) -> str:
    return what[:1].upper() + what[1:]


def _refused(value: Any, what: str, words: str) -> InputError:
    # Of what is long or deep, only the kind: it may be endless.
    kind = type(value).__name__
    short = isinstance(value, str | float | bool | None) or (isinstance(value, int) and abs(value) < _LARGEST)
    received = repr(value[:80] if isinstance(value, str) else value) if short else kind
    return InputError(f"{_begun(what)} must be {words}, got {received}; correct it.")
