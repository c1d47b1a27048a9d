"""Folders and files of a study."""

from __future__ import annotations

from pathlib import Path

from ciplearn._core.errors import InputError
from ciplearn._core.files import whole_file


def make_folder(folder: Path) -> None:
    """Make a folder, or say in one sentence why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}; pass another folder.") from error


def write(path: Path, content: str | bytes) -> None:
    """Write a file; it appears whole or not at all."""
    with whole_file(path) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
