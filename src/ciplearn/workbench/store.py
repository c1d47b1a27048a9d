"""`Store`: the folder in which a workbench keeps its work.

    document.json    the drawing, its version, and which table it is about
    lock             held by the one workbench that works here; a crash frees it
    server.json      where that one is, and the port, which the next takes again
    opening/         a page that leads the browser to the server, for its owner's eyes only
    tables/          tables that came through the page
    runs/            one folder per training

Every file appears whole or not at all. Nothing outside the folder is written, and no name from a message becomes a
path: what is stored gets a name of our own.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import secrets
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ciplearn._core.errors import InputError
from ciplearn._core.files import locked, read_bounded, whole_file, write_file
from ciplearn.workbench.protocol import SERVER, Schema, check

_LARGEST = 64  # MiB: a run with all of its stops

# A run's or table's own name: what `new_name` makes, and nothing that could leave the folder.
_NAME = re.compile(r"[0-9a-f]{16}")

TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".csv.gz", ".tsv.gz")  # that the reader of tables understands


def default_folder(*about: str) -> Path:
    """Return the folder for what was asked on the command line: the same words find the same work again."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    words = hashlib.sha256("\0".join(about).encode()).hexdigest()[:12]
    return Path(home) / "ciplearn" / "workbench" / (words if any(about) else "untitled")


def new_name() -> str:
    """Return a fresh name for a run or a table."""
    return secrets.token_hex(8)


class InUseError(InputError):
    """Another workbench works in the folder; where it is, stands in the message."""


class Store:
    """The folder and what is in it, held until `close`: two workbenches would take each other's work for abandoned."""

    def __init__(self, folder: Path) -> None:
        # Unlike a Path's, this one leaves the name of a user that there is not as it is.
        self.folder = Path(os.path.expanduser(folder)).resolve()
        self.tables, self.runs = self.folder / "tables", self.folder / "runs"
        try:
            for path in (self.folder, self.tables, self.runs, self.folder / "opening"):
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.folder / "lock").touch(0o600)
        except OSError as error:
            raise InputError(
                f"{self.folder} cannot be used: {error.strerror or error}; pass another --folder."
            ) from error
        self.set_aside: list[str] = []
        self._held = ExitStack()
        if self._held.enter_context(locked(self.folder / "lock")) is False:
            address = read_json(self.folder / "server.json").get("address")
            where = f"at {address}" if address else "in a notebook, or has just begun"
            raise InUseError(
                f"The workbench of {self.folder} is open already, {where}; go there, or pass another folder."
            )
        # Of a server that was killed, only the port still holds.
        self.port = self.read("server.json", SERVER).get("port", 0)
        write_json(self.folder / "server.json", {"port": self.port})

    def close(self) -> None:
        """Let others work here."""
        self._held.close()

    def read(self, name: str, schema: Schema) -> dict[str, Any]:
        """Return a JSON file of the folder, empty where it is missing; one that is damaged is set aside and said."""
        path = self.folder / name
        if not os.path.lexists(path):
            return {}
        try:
            content: dict[str, Any] = json.loads(read_bounded(path, _LARGEST))
            check(content, schema, f"the file {name}")
        except (ValueError, RecursionError):
            # A run goes with all of its files.
            bad = path.parent if path.parent.parent == self.runs else path
            aside = bad.with_name(f"damaged-{new_name()}-{bad.name}")
            bad.rename(aside)
            self.set_aside.append(f"{name} was damaged or changed; it lies in {aside.name} now, and was not read.")
            return {}
        return content

    def serving(self, address: str, port: int) -> Path:
        """Keep where the server is, and return a page that leads there: a list of processes would show the secret."""
        write_json(self.folder / "server.json", {"address": address, "port": port})
        page, there = self.folder / "opening" / "open.html", html.escape(address)
        text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={there}">'
        write_file(page, f'{text}<title>ciplearn workbench</title><a href="{there}">Open the workbench</a>', 0o600)
        return page

    def add_table(self, shown: str, content: bytes) -> str:
        """Store a table under a name of our own, and return it with its ending."""
        ending = next((end for end in sorted(TABLE_ENDINGS, key=len, reverse=True) if shown.lower().endswith(end)), "")
        if not ending:
            raise InputError(f"{shown[:80]!r} is no table; drop a file that ends in {', '.join(TABLE_ENDINGS)}.")
        name = f"{new_name()}{ending}"
        with whole_file(self.tables / name) as stream:
            stream.write(content)
        return name

    def table_path(self, name: str) -> Path:
        """Return the path of a stored table; any other name is refused."""
        stem, dot, ending = name.partition(".")
        path = self.tables / name
        if not _NAME.fullmatch(stem) or f"{dot}{ending}" not in TABLE_ENDINGS or not path.is_file():
            raise InputError(f"There is no table {name[:80]!r} here; drop it on the page again.")
        return path

    def run_folder(self, name: Any) -> Path:
        """Return the folder of a run; any name that is not one of ours is refused."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(f"There is no run {str(name)[:80]!r} here; reload the page.")
        return self.runs / name

    def run_names(self) -> list[str]:
        """Return the names of the runs, the oldest first."""
        folders = [folder for folder in self.runs.iterdir() if folder.is_dir() and _NAME.fullmatch(folder.name)]
        return [folder.name for folder in sorted(folders, key=lambda folder: (folder.stat().st_mtime, folder.name))]

    def remove_run(self, name: str) -> None:
        """Leave nothing of a run."""
        shutil.rmtree(self.run_folder(name), ignore_errors=True)


def read_json(path: Path) -> dict[str, Any]:
    """Return an object from a JSON file, empty where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write an object as a JSON file, whole."""
    write_file(path, json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False), 0o600)
