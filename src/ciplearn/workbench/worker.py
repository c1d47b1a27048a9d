"""The process that trains: ``python -m ciplearn.workbench.worker FOLDER``.

It reads ``request.json``, runs the commands that the page shows, writes model folders beside it, and says on standard
output, one JSON object per line, what is done. It ends with whoever started it: when standard input closes, it and all
that it has started are gone.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.plain_data import as_data
from ciplearn.cli.app import run
from ciplearn.cli.audit import report_on
from ciplearn.cli.options import Effort
from ciplearn.cli.output import listener
from ciplearn.workbench.document import Document
from ciplearn.workbench.recipes import Recipe, audit_line, fit_line
from ciplearn.workbench.stops import keep_model, listed, load_stop, of_folder, save_models, subject_of
from ciplearn.workbench.store import read_json
from ciplearn.workbench.tables import Table


def tell(**event: Any) -> None:
    """Say one thing to the server."""
    assert sys.__stdout__ is not None
    sys.__stdout__.write(json.dumps(as_data(event), allow_nan=False) + "\n")
    sys.__stdout__.flush()


def command(words: list[str], hears: Callable[[dict[str, Any]], None] = lambda event: tell(**event)) -> Any:
    """Run a command of ciplearn and return what it says as JSON; who hears is told of its steps on the way."""
    answer, mistakes = io.StringIO(), io.StringIO()
    heard = listener.set(hears)
    try:
        with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(mistakes):
            code = run([*words[1:], "--json"])
    finally:
        listener.reset(heard)
    # An audit that fails is an answer, too.
    if code not in (0, 1):
        lines = mistakes.getvalue().strip().splitlines()
        raise InputError(lines[-1].removeprefix("ciplearn: ") if lines else "The command ended without a word.")
    return json.loads(answer.getvalue())


def fit(folder: Path, request: dict[str, Any]) -> None:
    """Train, and keep what was compared as stops."""
    document, recipe = Document.read(request["document"]), Recipe.read(request["recipe"])
    kept: list[Any] = []

    def hears(event: dict[str, Any]) -> None:
        kept.extend([event.pop("trained")] if "trained" in event else [])
        tell(**event)

    answer = command(fit_line(document, recipe, request["table"]), hears)
    comparison = kept[0].comparison
    stops = listed(comparison)
    save_models(comparison, stops, folder)
    keys = {stop["name"]: stop["key"] for stop in stops}
    understood = answer["understood"]
    tell(
        task=understood["task"],
        rows={name: understood[name] for name in ("training", "held_out")},
        epochs=getattr(comparison.models[comparison.free], "epochs", None),
        stops=stops,
        chosen=keys[comparison.chosen],
        free=keys[comparison.free],
        reason=comparison.reason,
        notes=list(dict.fromkeys(comparison.notes)),
        audit=answer["audit"],
    )


def keep(folder: Path, request: dict[str, Any]) -> None:
    """Write the model folder of a stop and its report, as the command line writes them."""
    trained, stop = Path(request["run"]), request["stop"]
    tell(phase="Auditing it on rows that no training has seen", done=0, total=1)
    if stop["key"] == request["chosen"]:
        shutil.copytree(trained / "model", folder / "model")
    else:
        keep_model(trained / "model", stop, load_stop(trained, stop), folder / "model")
    tell(audit=command(audit_line(Recipe.read(request["recipe"]), request["table"])))


def measure(folder: Path, request: dict[str, Any]) -> None:
    """Measure the models of a folder that was trained before."""
    document, recipe = Document.read(request["document"]), Recipe.read(request["recipe"])
    models = Path(request["models"])
    tell(phase="Measuring the folder's models")
    subject = subject_of(models, Table(Path(request["table"]), request["shown"]), document)
    effort = Effort.of("standard", doubt=0)
    beside = subject.folder is not None  # of a model alone nothing else is known
    stops, chosen = of_folder(models, subject, lambda: report_on(subject, effort, recipe.seed, compare=beside).audit)
    free = next((stop["key"] for stop in stops if stop["free"]), None)
    comparison = None if subject.folder is None else subject.folder.comparison
    reason, notes = ("", []) if comparison is None else (comparison.reason, list(comparison.notes))
    rows = {"training": None, "held_out": len(subject.rows)}
    tell(task=subject.task, rows=rows, stops=stops, chosen=chosen, free=free, reason=reason, notes=notes)


def end_with_parent() -> None:
    """End, with all that was started here, when standard input closes."""
    sys.stdin.read()
    if hasattr(os, "killpg"):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os._exit(1)


def main(folder: Path) -> None:
    """Do what the folder's request says."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)  # two threads on two busy cores are many times slower than one
    request = read_json(folder / "request.json")
    os.chdir(folder)  # commands name their folders as the page shows them
    try:
        {"fit": fit, "keep": keep, "measure": measure}[request["kind"]](folder, request)
        tell(finished=True)
    except CiplearnError as problem:
        tell(failed=str(problem))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
