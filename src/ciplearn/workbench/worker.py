"""The process that trains: ``python -m ciplearn.workbench.worker FOLDER``.

It reads ``request.json``, writes model folders beside it, and says on standard output, one JSON object per line, what
is done. It ends with whoever started it: when standard input closes, it and all that it has started are gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ciplearn import CIPClassifier, CIPRegressor, audit, baselines, fit_scm
from ciplearn._core.errors import CiplearnError
from ciplearn._core.files import write_file
from ciplearn.estimators.criteria import Allowance, Judged
from ciplearn.estimators.preparation import NO_ROUTE
from ciplearn.report import Report
from ciplearn.saving import load_model, save_model
from ciplearn.scm import StructuralCausalModel
from ciplearn.workbench.document import Document
from ciplearn.workbench.measures import Judge
from ciplearn.workbench.recipes import Recipe
from ciplearn.workbench.runs import is_free
from ciplearn.workbench.store import read_json
from ciplearn.workbench.tables import Table
from ciplearn.workbench.walked_rows import WalkedRows

_BASELINES = {"cf1": "CF1", "cf2": "CF2"}


def tell(**said: Any) -> None:
    """Say one thing to the server."""
    sys.stdout.write(json.dumps(said, allow_nan=False) + "\n")
    sys.stdout.flush()


class Walk:
    """A training along the routes: rows that train, rows that judge, rows that are kept for the report."""

    def __init__(self, folder: Path, request: dict[str, Any]) -> None:
        self.folder = folder
        self.document = Document.read(request["document"])
        self.recipe = Recipe.read(request["recipe"])
        self.verdict = self.document.verdict()
        self.models = request.get("models", [])
        table = Table(Path(request["table"]), request["shown"])
        rows = WalkedRows.of(table, self.document, self.recipe.seed)
        self.outcome, self.task = self.verdict.outcome, rows.task
        self.training, self.judging, self.held = rows.training, rows.judging, rows.held
        if self.models:
            self.training = self.judging = rows.every
        self.epochs = self.recipe.epochs(len(self.training))

    def run(self) -> None:
        """Train and measure, stop by stop."""
        walks: list[str] = [route for route in ("independence", "counterfactual") if route in self.recipe.routes]
        beside = [route for route in self.recipe.routes if route in _BASELINES]
        # The stop without a penalty belongs to every route, and is trained once.
        steps = len(walks) * (len(self.recipe.gammas) - 1) + 1 if not self.models else len(self.models)
        tell(
            task=self.task,
            rows={"training": len(self.training), "judging": len(self.judging)},
            epochs=self.epochs,
            phase="Estimating a causal model on the rows that judge",
            done=0,
            total=1 + steps + len(beside) + ("line" in self.recipe.routes),
        )
        judge = self._judge()
        free = allowance = None
        for stop, model in self._stops(walks):
            found = judge.measured(model)
            save_model(model, self.folder / "stops" / stop["key"], {"score": found["score"]["value"]})
            if not self.models:
                judged = Judged.of(model, judge.inputs, judge.rows[self.outcome].to_numpy())
                if allowance is None:
                    free, allowance = model, Allowance("loss", self.recipe.tolerance, judged)
                kept = is_free(stop) or (allowance.explains_something and allowance.allows(judged))
                stop = {**stop, "allowed": kept}
            tell(stop={**stop, **found}, step=True)
        trained = {}
        for route in beside:
            tell(phase=f"Training {_BASELINES[route]}")
            with told_apart(_BASELINES[route]):
                trained[route] = self._baseline(route)
                tell(baseline={"route": route, "name": _BASELINES[route], **judge.measured(trained[route])})
            tell(step=True)
        if "line" in self.recipe.routes and free is not None:
            tell(phase="Drawing the straight line")
            with told_apart("The straight line"):
                tell(line=judge.line(free, trained.get("cf1") or self._baseline("cf1")))
            tell(step=True)

    def _stops(self, walks: list[str]) -> Iterator[tuple[dict[str, Any], Any]]:
        for place, entry in enumerate(self.models):
            tell(phase=f"Measuring the model of gamma {entry['gamma']:g}")
            model = load_model(entry["folder"])
            route = "independence" if model.route_ == NO_ROUTE else model.route_
            held = {"held": True} if entry["held"] else {}
            yield {"key": f"m{place:02d}", "route": route, "gamma": entry["gamma"], **held}, model
        for route in walks if not self.models else ():
            extra = self._imagined(route)
            if extra is None:
                continue
            for place, gamma in enumerate(self.recipe.gammas):
                if gamma == 0 and route != walks[0]:
                    continue
                title = "without a penalty" if gamma == 0 else f"with gamma {gamma:g}"
                tell(phase=f"Training {title} ({route} route)")
                model = self._estimator(gamma=gamma, **(extra if gamma > 0 else {})).fit(
                    self.training.drop(columns=self.outcome), self.training[self.outcome].to_numpy()
                )
                yield {"key": f"{route[0]}{place:02d}", "route": route, "gamma": gamma}, model

    def _imagined(self, route: str) -> dict[str, Any] | None:
        """What a route needs beside gamma; None where this table has no such route."""
        if route == "independence":
            return {}
        tell(phase="Estimating a causal model on the rows that train")
        try:
            return {"counterfactuals": fit_scm(self.document.graph, self.training, random_state=self.recipe.seed)}
        except CiplearnError as problem:
            tell(note=f"The counterfactual route was left out: {problem}")
            return None

    def _estimator(self, **settings: Any) -> Any:
        kind = CIPClassifier if self.task == "classification" else CIPRegressor
        adjustment, violation = list(self.verdict.adjustment), "warn" if self.recipe.anyway else "raise"
        return kind(**self._roles(), adjustment=adjustment, on_violation=violation, **settings)

    def _roles(self) -> dict[str, Any]:
        return {
            "graph": self.document.graph,
            "outcome": self.outcome,
            "protected": list(self.verdict.protected),
            "context": list(self.verdict.context),
            "inputs": list(self.verdict.inputs),
            "epochs": self.epochs,
            "random_state": self.recipe.seed,
        }

    def _baseline(self, route: str) -> Any:
        made = getattr(baselines, _BASELINES[route])(**self._roles(), task=self.task)
        return made.fit(self.training.drop(columns=self.outcome), self.training[self.outcome].to_numpy())

    def _judge(self) -> Judge:
        classes = np.unique(self.training[self.outcome].to_numpy()) if self.task == "classification" else None
        scm: StructuralCausalModel | None = None
        try:
            scm = fit_scm(self.document.graph, self.judging, random_state=self.recipe.seed + 1)
        except CiplearnError as problem:
            tell(note=f"There are no counterfactuals here: {problem}")
        tell(step=True)
        return Judge(self.judging, self.verdict, scm, classes, self.recipe.seed)


@contextlib.contextmanager
def told_apart(what: str) -> Iterator[None]:
    """Let one comparison fail without the others."""
    try:
        yield
    except CiplearnError as problem:
        tell(note=f"{what} was left out: {problem}")


def keep(request: dict[str, Any]) -> None:
    """Run the very commands that the page shows, in the folder of the stop that is kept."""
    tell(phase="Training the model to keep", done=0, total=2)
    for words, phase in zip(request["commands"], ("Auditing it on rows that nobody has seen", "Done"), strict=True):
        command = [sys.executable, "-c", "from ciplearn.cli import main; main()", *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=request["folder"])
        if done.returncode not in (0, 1):
            tell(failed=(done.stderr.strip().splitlines() or ["It ended without a word."])[-1])
            return
        tell(phase=phase, step=True, said=done.stdout[-200_000:])


def keep_walked(request: dict[str, Any]) -> None:
    """Keep the very model of the walk, where the command line takes no gamma, and audit it."""
    folder, walked = Path(request["folder"]), Path(request["stop"])
    tell(phase="Auditing it on rows that nobody has seen", done=0, total=2)
    walk = Walk(folder, request)
    model = load_model(walked)
    scm = fit_scm(walk.document.graph, walk.held, random_state=walk.recipe.seed + 2)
    found = audit(model, scm, walk.held, n_points=200, n_interventions=50, n_draws=10, random_state=walk.recipe.seed)
    report = Report.of(
        found,
        rule="This stop was kept on the workbench.",
        penalty="variance over imagined rows",
        about_rows=f"Audited on: {len(walk.held)} rows that neither training nor the walk has seen.",
    )
    tell(step=True)
    shutil.copytree(walked, folder / "model")
    write_file(folder / "report.html", report.to_html())
    tell(phase="Done", step=True)


def end_with_parent() -> None:
    """End, with all that was started here, when standard input closes."""
    sys.stdin.read()
    if hasattr(os, "killpg"):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os._exit(1)


def main(folder: Path) -> None:
    """Do what the folder's request says."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    # Two threads on two busy cores are many times slower than one.
    torch.set_num_threads(1)
    request = read_json(folder / "request.json")
    try:
        if request["kind"] == "keep":
            keep(request)
        elif request["kind"] == "keep walked":
            keep_walked(request)
        else:
            Walk(folder, request).run()
        tell(finished=True)
    except CiplearnError as problem:
        tell(failed=str(problem))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
