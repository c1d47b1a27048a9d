"""Fetching the Adult files: from UCI, or else from OpenML, whole and unchanged or not at all."""

from __future__ import annotations

import hashlib
import io
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from tqdm import tqdm

from ciplearn._core.errors import InputError, MissingDataError
from ciplearn._core.files import whole_file

# What the two files are, whichever source they come from.
CHECKSUMS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}

_SECONDS = 30
_BLOCK = 1 << 16

# OpenML's table is both files in one, the test rows first, without the comment and the full stops.
_TEST_ROWS = 16_281
_COMMENT = "|1x3 Cross validator"


@dataclass(frozen=True)
class Mirror:
    """A place on the internet, and how to make the two files out of what it sends."""

    name: str
    url: str
    files: Callable[[bytes], dict[str, bytes]]  # from the bytes received to the bytes of each file by name


def from_zip(received: bytes) -> dict[str, bytes]:
    """Take the two files out of UCI's archive."""
    with zipfile.ZipFile(io.BytesIO(received)) as archive:
        return {name: archive.read(name) for name in CHECKSUMS}


def from_arff(received: bytes) -> dict[str, bytes]:
    """Cut OpenML's table into the two files, to the byte."""
    _, _, body = received.decode("utf-8").partition("@data")
    rows = [line for line in body.splitlines() if line.strip()]
    test = [_COMMENT, *(f"{line}." for line in rows[:_TEST_ROWS])]
    data = rows[_TEST_ROWS:]
    return {name: "\n".join([*lines, "", ""]).encode() for name, lines in zip(CHECKSUMS, (data, test), strict=True)}


SOURCES = (
    Mirror("UCI", "https://archive.ics.uci.edu/static/public/2/adult.zip", from_zip),
    Mirror("OpenML", "https://api.openml.org/data/v1/download/1595261/adult.arff", from_arff),
)


def download(folder: Path, sources: tuple[Mirror, ...] = SOURCES) -> None:
    """Put both files into ``folder``, from the first source that has them unchanged.

    Raises `MissingDataError` if none has; the folder then holds nothing new.
    """
    failures = []
    for source in sources:
        try:
            files = source.files(_received(source))
            _check(files)
        # KeyError: an archive without the files; UnicodeDecodeError and the like are ValueErrors.
        except (OSError, HTTPException, zipfile.BadZipFile, KeyError, ValueError) as error:
            failures.append(f"{source.name}: {_reason(error)}")
            continue
        _write(folder, files)
        return
    raise MissingDataError(
        f"The Adult data could not be downloaded ({'; '.join(failures)}); save adult.data and adult.test from "
        f"{SOURCES[0].url} in a folder and pass it as path, or name the folder in CIPLEARN_DATA."
    )


def _received(source: Mirror) -> bytes:
    request = urllib.request.Request(source.url, headers={"User-Agent": "ciplearn"})
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        size = int(answer.headers.get("Content-Length") or 0)
        blocks = []
        with tqdm(
            total=size or None, desc=f"Adult from {source.name}", unit="B", unit_scale=True, disable=None, leave=False
        ) as bar:
            while block := answer.read(_BLOCK):
                blocks.append(block)
                bar.update(len(block))
    received = b"".join(blocks)
    if len(received) < size:
        raise OSError(f"the connection broke off after {len(received)} of {size} bytes")
    return received


def _check(files: dict[str, bytes]) -> None:
    for name, expected in CHECKSUMS.items():
        actual = hashlib.sha256(files[name]).hexdigest()
        if actual != expected:
            raise InputError(f"{name} has the checksum {actual[:12]}… instead of {expected[:12]}…")


def _write(folder: Path, files: dict[str, bytes]) -> None:
    try:
        for name, content in files.items():
            with whole_file(folder / name) as file:
                file.write(content)
    except InputError as error:
        raise InputError(
            f"The Adult data cannot be kept: {str(error).split(';')[0]}; free or permit that folder, or set "
            "XDG_CACHE_HOME to another."
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return "the archive lacks the files"
    return str(getattr(error, "reason", None) or error)
