"""What the page may send, and what a folder keeps, as schemas: one description and one reader for every door.

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

_DEEPEST = 12  # lists and objects within each other; a curve of a run's stop is five deep
_LARGEST = 1e150  # the square of a larger number is no number any more

_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    "bytes": (bytes,),  # the one thing beyond JSON: a file that comes beside its message
}
_JSON = tuple(kind for kind in _TYPES if kind != "bytes")
_WORDS = {"null": "nothing", "boolean": "true or false", "integer": "a whole number", "number": "a number"}
_WORDS |= {"string": "text", "array": "a list", "object": "an object", "bytes": "a file"}


def check(value: Any, schema: Schema, what: str, depth: int = 0) -> None:
    """Refuse a value that a schema does not describe, under the name ``what``; an empty one takes whatever is JSON."""
    kinds = schema.get("type", _JSON)
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    fitting = ("boolean",) if isinstance(value, bool) else _TYPES  # in Python True is a whole number
    if not any(kind in fitting and isinstance(value, _TYPES[kind]) for kind in kinds):
        raise _refused(value, what, " or ".join(_WORDS[kind] for kind in kinds))
    if "enum" in schema and value not in schema["enum"]:
        raise _refused(value, what, f"one of {', '.join(map(str, schema['enum']))}")
    if isinstance(value, str):
        longest = schema.get("maxLength", math.inf)
        if len(value) > longest:
            raise InputError(f"{_begun(what)} has {len(value)} characters, and {longest} are allowed; send fewer.")
        if not value.isascii() and re.search("[\ud800-\udfff]", value):
            raise _refused(value, what, "text of whole characters")
        if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
            raise _refused(value, what, "a name of ours")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", -_LARGEST), schema.get("maximum", _LARGEST)
        if not math.isfinite(min(max(value, -_LARGEST), _LARGEST)) or not low <= value <= high:
            raise _refused(value, what, f"a number from {low:g} to {high:g}")
    elif isinstance(value, list | dict) and depth >= _DEEPEST:
        raise InputError(f"{_begun(what)} is nested too deeply; send less.")
    elif isinstance(value, list):
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        if not least <= len(value) <= most:
            raise _refused(value, what, f"a list of {least} to {most}" if least != most else f"a list of {least}")
        for entry in value:
            check(entry, schema.get("items", {}), f"an entry of {what}", depth + 1)
    elif isinstance(value, dict):
        named, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        if missing := [name for name in schema.get("required", ()) if name not in value]:
            raise InputError(f"{_begun(what)} lacks {missing[0]!r}; send it too.")
        for name, entry in value.items():
            check(name, {"type": "string", "maxLength": 10_000}, f"a key of {what}")
            if name not in named and others is False:
                raise InputError(f"{_begun(what)} has no key {name[:80]!r}; send {', '.join(named)}.")
            check(entry, named.get(name, others), f"{name[:80]!r} of {what}", depth + 1)


def _begun(what: str) -> str:
    return what[:1].upper() + what[1:]


def _refused(value: Any, what: str, words: str) -> InputError:
    # Of what is long or deep, only the kind: it may be endless.
    kind = type(value).__name__
    short = isinstance(value, str | float | bool | None) or (isinstance(value, int) and abs(value) < _LARGEST)
    received = repr(value[:80] if isinstance(value, str) else value) if short else kind
    return InputError(f"{_begun(what)} must be {words}, got {received}; correct it.")


_NODE = {"type": "string", "maxLength": 10_000}
_NODES = {"type": "array", "items": _NODE}
_EDGES = {"type": "array", "items": {"type": "array", "items": _NODE, "minItems": 2, "maxItems": 2}}
_SPOT = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}

# What is drawn, as JSON; whether its graph can be is another question, which `Document.read` asks too.
DOCUMENT: Schema = {
    "type": "object",
    "properties": {
        "graph": {
            "type": "object",
            "properties": {
                **dict.fromkeys(("nodes", "latent", "exposures", "outcomes", "adjusted"), _NODES),
                **dict.fromkeys(("directed", "bidirected", "undirected"), _EDGES),
                "positions": {"type": "object", "additionalProperties": _SPOT},
            },
            "additionalProperties": False,
        },
        **{role: {**_NODES, "type": ["array", "null"]} for role in ("context", "inputs")},
        # Kinds of columns that a person can choose on the page.
        "kinds": {"type": "object", "additionalProperties": {"type": "string", "enum": ["number", "category"]}},
    },
    "additionalProperties": False,
}

# By the goal: its option of ``ciplearn fit``, the goal in Python, and whether it needs an amount.
GOALS: dict[str, tuple[str, str, bool]] = {
    "limits": ("--max-effect", "WithinLimits(Limits({amount}))", False),
    "vcf": ("--vcf", "ShareOfVCF({amount})", True),
    "strict": ("--strict", "Strict()", False),
    "tolerance": ("--tolerance", "{amount}", True),
}
LEARNERS = ("auto", "network", "boosted", "linear")
_PRESETS = ("quick", "standard", "thorough")

# What the page says about a training, and what a run keeps of it.
RECIPE: Schema = {
    "type": "object",
    "properties": {
        "goal": {"type": "string", "enum": list(GOALS)},
        "amount": {"type": ["number", "null"], "minimum": 0, "maximum": 1e9},
        "learner": {"type": "string", "enum": list(LEARNERS)},
        "preset": {"type": "string", "enum": list(_PRESETS)},
        "anyway": {"type": "boolean"},
        "seed": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
    },
    "required": ("goal",),
}

# Notations that a graph can be written in, with the endings of their files.
NOTATIONS = {"dagitty": "txt", "dot": "dot", "gml": "gml", "json": "json", "edges": "txt", "svg": "svg"}

LARGEST_TEXT = 2_000_000  # a drawing of a thousand nodes is a tenth of this

_SHORT = {"type": "string", "maxLength": 1000}
_PERHAPS = {"type": ["string", "null"], "maxLength": 10_000}
_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**53}
# What `new_name` makes, and what a walk calls its stops: parts of paths.
_NAME = {"type": "string", "pattern": "[0-9a-f]{16}"}
_STOP = {"type": "string", "pattern": "[A-Za-z0-9-]{1,40}"}


def _object(required: tuple[str, ...] = (), **properties: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


_DRAWING = _object(("document",), document=DOCUMENT)
_OF_RUN = _object(("run",), run=_NAME)
_STOP_OF_RUN = {"run": _NAME, "stop": _STOP}
_OF_STOP = _object(("run", "stop"), **_STOP_OF_RUN)

# By what a message asks to do. Keys that are not named are not read.
MESSAGES: dict[str, Schema] = {
    "hello": _object(),
    **dict.fromkeys(("judge", "advise", "open"), _DRAWING),
    "read": _object(("text",), text={"type": "string", "maxLength": LARGEST_TEXT}),
    "write": _object(("document", "format"), document=DOCUMENT, format={"type": "string", "enum": list(NOTATIONS)}),
    "save": _object(
        ("document",), document=DOCUMENT, version={**_COUNT, "type": ["integer", "null"]}, anyway=_FLAG, client=_PERHAPS
    ),
    "example": _object(("name",), name=_SHORT),
    "table": _object(("name", "content"), name=_SHORT, content={"type": "bytes"}),
    "demo-table": _object(),
    **dict.fromkeys(("describe", "falsify", "usual"), _DRAWING),
    "train": _object(("document", *RECIPE["required"]), document=DOCUMENT, **RECIPE["properties"]),
    **dict.fromkeys(("cancel", "forget", "show"), _OF_RUN),
    "keep": _OF_STOP,
    "download": _object(
        ("run", "stop", "what"),
        **_STOP_OF_RUN,
        what={"type": "string", "enum": ["model", "report", "command", "script"]},
    ),
    "rows": _OF_STOP,
    "imagine": _object(
        ("run", "stop", "row", "values"),
        **_STOP_OF_RUN,
        row={"type": ["string", "integer"], "maxLength": 1000},
        values={"type": "object", "additionalProperties": {"type": ["string", "number"], "maxLength": 10_000}},
    ),
}


def check_message(message: Any) -> None:
    """Refuse what is no message, in one sentence."""
    if not isinstance(message, dict) or not isinstance(message.get("do"), str) or message["do"] not in MESSAGES:
        raise InputError(f"A message is an object whose 'do' is one of {', '.join(MESSAGES)}; reload the page.")
    check(message, MESSAGES[message["do"]], "the message")


SAVED = _object(  # document.json
    ("version", "document"),
    version=_COUNT,
    document=DOCUMENT,
    client=_PERHAPS,
    table=_object(("name", "stored", "path"), name=_SHORT, stored=_PERHAPS, path=_PERHAPS),
)

SERVER = _object(port={"type": "integer", "minimum": 0, "maximum": 65535}, address=_SHORT)  # server.json

_PROGRESS = {
    "status": {"type": "string", "enum": ["running", "done", "failed", "cancelled"]},
    "phase": _TEXT,
    "done": _COUNT,
    "total": _COUNT,
}
_NUMBER = {"type": ["number", "null"]}
_WALKED = _object(
    ("key", "name", "path", "learner", "loss", "score", "vcf", "model", "strength"),
    key=_STOP,
    path=_COUNT,
    **dict.fromkeys(("name", "along", "learner", "rests_on"), _TEXT),
    **dict.fromkeys(("free", "baseline", "mixed", "shrinks"), _FLAG),
    **dict.fromkeys(("loss", "score", "vcf", "relative", "effect", "moved"), _NUMBER),
    **dict.fromkeys(("model", "strength", "weaker"), _PERHAPS),
)
_LISTS = {"stops": {"type": "array", "items": _WALKED}, "notes": {"type": "array", "items": _TEXT}}

RUN = _object(  # runs/…/run.json
    ("name", "started", *_PROGRESS, "document", "table", "recipe", "models", *_LISTS, "kept", "chosen"),
    name=_NAME,
    started={"type": "number"},
    **_PROGRESS,
    document=DOCUMENT,
    table=_object(("name", "path", "read"), name=_SHORT, path=_TEXT, read=_TEXT),
    recipe=RECIPE,
    models=_PERHAPS,
    **_LISTS,
    kept={"type": "object", "additionalProperties": _object(tuple(_PROGRESS), **_PROGRESS)},
    chosen={**_STOP, "type": ["string", "null"]},
)
