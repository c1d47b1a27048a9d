"""What commands write: plain text when piped, headings and wrapping on a terminal, and never a control character."""

from __future__ import annotations

import codecs
import glob
import json
import math
import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from ciplearn._core.errors import InputError
from ciplearn._core.files import CHECKSUMS, listed_files

# Characters that move a cursor, change colours or turn the direction of writing: names and cells may hold them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# For code pages that lack our signs.
_IN_ASCII = {"Ŷ": "Y^", "⊥": "_||_", "→": "->", "←": "<-", "↔": "<->", "−": "-", "×": "x", "²": "^2", "∅": "{}"}
_IN_ASCII |= {"✓": "+", "✗": "-", "…": "...", "≤": "<=", "≥": ">="}

_QUIET = 15.0  # seconds between two lines of progress where nobody watches; what is done sooner is done in silence
NOTED: set[str] = set()  # what a run has noted, without the counts in it; the next run starts anew
_NARROW = 120  # columns below which a bar shows no more than how far it is

# Who hears, in the place of a terminal, of steps, notes and what was trained: the workbench runs commands, too.
listener: ContextVar[Callable[[dict[str, Any]], None] | None] = ContextVar("listener", default=None)


def prepare_streams() -> None:
    """Let standard output and error take every character, and be there even where the caller has closed them."""
    codecs.register_error("ciplearn", _spelled)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="ciplearn")
    if _width(sys.stderr) < _NARROW:
        # Rates and figures have no room, and tqdm would cut them off anywhere; all bars read this when it is imported.
        os.environ.setdefault("TQDM_BAR_FORMAT", "{l_bar} {n_fmt}/{total_fmt} [{elapsed}]")


def is_terminal() -> bool:
    """Tell whether a person reads standard output."""
    return sys.stdout.isatty()


def _width(stream: TextIO) -> float:
    """Columns of the terminal that a stream goes to; anything else has no end."""
    if not stream.isatty():
        return math.inf
    with suppress(ValueError, OSError):
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns) or 80
    return 80


def _broken(text: str, stream: TextIO, indent: str = "") -> str:
    """Break lines between words where a terminal is too narrow; it would break them anywhere itself."""
    width, lines = _width(stream), []
    for line in text.split("\n"):
        start = indent + line[: len(line) - len(line.lstrip())]
        # A number keeps its sign, and a column its value.
        whole = indent + line.replace(" %", "\N{NO-BREAK SPACE}%").replace(
            " = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
        )
        words: dict[str, Any] = {"subsequent_indent": start, "break_long_words": False, "break_on_hyphens": False}
        lines += [whole] if len(whole) <= width else textwrap.wrap(whole, int(width), **words)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}%", " %").replace("\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}", " = ")


def _write(text: str, stream: TextIO) -> None:
    if "tqdm" in sys.modules and stream.isatty():
        # Bars step aside: behind one, a line would begin in the middle.
        sys.modules["tqdm"].tqdm.write(text, file=stream)
    else:
        stream.write(text + "\n")


def say(text: str) -> None:
    """Write text, with control characters spelled out."""
    _write(_broken(visible(text), sys.stdout), sys.stdout)


def say_command(before: str, words: Sequence[str]) -> None:
    """Write a command to be pasted; where a terminal is too narrow, in lines that a shell takes for one."""
    lines, room = [before], _width(sys.stdout) - len(" \\")
    for word in map(visible, words):
        if len(lines[-1]) + len(word) >= room:
            lines += ["   "]
        lines[-1] += f" {word}"
    _write(" \\\n".join(lines), sys.stdout)


def say_json(value: Any) -> None:
    """Write a value as JSON; a number that JSON does not have, NaN or infinity, as null."""
    from ciplearn._core.plain_data import as_data

    text = json.dumps(plain := as_data(value), indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(plain, indent=2, allow_nan=False)
    sys.stdout.write(visible(text) + "\n")


def note(text: str) -> None:
    """Write a sentence that people should know to standard error: once in a run, however often and with what counts."""
    words = re.sub(r"\d+", "", text)
    if words not in NOTED:
        NOTED.add(words)
        tell_listener(note=text)
        complain(f"ciplearn: note: {text}")


def tell_listener(**event: Any) -> None:
    """Tell whoever listens what has happened."""
    hears = listener.get()
    if hears is not None:
        hears(event)


def complain(text: str) -> None:
    """Write one sentence to standard error; where that is gone, there is nobody to tell."""
    with suppress(OSError, ValueError):
        _write(_broken(" ".join(visible(text).split()), sys.stderr), sys.stderr)
        sys.stderr.flush()


def visible(text: str) -> str:
    r"""Spell out control characters, as ``\u001b``, which JSON reads back."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable(path: Path) -> str:
    """Return the name of a file as text that can be written anywhere, also where it is not UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def say_headed(headline: str, colour: str, sections: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Write a coloured headline and titled lists."""
    from rich.console import Console
    from rich.text import Text

    marks = {"✓": "bold green", "✗": "bold red"}
    console = Console()

    def show(text: str, style: str = "", indent: str = "") -> None:
        line = Text(_broken(visible(text), sys.stdout, indent), style=style)
        if text[:1] in marks:
            line.stylize(marks[text[:1]], len(indent), len(indent) + 1)
        console.print(line, soft_wrap=True)

    show(headline, f"bold {colour}")
    for title, sentences in sections:
        show(f"\n{title}", "bold")
        for sentence in sentences:
            show(sentence, indent="  ")


def say_table(rows: Sequence[Sequence[str]]) -> None:
    """Write rows in columns; the first row holds the titles. Where words would not fit, a paragraph per row."""
    cells = [[visible(cell) for cell in row] for row in rows]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    if not is_terminal():
        for row in cells:
            say("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    room = _width(sys.stdout) - 2 * len(columns)
    # A column gives up its blanks, and keeps its longest word.
    spare = [
        width - max(len(word) for cell in column for word in re.findall(r"^\s*\S+|\S+", cell) or [""])
        for width, column in zip(widths, columns, strict=True)
    ]
    while sum(widths) > room and max(spare) > 0:
        widest = spare.index(max(spare))
        widths[widest], spare[widest] = widths[widest] - 1, spare[widest] - 1
    if sum(widths) > room:
        for name, *others in cells[1:]:
            about = zip(cells[0][1:], others, strict=True)
            say(f"  {name.rstrip()}: {'; '.join(f'{title} {cell}' for title, cell in about)}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=True, header_style="bold")
    for title, width in zip(cells[0], widths, strict=True):
        shown.add_column(title, width=width)
    for row in cells[1:]:
        # Text, not markup: names come from the user's table.
        shown.add_row(*map(Text, row))
    Console(width=None if math.isinf(room) else int(room) + 2 * len(columns)).print(shown)


def progress(what: str, unit: str, total: int | None = None, shown: bool = True) -> Any:
    """Return a progress bar; off a terminal, a line of its state now and then."""
    from tqdm import tqdm

    class Lines(tqdm):
        last = time.monotonic()

        def display(self, msg: str | None = None, pos: int | None = None) -> None:
            tell_listener(phase=self.desc, done=self.n, total=self.total)
            if time.monotonic() - self.last >= _QUIET:
                self.last = time.monotonic()
                complain(f"ciplearn: {msg or self}")

    settings: dict[str, Any] = {"desc": what, "unit": unit, "unit_scale": unit == "row", "total": total}
    if sys.stderr.isatty():
        return tqdm(**settings, disable=not shown, leave=None)  # a bar within a bar goes when it is done
    return Lines(**settings, disable=not shown, ncols=0, leave=False)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_IN_ASCII.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def keep_inputs(out: Path, *inputs: Path | None) -> None:
    """Refuse a place to write that is read by the same command, holds what is read, or is a part of it."""
    target = Path(os.path.realpath(out))
    # What exists under a name: itself, or all that it matches as a pattern.
    given = [path for path in inputs if path is not None]
    for read in chain(
        *([path] if path.exists() else map(Path, glob.glob(str(path), recursive=True)) for path in given)
    ):
        source = Path(os.path.realpath(read))
        if target == source or (target.is_file() and target.samefile(read)):
            raise InputError(f"{out} is what this command reads; pass the name of another file to write.")
        if target in source.parents:
            raise InputError(f"{read} is read, and lies in {out}; pass another place to write.")
        if source in target.parents and target.is_file():
            listed = listed_files(source)
            if not listed or target.relative_to(source).as_posix() in {*listed, CHECKSUMS}:
                raise InputError(f"{out} is a part of {read}, which is read; pass the name of another file to write.")
