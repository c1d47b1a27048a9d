"""How a command takes its options, which are the fields of a class: typed or from a file; lists of names, shares."""

from __future__ import annotations

import csv
import inspect
import io
import math
import sys
from collections.abc import Callable, Container, Iterable
from dataclasses import MISSING, field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperOption

from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import read_mapping
from ciplearn.cli.output import say


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the entries of a file the defaults of the command's options; the callback of ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    options = _spelled(context)
    parameters = {str(parameter.name): parameter for parameter in context.command.params}
    defaults = {}
    for key, value in read_mapping(path).items():
        name = options.get(key.replace("-", "_"))
        if name is None:
            from ciplearn.causal.names import nearest

            hint = nearest(key, [spelled.replace("_", "-") for spelled in options], "options")
            raise InputError(f"{path} sets {key!r}, which is no option of ciplearn {context.info_name}; {hint}")
        defaults[name] = _as_typed(value, parameters[name], key, path)
    context.default_map = defaults
    return path


def _spelled(context: typer.Context) -> dict[str, str]:
    """How each option may be written in a file -> the name of its parameter."""
    spelled = {}
    for parameter in context.command.params:
        if parameter.name in (None, "config", "help", "help_all"):
            continue
        for name in (parameter.name, *parameter.opts):
            spelled[str(name).lstrip("-").replace("-", "_")] = str(parameter.name)
    return spelled


def _as_typed(value: Any, parameter: Any, key: str, path: Path) -> Any:
    """The value as the command line would have it, so that both are checked by the same rules."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, list | dict) for each in value)):
        raise InputError(
            f"{path} sets {key!r} to values within values, which no option takes; write a value or a list of names."
        )
    if isinstance(value, bool) and not getattr(parameter, "is_flag", False):
        raise InputError(f"{path} sets {key!r} to yes or no, which it does not take; write a value, or text in quotes.")
    if isinstance(value, list):
        return join_names(value)
    return value if isinstance(value, bool) or value is None else str(value)


# An option that has to be given.
NEEDED: Any = MISSING


def of_panel(panel: str | None = None, *, hidden: bool = False) -> Callable[..., Any]:
    """Return what makes the options of a panel of ``--help``, as fields; what is hidden shows with ``--help-all``."""

    def option(text: str, metavar: str | None = None, *names: str, default: Any = None, **more: Any) -> Any:
        about = {"help": text, "metavar": metavar, "hidden": hidden, "rich_help_panel": panel} | more
        return field(default=default, metadata={"typer": typer.Option(*names, **about)}, kw_only=True)

    return option


def argument(text: str, metavar: str, default: Any = None) -> Any:
    """Return a field that is given by its place."""
    return field(default=default, metadata={"typer": typer.Argument(help=text, metavar=metavar)}, kw_only=True)


def command_of(options: type, work: Callable[[Any], int | None]) -> Callable[..., int | None]:
    """Return a command that takes the fields of a class of options, and hands one of that class to what does the work.

    Its help is the docstring of the class.
    """

    def command(**values: Any) -> int | None:
        return work(options(**values))

    hints, needed = get_type_hints(options), [each for each in fields(options) if each.default is MISSING]
    # In the help, what is needed comes first, and how to run it last.
    others = [each for each in fields(options) if each.default is not MISSING]
    others.sort(key=lambda each: (each.metadata["typer"].rich_help_panel == "Run", each.name == "help_all"))
    parameters = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=Annotated[hints[each.name], each.metadata["typer"]],
        )
        for each in (*needed, *others)
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def show_all(context: typer.Context, asked: bool) -> None:
    """Show the help with every option; the callback of ``--help-all``."""
    if not asked or context.resilient_parsing:
        return
    for parameter in context.command.params:
        if isinstance(parameter, TyperOption):
            parameter.hidden = False
    text = context.get_help()
    if text:
        say(text)
    raise typer.Exit


def split_names(text: str | None, known: Container[str] = ()) -> tuple[str, ...] | None:
    """Split at commas; a name that holds a comma stands in double quotes, or is the whole text."""
    if text is None:
        return None
    if text in known:
        return (text,)
    try:
        cells = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:
        raise InputError(f"{text[:60]!r} is no list of names; write them in one line, with commas between.") from None
    return tuple(name.strip() for name in cells if name.strip())


def join_names(names: Iterable[object]) -> str:
    """Return names as one text, as options take them: with commas between, and quoted where they hold one."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(list(names))
    return line.getvalue()


def choice(option: str, given: str, known: Iterable[str]) -> str:
    """Return what was given, or refuse it where it is none of what an option takes."""
    if given not in known:
        raise InputError(f"{option} must be one of {', '.join(known)}, got {given!r}; name one of these.")
    return given


def share(option: str, given: str, most: float = sys.float_info.max) -> float:
    """Return a share as a number: 2% is 0.02."""
    number = given.strip().removesuffix("%")
    try:
        value = float(number) / (1 if number == given.strip() else 100)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise InputError(f"{option} must be a share, got {given!r}; pass for example 5% or 0.05.")
    return value
