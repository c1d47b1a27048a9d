"""What commands write: plain text when piped, headings and wrapping on a terminal, and never a control character."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Characters that move a cursor, change colours or turn the direction of writing: names and cells may hold them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# For code pages that lack our signs.
_IN_ASCII = {"Ŷ": "Y^", "⊥": "_||_", "→": "->", "←": "<-", "↔": "<->", "−": "-", "×": "x", "²": "^2", "∅": "{}"}
_IN_ASCII |= {"✓": "+", "✗": "-", "…": "...", "≤": "<=", "≥": ">="}

# Seconds between two lines of progress where nobody watches; what is done sooner is done in silence.
_QUIET = 15.0


def prepare_streams() -> None:
    """Let standard output and error take every character, and be there even where the caller has closed them."""
    codecs.register_error("ciplearn", _spelled)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="ciplearn")


def is_terminal() -> bool:
    """Tell whether a person reads standard output."""
    return sys.stdout.isatty()


def say(text: str) -> None:
    """Write text, with control characters spelled out."""
    sys.stdout.write(visible(text) + "\n")


def say_json(value: Any) -> None:
    """Write a value as JSON; a number that JSON does not have, NaN or infinity, as null."""
    from ciplearn._core.plain_data import as_data

    text = json.dumps(plain := as_data(value), indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(plain, indent=2, allow_nan=False)
    say(text)


def note(text: str) -> None:
    """Write one line that people should know to standard error."""
    complain(f"ciplearn: note: {text}")


def complain(text: str) -> None:
    """Write one line to standard error; where that is gone, there is nobody to tell."""
    try:
        sys.stderr.write(" ".join(visible(text).split()) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def visible(text: str) -> str:
    r"""Spell out control characters, as ``\u001b``, which JSON reads back."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable(path: Path) -> str:
    """Return the name of a file as text that can be written anywhere, also where it is not UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def say_headed(headline: str, colour: str, sections: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Write a coloured headline and titled lists, wrapped to the width of the terminal."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    marks = {"✓": "green", "✗": "red"}
    console = Console()
    console.print(Text(visible(headline), style=f"bold {colour}"))
    for title, sentences in sections:
        console.print()
        console.print(Text(title, style="bold"))
        for sentence in sentences:
            line = Text(visible(sentence))
            if sentence[:1] in marks:
                line.stylize(f"bold {marks[sentence[:1]]}", 0, 1)
            console.print(Padding(line, (0, 0, 0, 2)))


def say_table(rows: Sequence[Sequence[str]]) -> None:
    """Write rows in columns; the first row holds the titles."""
    cells = [[visible(cell) for cell in row] for row in rows]
    if not is_terminal():
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            say("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=True, header_style="bold")
    for title in cells[0]:
        shown.add_column(title)
    for row in cells[1:]:
        # Text, not markup: names come from the user's table.
        shown.add_row(*map(Text, row))
    Console().print(shown)


def progress(what: str, unit: str, total: int | None = None, shown: bool = True) -> Any:
    """Return a progress bar; off a terminal, a line of its state now and then."""
    from tqdm import tqdm

    class Lines(tqdm):
        last = time.monotonic()

        def display(self, msg: str | None = None, pos: int | None = None) -> None:
            if time.monotonic() - self.last >= _QUIET:
                self.last = time.monotonic()
                complain(f"ciplearn: {msg or self}")

    settings: dict[str, Any] = {"desc": what, "unit": unit, "unit_scale": unit == "row", "total": total}
    if sys.stderr.isatty():
        return tqdm(**settings, disable=not shown)
    return Lines(**settings, disable=not shown, ncols=0, leave=False)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(sign, "?") for sign in lost), error.end
