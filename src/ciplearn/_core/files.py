"""Files that appear whole or not at all, also after a kill; locks; reading within bounds; answers line by line.

Whatever is unfinished lies beside its target under a hidden name, `.ciplearn-….part`, and is locked by the run that
writes it. A name without a lock was left by a run that was killed; the next run that writes there removes it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ciplearn._core.errors import InputError, MissingDependencyError

try:
    import fcntl
except ImportError:  # Windows has no such locks, and does not remove a file that is open.
    fcntl = None  # type: ignore[assignment]

# How names begin of what is unfinished.
HIDDEN = ".ciplearn-"

_BLOCK = 1 << 20
_MEBIBYTE = 1 << 20

# Of a file that maps names to values: it has a few lines, and hardly anything within anything.
_LARGEST_MIB, _DEEPEST = 1, 20
_LONG_NUMBER = re.compile(r"(?<![\w.])\d[\w.:]{300}")
_KEY = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?<![\w-]){_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{100}}")


@contextmanager
def whole_file(target: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Yield a stream whose content becomes the target's at the end; after an error or Ctrl-C nothing has changed.

    A link is followed. A device or a pipe is written to directly: there is nothing to keep whole.

    ``mode``: who may read and write a new file, less what the user's mask takes away.
    """
    with written_to(target) as place:
        if place.exists() and not place.is_file():
            if place.is_dir():
                raise InputError(f"{target} is a folder; pass the name of a file.")
            with place.open("wb", buffering=0) as stream:
                yield stream
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        with unfinished(place.parent, lambda part: part.touch(mode, exist_ok=False)) as part:
            with part.open("wb") as stream:
                yield stream
            part.replace(place)


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
    place = Path(os.path.realpath(file))
    place.touch()
    with locked(place) as held:
        if held is False:
            raise InputError(f"{file} is written by another run at the moment; wait for its end, or name another file.")
        try:
            yield
        finally:
            if not place.stat().st_size:
                place.unlink()


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
    place = Path(os.path.realpath(target))
    try:
        yield place
    except OSError as error:
        if _is_hidden(place):
            # A part of something larger, whose writer says under which name people know it.
            error.filename = error.filename or str(place)
            raise
        if not _is_about(error, place):
            raise
        raise _cannot_be_written(target, error) from error


def _cannot_be_written(target: Path, error: OSError) -> InputError:
    return InputError(f"{target} cannot be written: {error.strerror or error}; pass another place.")


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(HIDDEN) for part in path.parts)


def _is_about(error: OSError, place: Path) -> bool:
    """Whether an error may be one of writing to a place; that of a file which was read is told as it is."""
    if not isinstance(error.filename, str):
        return True
    path = Path(os.path.realpath(error.filename))
    return _is_hidden(path) or path == place or path in place.parents or place in path.parents


class KeptAnswers:
    """Answers to one question, a line each, written down as they come: a job that was stopped goes on where it was.

    ``path``: the file, which may not be there yet; None keeps nothing. ``digest``: what tells the question apart: a
    file with answers to another one is refused. ``known``: answers that the file holds, by key.
    """

    def __init__(self, path: str | os.PathLike[str] | None, digest: str) -> None:
        self.path, self.digest = None if path is None else Path(path), digest
        self.known: dict[str, dict[str, Any]] = {}
        if self.path is None or not self.path.exists():
            return
        content = self.path.read_bytes()
        # A line that a kill has cut short is forgotten, and written anew.
        whole = content[: content.rfind(b"\n") + 1]
        for line in whole.splitlines():
            try:
                entry = json.loads(line)
                key, answer, other = entry["key"], entry["answer"], entry["digest"]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path} holds no answers of this kind; name another file, or delete it.") from error
            if other != digest:
                raise InputError(f"{path} holds answers to another question; name another file, or delete this one.")
            self.known[key] = answer
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))

    def add(self, key: str, answer: dict[str, Any]) -> None:
        """Write an answer down."""
        self.known[key] = answer
        if self.path is None:
            return
        line = json.dumps({"key": key, "digest": self.digest, "answer": answer}) + "\n"
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML, TOML or JSON file that maps names to values, of bounded size and depth."""
    try:
        text = read_bounded(path, _LARGEST_MIB).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: it is not UTF-8 text; pass a YAML, TOML or JSON file.") from error
    content = _parsed(path, text)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InputError(f"{path} must map names to values, got {type(content).__name__}; write lines such as 'a: 1'.")
    return content


def _parsed(path: Path, text: str) -> Any:
    kind = path.suffix.lower()
    if _LONG_NUMBER.search(text):
        raise InputError(f"{path} holds a number of more than 300 digits; write it with fewer.")
    try:
        if kind == ".json":
            return json.loads(text)
        if kind == ".toml":
            import tomllib

            # Its time grows with the square of a key's depth.
            if _DEEP_KEY.search(text):
                raise RecursionError
            return tomllib.loads(text)
        if kind in (".yaml", ".yml"):
            return _yaml(text)
    except RecursionError:
        raise InputError(
            f"{path} has lists or mappings within each other, too deep to be read; write it flat."
        ) from None
    except ValueError as error:
        raise InputError(f"{path} is not valid {kind[1:].upper()}: {error}; correct that place.") from error
    raise InputError(
        f"{path} ends in {kind or 'nothing'!r}; name it .yaml, .toml or .json, so that its notation is known."
    )


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingDependencyError(
            "YAML files need pyyaml, which is not installed; pip install 'ciplearn[yaml]', or write TOML or JSON."
        ) from error
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                # A few lines of aliases can stand for more values than any memory holds.
                raise ValueError(f"the alias *{event.anchor} stands for other lines; write them out")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise RecursionError
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
