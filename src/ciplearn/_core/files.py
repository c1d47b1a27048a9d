"""Files, and folders with a list of their checksums, that appear whole or not at all, also after a kill; locks.

Whatever is unfinished lies beside its target under a hidden name, `.ciplearn-….part`, and is locked by the run that
writes it. A name without a lock was left by a run that was killed; the next run that writes there removes it. New files
of a folder that exists wait in it, and take their places when all are there. Reading never writes: it says that a
folder is unfinished, and leaves the end of the work to the next run that writes there.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ciplearn._core.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no such locks, and does not remove a file that is open.
    fcntl = None  # type: ignore[assignment]

HIDDEN = ".ciplearn-"  # how names begin of what is unfinished
_BLOCK = 1 << 20
_MEBIBYTE = 1 << 20
CHECKSUMS = "SHA256SUMS"  # the list of what was written into a folder, as `sha256sum --check` reads it
_ARRIVING = f"{HIDDEN}arriving"  # files of a folder that wait in it to take their places


@contextmanager
def whole_file(target: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Yield a stream whose content becomes the target's at the end; after an error or Ctrl-C nothing has changed.

    A link is followed. A device or a pipe is written to directly: there is nothing to keep whole.

    ``mode``: who may read and write a new file, less what the user's mask takes away.
    """
    with written_to(target) as real:
        if real.exists() and not real.is_file():
            if real.is_dir():
                raise InputError(f"{target} is a folder; pass the name of a file.")
            with real.open("wb", buffering=0) as stream:
                yield stream
            return
        real.parent.mkdir(parents=True, exist_ok=True)
        with unfinished(real.parent, lambda part: part.touch(mode, exist_ok=False)) as part:
            with part.open("wb") as stream:
                yield stream
            part.replace(real)


def write_file(target: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write a file whole."""
    with whole_file(target, mode) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


def make_folder(folder: Path) -> None:
    """Make a folder, or say in one sentence why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}; pass another folder.") from error


def read_bounded(path: Path, largest: int) -> bytes:
    """Read a regular file of at most so many MiB: no pipe that never ends, no device, no file that fills the memory."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is no regular file; pass the path of one.")
        if path.stat().st_size > largest * _MEBIBYTE:
            raise InputError(f"{path} has more than {largest} MiB, which no file of its kind needs; pass another.")
        with open(path, "rb", opener=_open_at_once) as stream:
            return stream.read()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; check the path.") from error


def checksum(content: bytes | Path | IO[bytes]) -> str:
    """Return the SHA-256 of some bytes, of a file, or of what a stream still holds."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    if isinstance(content, Path):
        with content.open("rb") as stream:
            return checksum(stream)
    digest = hashlib.sha256()
    while block := content.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


@contextmanager
def held_alone(file: Path) -> Iterator[None]:
    """Keep other runs from adding to a file meanwhile; refuse it where another run holds it."""
    real = Path(os.path.realpath(file))
    real.touch()
    with locked(real) as held:
        if held is False:
            raise InputError(f"{file} is written by another run at the moment; wait for its end, or name another file.")
        try:
            yield
        finally:
            if not real.stat().st_size:
                real.unlink()


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder that is removed at the end; those that killed runs have left are removed first."""
    # For oneself alone: the place may be one that others use, too.
    with unfinished(parent, lambda path: path.mkdir(mode=0o700)) as part:
        try:
            yield part
        except OSError as error:
            if not isinstance(error.filename, str) or part not in Path(error.filename).parents:
                raise
            raise _cannot_be_written(parent, error) from error


@contextmanager
def unfinished(parent: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Yield a hidden path that is ours alone, and remove it at the end; those of killed runs are removed first."""
    remove_abandoned(parent)
    while True:
        part = parent / f"{HIDDEN}{secrets.token_hex(6)}.part"
        make(part)
        with locked(part) as held:
            # Another run may have taken it for a killed one's, before it was locked.
            if held is not False:
                try:
                    yield part
                finally:
                    _remove(part)
                return


def remove_abandoned(folder: Path) -> None:
    for part in folder.glob(f"{HIDDEN}*.part"):
        with locked(part) as held:
            if held:
                _remove(part)


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[bool | None]:
    """Hold the lock of a file or folder, which a crash frees.

    Yields True; False where another run holds it or has just removed it; None where locks cannot be had.
    """
    if fcntl is None:
        yield None
        return
    try:
        # Files to write, too: disks that are shared over a network lock no others.
        handle = _open_at_once(path, os.O_NOFOLLOW | (os.O_RDONLY if path.is_dir() else os.O_RDWR))
    except OSError:
        yield None
        return
    try:
        held: bool | None = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            held = path.exists() and os.path.samestat(os.fstat(handle), path.stat())
        except BlockingIOError:
            held = False
        except OSError:
            held = None
        yield held
    finally:
        os.close(handle)


def _open_at_once(path: str | os.PathLike[str], flags: int) -> int:
    """Open a regular file or a folder: a pipe would wait for its other end, a device might do anything."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return handle


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


@contextmanager
def written_to(target: Path) -> Iterator[Path]:
    """Yield the place behind a name, and say in one sentence why it cannot be written to."""
    real = Path(os.path.realpath(target))
    try:
        yield real
    except OSError as error:
        if _is_hidden(real):
            # A part of something larger, whose writer says under which name people know it.
            error.filename = error.filename or str(real)
            raise
        if not _is_about(error, real):
            raise
        raise _cannot_be_written(target, error) from error


def _cannot_be_written(target: Path, error: OSError) -> InputError:
    return InputError(f"{target} cannot be written: {error.strerror or error}; pass another place.")


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(HIDDEN) for part in path.parts)


def _is_about(error: OSError, real: Path) -> bool:
    """Whether an error may be one of writing to a place; that of a file which was read is told as it is."""
    if not isinstance(error.filename, str):
        return True
    path = Path(os.path.realpath(error.filename))
    return _is_hidden(path) or path == real or path in real.parents or real in path.parents


@contextmanager
def listed_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield an empty folder whose files become the target's at the end, with a list of them and their checksums.

    Only files are replaced that the list of an existing target names and that are still what was written; all others
    stay. Whatever stands in the way is found out before any work is done.

    ``target``: A link is followed. ``overwrite``: whether files of an earlier call may be replaced.
    """
    with written_to(target) as real:
        _finish(real)
        check_folder(target, overwrite=overwrite)
        real.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(real.parent)
        # Inside a folder that exists: its parent may be another disk, or not ours to write to.
        with unfinished(real if real.exists() else real.parent, Path.mkdir) as part:
            fresh = part / "fresh"
            fresh.mkdir()
            yield fresh
            _write_checksums(fresh)
            check_folder(target, overwrite=overwrite, new=tuple(listed_files(fresh)))
            if real.exists():
                # From here on the new files are complete; a run that is killed below is finished by the next.
                fresh.rename(real / _ARRIVING)
                _finish(real)
            else:
                fresh.rename(real)


def check_folder(target: Path, *, overwrite: bool, new: tuple[str, ...] = ()) -> None:
    """Refuse a target that is a file, holds work of others only, or work of ours that must not be replaced."""
    real = Path(os.path.realpath(target))
    if not real.exists():
        return
    if not real.is_dir():
        raise InputError(f"{target} is a file, not a folder; pass the name of a folder.")
    if all(path.name.startswith(HIDDEN) for path in real.iterdir()):
        return
    listed = listed_files(real)
    if not listed:
        raise InputError(f"{target} exists and holds no model that ciplearn has written; pass another folder.")
    if not overwrite:
        raise InputError(f"{target} holds files of an earlier run; pass another, or --overwrite (overwrite=True).")
    _refuse_foreign(real, listed, {**dict.fromkeys(new, ""), **_waiting(real)})


def _refuse_foreign(folder: Path, listed: dict[str, str], new: dict[str, str]) -> None:
    """Refuse to replace a file that is neither what the folder's list says nor what is to take its place."""
    for name in {**listed, **new}:
        path = folder / name
        if path.exists() and (not path.is_file() or checksum(path) not in (listed.get(name), new.get(name))):
            raise InputError(f"{path} is not what ciplearn has written there; move it away, or pass another folder.")


def check_finished(folder: Path) -> None:
    """Refuse to read a folder in which files wait to take their places; only a run that writes there moves them."""
    # Unlike that of a Path, this one takes every name, also one that no folder can have.
    if os.path.lexists(folder / _ARRIVING):
        why = f"{folder} is unfinished, its run was stopped or goes on"
        raise InputError(f"{why}; write again, with --overwrite (overwrite=True).")


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
        raise InputError(f"{path} was changed and is no list of checksums; move the folder away, and write it anew.")
    _refuse_links(folder, names)
    return names


def _is_plain(name: str) -> bool:
    """Whether a name stays below its folder on every system, and is none that the folder itself needs."""
    hidden = any(part in ("", ".", "..") or part.startswith(HIDDEN) for part in name.split("/"))
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
