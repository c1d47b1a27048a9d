"""How a command takes its options: typed or from a file, one by one or in classes; lists of names."""

from __future__ import annotations

import csv
import inspect
import io
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, get_type_hints

import typer
from typer.core import TyperOption

from ciplearn._core.errors import InputError
from ciplearn._core.files import read_mapping
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


def of_panel(panel: str | None = None, *, hidden: bool = False) -> Callable[..., Any]:
    """Return what makes the options of a panel of ``--help``; what is hidden shows with ``--help-all``."""

    def option(text: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
        return typer.Option(
            *names, **{"help": text, "metavar": metavar, "hidden": hidden, "rich_help_panel": panel} | more
        )

    return option


def with_groups(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a parameter whose type is a class of options stand for all of them on the command line."""
    groups = get_type_hints(function, include_extras=True)

    @wraps(function)
    def called(**values: Any) -> Any:
        return function(**{name: _filled(groups[name], values, name) for name in signature.parameters})

    signature = inspect.signature(function)
    flat = [one for each in signature.parameters.values() for one in _options_of(groups[each.name], each)]
    called.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in flat}
    return called


def _options_of(kind: Any, parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The options of a class of options, be they in classes within it; or the one option that a parameter is."""
    if not isinstance(kind, type) or not is_dataclass(kind):
        yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=kind)
        return
    inner = inspect.signature(kind).parameters
    for name, hint in get_type_hints(kind, include_extras=True).items():
        yield from _options_of(hint, inner[name])


def _filled(kind: Any, values: Mapping[str, Any], name: str) -> Any:
    """The value of an option, or a class of options with the values of all of its own."""
    if not isinstance(kind, type) or not is_dataclass(kind):
        return values.get(name)
    inner = get_type_hints(kind, include_extras=True)
    return kind(**{each: _filled(hint, values, each) for each, hint in inner.items()})


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
