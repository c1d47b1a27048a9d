"""`Runs`: the trainings of a desk: started, watched, cancelled, kept, and found again after a restart."""

from __future__ import annotations

import base64
import io
import os
import shutil
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from ciplearn._core.errors import InputError
from ciplearn.workbench.document import Document
from ciplearn.workbench.jobs import Job
from ciplearn.workbench.protocol import RUN
from ciplearn.workbench.recipes import WITHOUT_GAMMA, Recipe, audit_line, command_line, script, shown
from ciplearn.workbench.store import Store, new_name, write_json
from ciplearn.workbench.tables import Table

Run = dict[str, Any]

# A model folder is small; a report holds a few drawings.
_LARGEST_DOWNLOAD = 200_000_000


class Runs:
    """All runs, the oldest first; one works at a time.

    Parameters
    ----------
    store : Store
    tell : callable
        Takes an event for whoever looks.
    """

    def __init__(self, store: Store, tell: Callable[[dict[str, Any]], None]) -> None:
        self.store = store
        self._tell = tell
        self._lock = threading.RLock()
        self._job: Job | None = None
        self._at_work: str | None = None
        self.known: dict[str, Run] = {}
        self.interrupted = self._found_again()

    def _found_again(self) -> str:
        """Read the runs of an earlier server; what was cut short keeps its finished stops, or goes."""
        cut = 0
        for name in list(self.store.run_names()):
            run = self.store.read(f"runs/{name}/run.json", RUN)
            if not self.store.run_folder(name).exists():
                continue
            if run.get("status") == "running" or not run:
                cut += 1
                if not run.get("stops"):
                    self.store.remove_run(name)
                    continue
                run |= {"status": "interrupted", "phase": "Interrupted when the server stopped"}
            for kept in run.get("kept", {}).values():
                if kept["status"] == "running":
                    kept |= {"status": "failed", "phase": "Interrupted when the server stopped; keep it again"}
            self.known[name] = run
            self._write(name)
        return "A training was interrupted when the server stopped; its finished stops were saved." if cut else ""

    # ---------------------------------------------------------------- start and end

    def start(
        self, document: Document, table: Table, recipe: Recipe, models: list[dict[str, Any]] | None = None
    ) -> Run:
        """Start a training, or the measurement of given models."""
        self._check(document, table, recipe)
        with self._lock:
            self._refuse_second()
            name = new_name()
            folder = self.store.run_folder(name)
            folder.mkdir(parents=True)
            run: Run = {
                "name": name,
                "started": time.time(),
                "status": "running",
                "phase": "Starting",
                "done": 0,
                "total": 1,
                "document": document.to_dict(),
                "fingerprint": document.fingerprint(table.digest),
                "table": {"path": str(table.path), "name": table.shown},
                "recipe": recipe.to_dict(),
                "models": bool(models),
                "stops": [],
                "baselines": [],
                "line": [],
                "notes": [],
                "kept": {},
                "chosen": None,
            }
            self.known[name] = run
            self._write(name)
            request = {"kind": "walk", "document": run["document"], "recipe": run["recipe"], "models": models or []}
            write_json(folder / "request.json", {**request, "table": str(table.path), "shown": table.shown})
            self._begin(name, folder, lambda said: self._walked(name, said))
        return self._changed(name)

    def _check(self, document: Document, table: Table, recipe: Recipe) -> None:
        """Refuse what cannot be trained before anything is started."""
        missing = document.missing_roles()
        if missing:
            raise InputError(f"The drawing names no {' and no '.join(missing)}; give a node that role first.")
        verdict = document.verdict()
        if "independence" in recipe.routes and not verdict.holds and not recipe.anyway:
            raise InputError(
                f"The graph does not certify {verdict.independence}; repair the drawing, choose another route, or "
                "enforce it anyway."
            )
        rows = table.typed(document)
        if rows[verdict.outcome].nunique() < 2:
            raise InputError(f"The outcome {verdict.outcome!r} has the same value in all rows; nothing can be learnt.")

    def _refuse_second(self) -> None:
        at_work = [run["status"] for run in self.known.values()]
        at_work += [kept["status"] for run in self.known.values() for kept in run["kept"].values()]
        if "running" in at_work:
            raise InputError("Another training is at work; wait for it, or cancel it first.")
        if self._job is not None:
            # It has said all it had to say, and is on its way out.
            self._job.end()

    def _begin(self, name: str, folder: Path, told: Callable[[dict[str, Any]], None]) -> None:
        self._at_work = name
        self._job = Job(folder, told)

    def cancel(self, name: Any) -> None:
        """End a training and leave nothing of it; of a stop that is being kept, nothing of that."""
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
            self.forget(name)
            return
        for key in keeping:
            self._drop_kept(name, key)
        self._changed(name)

    def forget(self, name: Any) -> None:
        """Remove a run that is not at work."""
        run = self.run(name)
        if run["status"] == "running":
            raise InputError("This training is at work; cancel it instead.")
        with self._lock:
            self.known.pop(name, None)
            self.store.remove_run(name)
        self._tell({"event": "run-gone", "name": name})

    def close(self) -> None:
        """End what is at work; finished stops stay."""
        if self._job is not None and self._job.alive:
            self._job.end()

    # ---------------------------------------------------------------- what workers say

    def _walked(self, name: str, said: Mapping[str, Any]) -> None:
        with self._lock:
            run = self.known.get(name)
            if run is None or run["status"] == "cancelled":
                return
            _advance(run, said)
            for key in ("task", "rows", "epochs"):
                if key in said:
                    run[key] = said[key]
            for key, place in (("stop", "stops"), ("baseline", "baselines"), ("note", "notes")):
                if key in said:
                    run[place].append(said[key])
            if "line" in said:
                run["line"] = said["line"]
            if "stop" in said:
                run["chosen"] = chosen(run)
            if said.get("finished"):
                run |= {"status": "done", "phase": "Done"}
            elif "failed" in said:
                run |= {"status": "failed", "phase": said["failed"]}
            elif said.get("ended") and run["status"] == "running":
                last = (said["errors"].strip().splitlines() or ["it ended without a word"])[-1]
                run |= {"status": "failed", "phase": f"The training stopped: {last}"}
        self._changed(name)

    def _kept(self, name: str, key: str, said: Mapping[str, Any]) -> None:
        with self._lock:
            run = self.known.get(name)
            kept = None if run is None else run["kept"].get(key)
            if kept is None or kept["status"] == "cancelled":
                return
            _advance(kept, said)
            if said.get("finished") and kept["status"] == "running":
                kept |= {"status": "done", "phase": "Done"}
            elif "failed" in said:
                kept |= {"status": "failed", "phase": said["failed"]}
            elif said.get("ended") and kept["status"] == "running":
                kept |= {"status": "failed", "phase": "It stopped; keep it again."}
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

    # ---------------------------------------------------------------- keeping a stop

    def keep(self, name: Any, key: Any) -> Run:
        """Run the commands of a stop: a model folder and a report, as the command line makes them.

        Of the counterfactual route the command line searches for a gamma and takes none: there, the model of the walk
        itself is kept and audited.
        """
        run, stop = self._stop(name, key)
        with self._lock:
            self._refuse_second()
            folder = self._kept_folder(name, key)
            self._drop_kept(name, key)
            folder.mkdir(parents=True)
            write_json(folder / "request.json", self._keeping(run, stop, folder))
            run["kept"][key] = {"status": "running", "phase": "Starting", "done": 0, "total": 2}
            self._begin(name, folder, lambda said: self._kept(name, key, said))
        return self._changed(name)

    def _keeping(self, run: Run, stop: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        table = run["table"]["path"]
        if stop["route"] == "independence":
            # The report names the table: by the name that its owner gave it, not by ours.
            table = _named(Path(table), folder / run["table"]["name"])
            commands = [self._words(run, stop, table), audit_line(Recipe.read(run["recipe"]), table)]
            return {"kind": "keep", "folder": str(folder), "commands": commands}
        walked = self.store.run_folder(run["name"]) / "stops" / stop["key"]
        asked = {key: run[key] for key in ("document", "recipe")}
        about = {"table": table, "shown": run["table"]["name"], "folder": str(folder), "stop": str(walked)}
        return {"kind": "keep walked", **asked, **about}

    def _words(self, run: Run, stop: Mapping[str, Any], table: str) -> list[str]:
        document, recipe = Document.read(run["document"]), Recipe.read(run["recipe"])
        return command_line(document, recipe, stop["gamma"], run["epochs"], table, "model")

    def _kept_folder(self, name: str, key: str) -> Path:
        return self.store.run_folder(name) / "kept" / key

    def _drop_kept(self, name: str, key: str) -> None:
        self.known[name]["kept"].pop(key, None)
        shutil.rmtree(self._kept_folder(name, key), ignore_errors=True)

    def model_folder(self, name: Any, key: Any) -> Path:
        """Return where a stop's model is: the kept one where it was kept."""
        run, stop = self._stop(name, key)
        if run["kept"].get(stop["key"], {}).get("status") == "done":
            return self._kept_folder(name, stop["key"]) / "model"
        return self.store.run_folder(name) / "stops" / str(stop["key"])

    def free_model(self, name: Any) -> Path | None:
        """Return where the model without a penalty is, if there is one."""
        run = self.run(name)
        free = next(filter(is_free, run["stops"]), None)
        return None if free is None else self.store.run_folder(name) / "stops" / str(free["key"])

    def download(self, name: Any, key: Any, what: Any) -> dict[str, Any]:
        """Return a file of a stop: ``model``, ``report``, ``command`` or ``script``."""
        run, stop = self._stop(name, key)
        if what in ("command", "script"):
            text = self._text(run, stop, what)
            return {"name": {"command": "train.sh", "script": "train.py"}[what], "text": text}
        if run["kept"].get(stop["key"], {}).get("status") != "done" or what not in ("model", "report"):
            raise InputError("This stop is not kept yet; keep it first.")
        folder = self._kept_folder(name, stop["key"])
        content = (folder / "report.html").read_bytes() if what == "report" else zipped(folder / "model")
        if len(content) > _LARGEST_DOWNLOAD:
            raise InputError(f"It is too large for the page; find it in {folder}.")
        return {
            "name": "report.html" if what == "report" else "model.zip",
            "base64": base64.b64encode(content).decode("ascii"),
            "type": "text/html" if what == "report" else "application/zip",
        }

    def _text(self, run: Run, stop: Mapping[str, Any], what: str) -> str:
        document, recipe = Document.read(run["document"]), Recipe.read(run["recipe"])
        table = run["table"]["name"]
        if run["models"]:
            raise InputError("This model comes from a folder; ciplearn fit --config with its fit.json repeats it.")
        if what == "script":
            return script(document, recipe, stop, run["epochs"], table, run["task"])
        if stop["route"] != "independence":
            raise InputError(
                "ciplearn fit --route counterfactual searches for its gamma, and takes none; take the Python script."
            )
        fit = shown(self._words(run, stop, table))
        return f"{fit}\n{shown(audit_line(recipe, table))}\n"

    def run(self, name: Any) -> Run:
        """Return a run by its name."""
        if not isinstance(name, str) or name not in self.known:
            raise InputError("There is no such run here; reload the page.")
        return self.known[name]

    def _stop(self, name: Any, key: Any) -> tuple[Run, dict[str, Any]]:
        run = self.run(name)
        for stop in run["stops"]:
            if stop["key"] == key:
                return run, stop
        raise InputError("There is no such stop in this run; reload the page.")


def _named(table: Path, name: Path) -> str:
    """Return a path to a table under a name; its own path where it has that name, or can have none like it."""
    if table.name == name.name:
        return str(table)
    try:
        os.link(table, name)
    except (OSError, ValueError):
        return str(table)
    return str(name)


def _advance(progress: dict[str, Any], said: Mapping[str, Any]) -> None:
    for key in ("phase", "total", "done"):
        if key in said:
            progress[key] = said[key]
    if said.get("step"):
        progress["done"] = min(progress["done"] + 1, progress["total"])


def is_free(stop: Mapping[str, Any]) -> bool:
    """Tell whether a stop was trained for accuracy alone; a line and columns left out have no gamma either."""
    return stop["gamma"] == 0 and stop["route"] not in WITHOUT_GAMMA


def chosen(run: Run) -> str:
    """The largest gamma of the first route that keeps to the tolerance, on the rows that judge.

    Of the models of a folder, the one that the folder holds.
    """
    held = next((stop for stop in run["stops"] if stop.get("held")), None)
    if held is not None:
        return str(held["key"])
    first = run["stops"][0]
    allowed = [stop for stop in run["stops"] if stop["route"] == first["route"] and stop.get("allowed")]
    return str(max(allowed or [first], key=lambda stop: stop["gamma"])["key"])


def public(run: Run) -> Run:
    """Return a run as the page sees it: as it is at this moment, without paths of this machine."""
    return {**deepcopy(run), "table": {"name": run["table"]["name"]}}


def zipped(folder: Path) -> bytes:
    """Return a folder as a zip file with one folder at its root."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, Path("model") / path.relative_to(folder))
    return packed.getvalue()
