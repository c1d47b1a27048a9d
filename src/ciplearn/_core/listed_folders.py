"""Folders of files with a list of their checksums; they appear whole or not at all, also after a kill.

New files of a folder that exists wait in it, and take their places when all are there. Reading never writes: it says
that a folder is unfinished, and leaves the end of the work to the next run that writes there.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ciplearn._core.errors import InputError
from ciplearn._core.files import HIDDEN, checksum, locked, read_bounded, remove_abandoned, unfinished, written_to

# The list of what was written into a folder, as `sha256sum --check` reads it.
CHECKSUMS = "SHA256SUMS"

# Files of a folder that wait in it to take their places.
_ARRIVING = f"{HIDDEN}arriving"


@contextmanager
def listed_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield an empty folder whose files become the target's at the end, with a list of them and their checksums.

    Of a target that exists, only files are replaced that its own list names and that are still what was written; all
    others stay. Whatever stands in the way is found out before any work is done.

    ``target``: A link is followed. ``overwrite``: whether files of an earlier call may be replaced.
    """
    with written_to(target) as place:
        _finish(place)
        check_folder(target, overwrite=overwrite)
        place.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(place.parent)
        # Inside a folder that exists: its parent may be another disk, or not ours to write to.
        with unfinished(place if place.exists() else place.parent, Path.mkdir) as part:
            fresh = part / "fresh"
            fresh.mkdir()
            yield fresh
            _write_checksums(fresh)
            check_folder(target, overwrite=overwrite, new=tuple(listed_files(fresh)))
            if place.exists():
                # From here on the new files are complete; a run that is killed below is finished by the next.
                fresh.rename(place / _ARRIVING)
                _finish(place)
            else:
                fresh.rename(place)


def check_folder(target: Path, *, overwrite: bool, new: tuple[str, ...] = ()) -> None:
    """Refuse a target that is a file, holds work of others only, or work of ours that must not be replaced."""
    place = Path(os.path.realpath(target))
    if not place.exists():
        return
    if not place.is_dir():
        raise InputError(f"{target} is a file, not a folder; pass the name of a folder.")
    if all(path.name.startswith(HIDDEN) for path in place.iterdir()):
        return
    listed = listed_files(place)
    if not listed:
        raise InputError(f"{target} exists and holds no model that ciplearn has written; pass another folder.")
    if not overwrite:
        raise InputError(
            f"{target} holds files of an earlier run already; pass another folder, or --overwrite (overwrite=True)."
        )
    _refuse_foreign(place, listed, {**dict.fromkeys(new, ""), **_waiting(place)})


def _refuse_foreign(folder: Path, listed: dict[str, str], new: dict[str, str]) -> None:
    """Refuse to replace a file that is neither what the folder's list says nor what is to take its place."""
    for name in {**listed, **new}:
        path = folder / name
        foreign = path.exists() and (not path.is_file() or checksum(path) not in (listed.get(name), new.get(name)))
        if foreign:
            raise InputError(f"{path} is not what ciplearn has written there; move it away, or pass another folder.")


def check_finished(folder: Path) -> None:
    """Refuse to read a folder in which files wait to take their places; only a run that writes there moves them."""
    # Unlike that of a Path, this one takes every name, also one that no folder can have.
    if os.path.lexists(folder / _ARRIVING):
        raise InputError(
            f"{folder} is unfinished, a run that wrote it was stopped or is at work; write it again, with --overwrite "
            "(overwrite=True)."
        )


def _waiting(folder: Path) -> dict[str, str]:
    """Return the files that wait in a folder to take their places, with their checksums."""
    _refuse_links(folder, [_ARRIVING])
    new = listed_files(folder / _ARRIVING)
    _refuse_links(folder, new)
    return new


def _finish(folder: Path) -> None:
    """Put files in place that a killed run has left waiting."""
    arriving = folder / _ARRIVING
    if not os.path.lexists(arriving):
        return
    with locked(folder, wait=True):
        listed, new = listed_files(folder), _waiting(folder)
        if not new:
            shutil.rmtree(arriving, ignore_errors=True)
            return
        _refuse_foreign(folder, listed, new)
        for name in listed:
            if name not in new:
                (folder / name).unlink(missing_ok=True)
                for above in (folder / name).parents[: name.count("/")]:
                    # One that still holds a file stays.
                    with suppress(OSError):
                        above.rmdir()
        for name in new:
            if (arriving / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (arriving / name).replace(folder / name)
        # The list last: as long as it waits, so does the rest of the work.
        (arriving / CHECKSUMS).replace(folder / CHECKSUMS)
        shutil.rmtree(arriving, ignore_errors=True)


def read_listed(folder: Path, name: str, largest: int = 256) -> bytes:
    """Read a file of a folder, and refuse one that is no longer what its list says; without a list, take it as it is.

    ``largest``: MiB that are read at most.
    """
    check_finished(folder)
    _refuse_links(folder, [name])
    content = read_bounded(folder / name, largest)
    listed = listed_files(folder).get(name)
    if listed is not None and checksum(content) != listed:
        raise InputError(f"{folder / name} is truncated or was changed since it was saved; write the folder anew.")
    return content


def listed_files(folder: Path) -> dict[str, str]:
    """Return the files that a folder's list names, with their checksums; none without a list."""
    path = folder / CHECKSUMS
    _refuse_links(folder, [CHECKSUMS])
    if not path.is_file():
        return {}
    try:
        lines = read_bounded(path, largest=1).decode().splitlines()
    except UnicodeDecodeError:
        lines = [""]
    matches = [re.fullmatch(r"([0-9a-f]{64})  (.+)", line) for line in lines]
    names = {match[2]: match[1] for match in matches if match is not None}
    if None in matches or not all(map(_is_plain, names)):
        raise InputError(f"{path} was changed and is no list of checksums; write the folder anew.")
    _refuse_links(folder, names)
    return names


def _is_plain(name: str) -> bool:
    """Whether a name stays below its folder on every system, and is none that the folder itself needs."""
    parts = name.split("/")
    hidden = any(part in ("", ".", "..") or part.startswith(HIDDEN) for part in parts)
    return not hidden and name != CHECKSUMS and name.isprintable() and not set(name) & set("\\:")


def _refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Refuse names that lead elsewhere by way of a link below the folder."""
    below = (folder / part for name in names for part in (Path(name), *Path(name).parents[:-1]))
    for path in dict.fromkeys(below):
        if path.is_symlink():
            raise InputError(f"{path} is a link, and a folder of ciplearn holds none; put the file itself there.")


def _write_checksums(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / CHECKSUMS)
    lines = [f"{checksum(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
