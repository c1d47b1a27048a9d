"""``--help`` as plain text, which fits terminals of any width: no name of an option is cut."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import Any

from typer.core import TyperCommand, TyperGroup

_WIDEST, _ASIDE = 100, 28  # of a line; of the names beside which there is room for what they mean


class _PlainHelp:
    """Writes the help of a command: usage, what it does, its arguments, and its options panel by panel."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; a flag is shown as it is typed, without a type behind it."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write it all."""
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
