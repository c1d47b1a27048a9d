"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ciplearn._core.errors import InputError


@contextmanager
def whole_file(target: Path) -> Iterator[IO[bytes]]:
    """Write beside the target and put it in place at the end; after an error or Ctrl-C nothing is left behind.

    A device or a pipe is written to directly: there is nothing to keep whole.
    """
    try:
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise InputError(f"{target} is a folder; pass the name of a file.")
            with target.open("wb", buffering=0) as stream:
                yield stream
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _cannot_write(target, error) from error


def write_text(target: Path, text: str) -> None:
    """Write a text file whole."""
    with whole_file(target) as stream:
        stream.write(text.encode())


@contextmanager
def whole_folder(target: Path, sign: str) -> Iterator[Path]:
    """Yield a fresh folder that takes the target's place at the end.

    Parameters
    ----------
    target : Path
        Replaced if it holds ``sign``, refused if it holds anything else.
    sign : str
        A file that tells a folder of ours.
    """
    if target.exists() and not (target / sign).exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} exists and holds no model; pass another folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Made before any work is done: a place that cannot be written to is found out at once.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as place:
            fresh = Path(place) / "fresh"
            fresh.mkdir()
            yield fresh
            _exchange(fresh, target, Path(place) / "old")
    except OSError as error:
        raise _cannot_write(target, error) from error


def _exchange(fresh: Path, target: Path, old: Path) -> None:
    if not target.exists():
        fresh.rename(target)
        return
    target.rename(old)
    try:
        fresh.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _cannot_write(target: Path, error: OSError) -> InputError:
    return InputError(f"{target} cannot be written: {error.strerror or error}; pass another place.")
