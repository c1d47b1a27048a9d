"""The commands, how their help is written, and what happens when a call goes wrong.

To add a command, write its options as a class, its function in a module of this package, and a line in `COMMANDS`.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import signal
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields
from importlib import import_module
from types import FrameType
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ciplearn._core.errors import CiplearnError
from ciplearn.cli.commands import COMMANDS, prefer_typed_goal
from ciplearn.cli.output import NOTED, complain, note, prepare_streams, say

# Small matrices on several threads of a busy machine are many times slower than on one. Set these to overrule.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_WIDEST, _ASIDE = 100, 28  # of a line of help; of the names beside which there is room for what they mean

_MISTAKE = 2
_INTERRUPTED = 130

# typer brings its own click in some versions and imports it in others; either way BadParameter is a UsageError is a
# ClickException, the base of every mistake in a call.
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]


class _PlainHelp:
    """Writes the help of a command as plain text, which fits terminals of any width: no name of an option is cut."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; a flag is shown as it is typed, without a type behind it."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, what the command does, its arguments, and its options panel by panel."""
        width = min(shutil.get_terminal_size().columns, _WIDEST)
        pieces = " ".join(self.collect_usage_pieces(ctx))  # type: ignore[attr-defined]
        # Versions of typer differ in the brackets around an argument.
        pieces = re.sub(r"\{(\w+)\}", r"\1", pieces).replace("[[", "[").replace("]]", "]")
        lines = [*_filled(f"Usage: {ctx.command_path} {pieces}", width, indent="  "), ""]
        for paragraph in (self.help or "").split("\n"):  # type: ignore[attr-defined]
            start = " " * (len(paragraph) - len(paragraph.lstrip()))
            lines += [""] if not paragraph else _filled(paragraph, width, start, f"{start}  " if start else "")
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for parameter in self.get_params(ctx):
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            record = parameter.get_help_record(ctx)
            if record is not None:
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(record)
        commands = getattr(self, "commands", {})
        if commands:
            panels["Commands"] = [(name, each.get_short_help_str(200)) for name, each in commands.items()]
        for title, records in panels.items():
            lines += ["", f"{title}:", *_listed(records, width)] if records else []
        formatter.write("\n".join(lines) + "\n")


class Command(_PlainHelp, TyperCommand):
    """A command of ciplearn."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed, and beside it the options of a file."""
        rest: list[str] = super().parse_args(ctx, args)
        prefer_typed_goal(ctx)
        return rest


class Group(_PlainHelp, TyperGroup):
    """All commands."""


def _filled(text: str, width: int, start: str = "", indent: str = "") -> list[str]:
    how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(" ".join(text.split()), width, initial_indent=start, subsequent_indent=indent, **how)


def _listed(records: list[tuple[str, str]], width: int) -> list[str]:
    """Names on the left, what they mean on the right; below them where there is no room beside."""
    names = [re.sub(r" +(<\w+>)?$", "", name) for name, _ in records]
    aside = min(max(map(len, names)) + 4, _ASIDE if width >= 2 * _ASIDE else 6)
    lines = []
    for name, (_, meaning) in zip(names, records, strict=True):
        beside = len(name) + 4 <= aside
        filled = _filled(meaning, width, f"  {name}".ljust(aside) if beside else " " * aside, " " * aside)
        lines += filled if beside else [f"  {name}", *filled]
    return lines


app = typer.Typer(
    cls=Group,
    help="Predictors that would have said the same about a person, had the person's sex, age or whatever you name "
    "been different.",
    pretty_exceptions_enable=False,
)


def command_of(options: type, name: str, module: str) -> Callable[..., int | None]:
    """Return a command that takes the fields of a class of options, and hands one of that class to what does the work.

    That is a function of a module, imported when it is called; it returns the exit code, or None for 0.
    """

    def command(**values: Any) -> int | None:
        code: int | None = getattr(import_module(f"ciplearn.cli.{module}"), name)(options(**values))
        return code

    def late(each: Any) -> tuple[bool, bool, bool]:
        # In the help, what is needed comes first, and how to run it last.
        needed = each.default is MISSING
        return not needed, not needed and each.metadata["typer"].rich_help_panel == "Run", each.name == "help_all"

    hints = get_type_hints(options)
    parameters = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=Annotated[hints[each.name], each.metadata["typer"]],
        )
        for each in sorted(fields(options), key=late)
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


for _name, (_options, _module) in COMMANDS.items():
    # Lines of a paragraph are one, to be broken where the terminal ends; indented ones stay.
    _text = re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.getdoc(_options) or "")
    app.command(_name, cls=Command, help=_text)(command_of(_options, _name, _module))


@app.callback(invoke_without_command=True)
def overview(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Show the version.")
) -> None:
    """Show the version or the help where no command is named."""
    if version:
        from ciplearn import __version__

        say(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())


class _Ending:
    """The end that a signal asks for: raised where the signal finds the run, and again until the run has heard it.

    Raised once, it may be lost: it is swallowed with an object that goes, and a library that is just being imported
    does without a part, or makes an error of its own out of it.
    """

    error: BaseException | None = None
    over = False
    again: threading.Timer | None = None

    def __call__(self, received: int, frame: FrameType | None = None) -> None:
        if self.over:
            return
        self.error = self.error or (KeyboardInterrupt() if received == signal.SIGINT else SystemExit(128 + received))
        # A bar that is half made complains when it goes.
        sys.unraisablehook = lambda _: None
        self.again = threading.Timer(0.05, signal.raise_signal, [received])
        self.again.daemon = True
        self.again.start()
        handled = sys.exception()
        while handled is not None and handled is not self.error:
            handled = handled.__context__
        # Where it is handled already, files are just being closed and removed.
        if handled is None:
            raise self.error

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Raise the end, whatever has become of it."""
        try:
            yield
        except Exception:
            if self.error is None:
                raise
        finally:
            self.over = True
            # One that came while Python shuts down would find no handler any more, and end it in its own way.
            if self.again is not None:
                self.again.cancel()
                self.again.join()
        if self.error is not None:
            raise self.error


_ending = _Ending()


def main() -> None:
    """Run the command line; mistakes end in one line on standard error and exit code 2."""
    prepare_streams()
    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        # A polite kill and a closed terminal clean up like Ctrl-C; nohup has its way.
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _ending)
    warnings.showwarning = lambda message, *_, **__: note(str(message))
    for name in _THREADS:
        os.environ.setdefault(name, "1")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one call, without the name of the program, and return its exit code; mistakes are said, not raised."""
    NOTED.clear()
    try:
        with _ending.heard(), warnings.catch_warnings():
            result = app(arguments, standalone_mode=False)
            sys.stdout.flush()
    except CiplearnError as problem:
        complain(f"ciplearn: {problem}")
        return _MISTAKE
    except _ClickException as problem:
        message = getattr(problem, "format_message", problem.__str__)()
        if "extra argument" in message and any(argument.endswith(",") for argument in arguments):
            message = f"{message.rstrip('.')}: a list of names has no blank after a comma, or quotes around it"
        complain(f"ciplearn: {message.rstrip('.')}; see ciplearn --help.")
        return _MISTAKE
    except (BrokenPipeError, SystemExit) as ending:
        # click turns the first into the second.
        if isinstance(ending, SystemExit) and not isinstance(ending.__context__, BrokenPipeError):
            raise
        # The reader, such as head, has seen enough.
        _forget_output()
        return 0
    except OSError as problem:
        _forget_output()
        place = problem.filename or "standard output"
        what = problem.strerror or str(problem) or type(problem).__name__
        complain(f"ciplearn: {place}: {what}; check the place.")
        return _MISTAKE
    except MemoryError:
        complain("ciplearn: there is not enough memory for this; pass fewer rows or columns, or a smaller network.")
        return _MISTAKE
    except (typer.Abort, KeyboardInterrupt):
        result = _INTERRUPTED
    if result == _INTERRUPTED:
        complain("ciplearn: interrupted.")
    return result if isinstance(result, int) else 0


def _forget_output() -> None:
    """Send what is left of standard output nowhere: Python would complain once more when it closes the stream."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
