"""What the page may send, and what a folder keeps, as schemas: one description for every door."""

from __future__ import annotations

from typing import Any

from ciplearn._core.errors import InputError
from ciplearn.workbench.document import DOCUMENT
from ciplearn.workbench.recipes import RECIPE
from ciplearn.workbench.schema import Schema, check

# Notations that a graph can be written in, with the endings of their files.
NOTATIONS = {"dagitty": "txt", "dot": "dot", "gml": "gml", "json": "json", "edges": "txt", "svg": "svg"}

# A drawing of a thousand nodes is a tenth of this.
LARGEST_TEXT = 2_000_000

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
    "judge": _DRAWING,
    "advise": _DRAWING,
    "open": _DRAWING,
    "read": _object(("text",), text={"type": "string", "maxLength": LARGEST_TEXT}),
    "write": _object(("document", "format"), document=DOCUMENT, format={"type": "string", "enum": list(NOTATIONS)}),
    "save": _object(
        ("document",),
        document=DOCUMENT,
        version={**_COUNT, "type": ["integer", "null"]},
        anyway=_FLAG,
        client=_PERHAPS,
    ),
    "example": _object(("name",), name=_SHORT),
    "table": _object(("name", "content"), name=_SHORT, content={"type": "bytes"}),
    "demo-table": _object(),
    "describe": _DRAWING,
    "falsify": _DRAWING,
    "train": _object(("document", *RECIPE["required"]), document=DOCUMENT, **RECIPE["properties"]),
    "cancel": _OF_RUN,
    "forget": _OF_RUN,
    "show": _OF_RUN,
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


# document.json
SAVED = _object(
    ("version", "document"),
    version=_COUNT,
    document=DOCUMENT,
    client=_PERHAPS,
    table=_object(("name", "stored", "path"), name=_SHORT, stored=_PERHAPS, path=_PERHAPS),
)

# server.json
SERVER = _object(port={"type": "integer", "minimum": 0, "maximum": 65535}, address=_SHORT)

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

# runs/…/run.json
RUN = _object(
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
