"""`Runs`: the trainings of a desk: started, watched, cancelled, kept, and found again after a restart."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from ciplearn._core.errors import InputError
from ciplearn.workbench.document import Document
from ciplearn.workbench.protocol import RUN
from ciplearn.workbench.recipes import Recipe, audit_line, fit_line, script, shown
from ciplearn.workbench.store import Store, new_name, write_json
from ciplearn.workbench.tables import Table

Run = dict[str, Any]

_LARGEST_DOWNLOAD = 200_000_000  # a model folder is small; a report holds a few drawings
_LAST_WORDS = 2000  # what a worker may still say of its failure

# What a worker says of itself, and not of what it trains.
_OF_WORKER = ("note", "finished", "failed", "ended", "errors")
_STARTING = {"status": "running", "phase": "Starting", "done": 0, "total": 1}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Runs:
    """All runs, the oldest first; one works at a time. ``tell``: takes an event for whoever looks."""

    def __init__(self, store: Store, tell: Callable[[dict[str, Any]], None]) -> None:
        self.store = store
        self._tell = tell
        self._lock = threading.RLock()
        self._job: Job | None = None
        self._at_work: str | None = None
        self.known: dict[str, Run] = {}
        self.interrupted = ""
        # The runs of an earlier server; a training that was cut short goes.
        for name in store.run_names():
            run = store.read(f"runs/{name}/run.json", RUN)
            if not store.run_folder(name).exists():
                continue
            if run.get("status") == "running" or not run:
                self.interrupted = "A training was interrupted when the server stopped; train again."
                store.remove_run(name)
                continue
            for kept in run.get("kept", {}).values():
                if kept["status"] == "running":
                    kept |= {"status": "failed", "phase": "Interrupted when the server stopped; keep it again"}
            self.known[name] = run
            self._write(name)

    def start(self, document: Document, table: Table, recipe: Recipe, models: Path | None = None) -> Run:
        """Start a training, or the measurement of the models of a folder."""
        if missing := document.missing_roles():
            raise InputError(f"The drawing names no {' and no '.join(missing)}; give a node that role first.")
        outcome = document.verdict().outcome
        if table.typed(document)[outcome].nunique() < 2:
            raise InputError(f"The outcome {outcome!r} has the same value in all rows; nothing can be learnt.")
        with self._lock:
            self._refuse_second()
            name = new_name()
            folder = self.store.run_folder(name)
            folder.mkdir(parents=True)
            # What is written names the table: by the name that its owner gave it, not by ours.
            path = _named(table.path, folder / "table" / table.shown)
            run: Run = {
                "name": name,
                "started": time.time(),
                **_STARTING,
                "document": document.to_dict(),
                "fingerprint": document.fingerprint(table.digest),
                "table": {"path": str(table.path), "name": table.shown, "read": path},
                "recipe": recipe.to_dict(),
                "models": None if models is None else str(models),
                "stops": [],
                "notes": [],
                "kept": {},
                "chosen": None,
            }
            self.known[name] = run
            self._write(name)
            kind = "fit" if models is None else "measure"
            request = {"kind": kind, **{key: run[key] for key in ("document", "recipe", "models")}}
            self._begin(name, folder, {**request, "table": path, "shown": table.shown})
        return self._changed(name)

    def _refuse_second(self) -> None:
        at_work = [run["status"] for run in self.known.values()]
        at_work += [kept["status"] for run in self.known.values() for kept in run["kept"].values()]
        if "running" in at_work:
            raise InputError("Another training is at work; wait for it, or cancel it first.")
        if self._job is not None:
            # It has said all it had to say, and is on its way out; whoever reads it may wait for the lock held here.
            self._job.kill()

    def _begin(self, name: str, folder: Path, request: dict[str, Any], key: str | None = None) -> None:
        write_json(folder / "request.json", request)
        self._at_work = name
        self._job = Job(folder, lambda event: self._told(name, event, key))

    def cancel(self, name: str) -> str:
        """End a training and leave nothing of it, or of a stop that is being kept; return its name."""
        run = self.run(name)
        with self._lock:
            job, at_work = self._job, self._at_work
            keeping = [key for key, kept in run["kept"].items() if kept["status"] == "running"]
            if run["status"] != "running" and not keeping:
                raise InputError("This training has ended already; forget it instead.")
            if run["status"] == "running":
                run["status"] = "cancelled"
            for key in keeping:
                run["kept"][key]["status"] = "cancelled"
        if job is not None and at_work == name:
            job.end()
        if run["status"] == "cancelled":
            return self.forget(name)
        for key in keeping:
            self._drop_kept(name, key)
        self._changed(name)
        return name

    def forget(self, name: str) -> str:
        """Remove a run that is not at work, and return its name."""
        run = self.run(name)
        if run["status"] == "running":
            raise InputError("This training is at work; cancel it instead.")
        with self._lock:
            self.known.pop(name, None)
            self.store.remove_run(name)
        self._tell({"event": "run-gone", "name": name})
        return name

    def close(self) -> None:
        """End what is at work; finished stops stay."""
        if self._job is not None and self._job.alive:
            self._job.end()

    def _told(self, name: str, event: Mapping[str, Any], key: str | None = None) -> None:
        """Write down what a worker says of a run, or of a stop that is being kept."""
        with self._lock:
            run = self.known.get(name)
            progress = run if run is None or key is None else run["kept"].get(key)
            if run is None or progress is None or progress["status"] != "running":
                return
            progress |= {name: value for name, value in event.items() if name not in _OF_WORKER and value is not None}
            if "note" in event and key is None:
                run["notes"] = list(dict.fromkeys([*run["notes"], event["note"]]))
            if event.get("finished"):
                progress |= {"status": "done", "phase": "Done"}
            elif "failed" in event:
                progress |= {"status": "failed", "phase": event["failed"]}
            elif event.get("ended"):
                last = (event["errors"].strip().splitlines() or ["it ended without a word"])[-1]
                progress |= {"status": "failed", "phase": f"The training stopped: {last}"}
        self._changed(name)

    def _changed(self, name: str) -> Run:
        with self._lock:
            self._write(name)
            run = public(self.known[name])
        self._tell({"event": "run", "run": run})
        return run

    def _write(self, name: str) -> None:
        folder = self.store.run_folder(name)
        if folder.exists():
            write_json(folder / "run.json", self.known[name])

    def keep(self, name: str, key: str) -> Run:
        """Write the model folder and the report of a stop, as the command line makes them."""
        run, stop = self._stop(name, key)
        if stop["model"] is None or run["models"]:
            raise InputError("There is no model of this stop to keep; take the Python script, or another stop.")
        with self._lock:
            self._refuse_second()
            folder = self._kept_folder(name, key)
            self._drop_kept(name, key)
            folder.mkdir(parents=True)
            asked = {"kind": "keep", "run": str(self.store.run_folder(name)), "stop": stop}
            asked |= {"chosen": run["chosen"], "recipe": run["recipe"], "table": run["table"]["read"]}
            run["kept"][key] = dict(_STARTING)
            self._begin(name, folder, asked, key)
        return self._changed(name)

    def _kept_folder(self, name: str, key: str) -> Path:
        return self.store.run_folder(name) / "kept" / key

    def _drop_kept(self, name: str, key: str) -> None:
        self.known[name]["kept"].pop(key, None)
        shutil.rmtree(self._kept_folder(name, key), ignore_errors=True)

    def with_model(self, name: str, key: str) -> tuple[Run, Path, dict[str, Any]]:
        """Return a run, its folder, and a stop of it that has a model."""
        run, stop = self._stop(name, key)
        if stop["model"] is None:
            raise InputError("The model of this stop was not kept; take another stop.")
        return run, self.store.run_folder(name), stop

    def download(self, name: str, key: str, what: str) -> dict[str, Any]:
        """Return a file of a stop: ``model``, ``report``, ``command`` or ``script``."""
        run, stop = self._stop(name, key)
        if what in ("command", "script"):
            text = self._text(run, stop, what)
            return {"name": {"command": "train.sh", "script": "train.py"}[what], "text": text}
        if run["kept"].get(key, {}).get("status") != "done":
            raise InputError("This stop is not kept yet; keep it first.")
        folder = self._kept_folder(name, key)
        if what == "report":
            shown, kind, content = "report.html", "text/html", (folder / "report.html").read_bytes()
        else:
            shown, kind, content = "model.zip", "application/zip", zipped(folder / "model")
        if len(content) > _LARGEST_DOWNLOAD:
            raise InputError(f"It is too large for the page; find it in {folder}.")
        return {"name": shown, "base64": base64.b64encode(content).decode("ascii"), "type": kind}

    def _text(self, run: Run, stop: Mapping[str, Any], what: str) -> str:
        document, recipe = Document.read(run["document"]), Recipe.read(run["recipe"])
        table = run["table"]["name"]
        if run["models"]:
            raise InputError("This model comes from a folder; ciplearn fit --config with its fit.json repeats it.")
        if what == "script":
            return script(document, recipe, stop, run)
        if stop["model"] != "model":
            raise InputError("ciplearn fit takes the best stop for the goal, not this one; take the Python script.")
        strength = None if stop["key"] == run["chosen"] else stop["strength"]
        lines = [fit_line(document, recipe, table), audit_line(recipe, table, strength=strength)]
        return "".join(f"{shown(words)}\n" for words in lines)

    def run(self, name: str) -> Run:
        """Return a run by its name."""
        if name not in self.known:
            raise InputError("There is no such run here; reload the page.")
        return self.known[name]

    def _stop(self, name: str, key: str) -> tuple[Run, dict[str, Any]]:
        run = self.run(name)
        for stop in run["stops"]:
            if stop["key"] == key:
                return run, stop
        raise InputError("There is no such stop in this run; reload the page.")


def _named(table: Path, name: Path) -> str:
    """Return a path to a table under a name; its own path where it has that name, or can have none like it."""
    if table.name != name.name:
        with contextlib.suppress(OSError, ValueError):
            name.parent.mkdir(exist_ok=True)
            os.link(table, name)
            return str(name)
    return str(table)


def public(run: Run) -> Run:
    """Return a run as the page sees it: as it is at this moment, without paths of this machine."""
    stops = [{**one, "model": one["model"] is not None, "has_command": one["model"] == "model"} for one in run["stops"]]
    return {**deepcopy(run), "stops": stops, "table": {"name": run["table"]["name"]}, "models": bool(run["models"])}


def zipped(folder: Path) -> bytes:
    """Return a folder as a zip file with one folder at its root."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, Path("model") / path.relative_to(folder))
    return packed.getvalue()


class Job:
    """A worker on a folder that holds its request; a thread hands to ``told`` what it says, and that it has ended."""

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
            start_new_session=True,  # a group of its own, which ends as one
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
        self._process.wait()
        watching.join(timeout=2)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._told({"ended": True, "errors": self._errors})

    def _listen_to_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors = (self._errors + line)[-_LAST_WORDS:]

    @property
    def alive(self) -> bool:
        """Whether the worker still works."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the worker and all that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End the worker, and wait until its last words are read."""
        self.kill()
        if threading.current_thread() is not self._reader:
            self._reader.join(timeout=5)
