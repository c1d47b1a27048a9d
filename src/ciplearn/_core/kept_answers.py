"""Answers that are written down as they come, one line each, so that a job that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ciplearn._core.errors import InputError


class KeptAnswers:
    """A file of answers to one question.

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
                said = json.loads(line)
                key, answer, other = said["key"], said["answer"], said["digest"]
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
