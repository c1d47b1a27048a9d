"""`Job`: a worker process, its lines as they come, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What a worker may still say of its failure.
_LAST_WORDS = 2000

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Job:
    """Start a worker on a folder that holds its request.

    ``told``: takes what the worker says, in a thread of its own; the last is ``{"ended": True}`` with the last words of
    a worker that did not finish.
    """

    def __init__(self, folder: Path, told: Callable[[dict[str, Any]], None]) -> None:
        environment = {**os.environ, **{name: os.environ.get(name, "1") for name in _THREADS}, "PYTHONUNBUFFERED": "1"}
        self._told = told
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "ciplearn.workbench.worker", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=environment,
            # A group of its own, which ends as one.
            start_new_session=True,
        )
        self._errors = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        watching = threading.Thread(target=self._listen_to_errors, daemon=True)
        watching.start()
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(json.JSONDecodeError):
                self._told(json.loads(line))
        code = self._process.wait()
        watching.join(timeout=2)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._told({"ended": True, "code": code, "errors": self._errors})

    def _listen_to_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors = (self._errors + line)[-_LAST_WORDS:]

    @property
    def alive(self) -> bool:
        """Whether the worker still works."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the worker and all that it has started, and wait until they are gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        if threading.current_thread() is not self._reader:
            self._reader.join(timeout=5)
