"""What is read is not written over."""

from __future__ import annotations

from pathlib import Path

from ciplearn._core.errors import InputError


def refuse_to_overwrite(target: Path, table: Path, folder: Path) -> None:
    """Complain about a target that is the table, or a file of the model folder."""
    if not target.is_file():
        return
    if target.samefile(table):
        raise InputError(f"{target} is the table that is read; pass the name of another file to write.")
    if folder.resolve() in target.resolve().parents:
        raise InputError(f"{target} is a file of the model folder; pass the name of another file to write.")
