"""What commands write: plain text when piped, headings and wrapping on a terminal."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def is_terminal() -> bool:
    """Tell whether a person reads standard output."""
    return sys.stdout.isatty()


def say(text: str) -> None:
    """Write text as it is."""
    sys.stdout.write(text + "\n")


def say_json(value: Any) -> None:
    """Write a value as JSON; a number that JSON does not have, NaN or infinity, as null."""
    say(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def complain(text: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(" ".join(text.split()) + "\n")


def say_headed(headline: str, colour: str, sections: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Write a coloured headline and titled lists, wrapped to the width of the terminal."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    marks = {"✓": "green", "✗": "red"}
    console = Console()
    console.print(Text(headline, style=f"bold {colour}"))
    for title, sentences in sections:
        console.print()
        console.print(Text(title, style="bold"))
        for sentence in sentences:
            line = Text(sentence)
            if sentence[:1] in marks:
                line.stylize(f"bold {marks[sentence[:1]]}", 0, 1)
            console.print(Padding(line, (0, 0, 0, 2)))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
