"""Stops of a walk: the candidates of a comparison as the page shows them, and the model of each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from ciplearn._core.columns import CLASSIFICATION, task_of
from ciplearn._core.errors import CiplearnError
from ciplearn._core.listed_folders import listed_folder
from ciplearn.cli.audited import Audited
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.estimators.preparation import INDEPENDENCE, NO_ROUTE
from ciplearn.estimators.roles import statement_on_columns
from ciplearn.evaluation import Audit
from ciplearn.evaluation.predictors import enforced_statement
from ciplearn.repairing import load_model, save_model
from ciplearn.routes import Comparison
from ciplearn.routes.family import BASELINE, FREE
from ciplearn.sources.table_file import TableFile
from ciplearn.workbench.document import Document
from ciplearn.workbench.tables import Table

Stop = dict[str, Any]

_MEASURES = ("loss", "score", "vcf", "relative", "effect", "moved")


def listed(comparison: Comparison) -> list[Stop]:
    """Return the candidates in their order, each on the path of its route and learner."""
    candidates = comparison.to_dict()["candidates"]
    paths: list[list[Mapping[str, Any]]] = []
    for one in candidates:
        if not paths or not _goes_on(paths[-1][-1], one):
            paths.append([])
        paths[-1].append(one)
    stops: list[Stop] = []
    for number, path in enumerate(paths):
        for one in path:
            stop = {
                "key": f"s{len(stops):02d}",
                "name": one["name"],
                "path": number,
                "along": _along([each["name"] for each in path]),
                "learner": one["learner"],
                "free": one["kind"] == FREE,
                "baseline": one["kind"] == BASELINE,
                "mixed": one["share"] is not None,
                **{key: one[key] for key in ("allowed", "shrinks", "rests_on")},
                **{name: one.get(name) for name in _MEASURES},
                **_without_model(),
            }
            stops.append(stop)
    return stops


def _goes_on(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a candidate is the next one on the path of the one before: of its kind and learner, and stronger."""
    alike = all(before[key] == now[key] for key in ("kind", "learner"))
    return alike and _strength(before) < _strength(now)  # NaN is not below NaN: these have no strength


def _strength(one: Mapping[str, Any]) -> float:
    if one["strict"]:
        return math.inf
    amounts = (one["strength"], one["gamma"], None if one["share"] is None else -one["share"])
    return next((float(amount) for amount in amounts if amount is not None), math.nan)


def _along(names: Sequence[str]) -> str:
    """The words that all names of a path begin with."""
    if len(names) == 1:
        return names[0]
    alike = takewhile(lambda words: len(set(words)) == 1, zip(*map(str.split, names), strict=False))
    return f"{' '.join(words[0] for words in alike).rstrip(',')} …"


def _without_model() -> Stop:
    # model: a folder inside that of the run, or any other; strength: of a repaired one, as text, for it may be inf;
    # weaker: the statement that training has kept to, where it is not the verdict's
    return {"model": None, "strength": None, "weaker": None}


def save_models(comparison: Comparison, stops: Sequence[Stop], folder: Path) -> None:
    """Keep the model of every stop that can be kept, and say at the stop where it is.

    A repaired model is kept once, and its knob turned to each of its stops. That of the chosen path is the fitted one.
    """
    chosen = next(stop for stop in stops if stop["name"] == comparison.chosen)
    knobs = {chosen["path"]: "model"} if hasattr(comparison.model, "strength") else {}
    for stop in stops:
        model = comparison.models[stop["name"]]
        has_knob = hasattr(model, "strength")
        statement = enforced_statement(model)
        if statement is not None and statement != statement_on_columns(model.verdict_, tuple(model.feature_names_in_)):
            stop["weaker"] = str(statement)
        if has_knob:
            stop["strength"] = repr(float(model.strength))
        if has_knob and stop["path"] in knobs:
            stop["model"] = knobs[stop["path"]]
            continue
        try:
            save_model(model, folder / "stops" / stop["key"])
        except CiplearnError:
            continue
        stop["model"] = f"stops/{stop['key']}"
        if has_knob:
            knobs[stop["path"]] = stop["model"]
    if chosen["strength"] is None:
        chosen["model"] = "model"


def load_stop(folder: Path, stop: Mapping[str, Any]) -> Any:
    """Return the model of a stop."""
    model = load_model(folder / stop["model"])
    return model if stop["strength"] is None else model.at(float(stop["strength"]))


def keep_model(fitted: Path, stop: Mapping[str, Any], model: Any, out: Path) -> None:
    """Write the folder of another stop than the chosen one: as ``ciplearn fit`` has, with this model in it."""
    training = json.loads((fitted / "training.json").read_text(encoding="utf-8"))
    training["remark"] = f"This stop was chosen by hand on the workbench: {stop['name']}."
    training["gamma"] = getattr(model, "gamma_", None)
    training["trials"] = [trial for trial in training["trials"] if trial["folder"] != "."]
    training["comparison"] |= {"chosen": stop["name"], "reason": training["remark"]}
    with listed_folder(out, overwrite=False) as fresh:
        save_model(model, fresh)
        for trial in training["trials"]:
            save_model(load_model(fitted / trial["folder"]), fresh / trial["folder"], counterfactuals=False)
        for name in ("fit.json", "graph.txt", "trained_rows", "held_out.csv"):
            (fresh / name).write_bytes((fitted / name).read_bytes())
        (fresh / "training.json").write_text(json.dumps(training, ensure_ascii=False, indent=2), encoding="utf-8")


def subject_of(folder: Path, table: Table, document: Document) -> Audited:
    """Return the model of a folder with the rows that judge it: those that training never saw, where it says which."""
    if (folder / "training.json").exists():
        fitted = ModelFolder.read(folder)
        return Audited.of_folder(fitted, fitted.as_in_training(TableFile(table.path)))
    rows, verdict = table.typed(document), document.verdict()
    task = task_of(rows[verdict.outcome])
    if task == CLASSIFICATION:
        rows = rows.assign(**{verdict.outcome: rows[verdict.outcome].astype("category")})
    return Audited(load_model(folder), None, verdict, task, rows, rows, f"All {len(rows)} complete rows.", {})


def of_folder(folder: Path, subject: Audited, measure: Any) -> tuple[list[Stop], str]:
    """Return the stops of a model folder, and which is its model: what was compared, or else its trials, measured.

    ``measure``: from a model to its `Audit`.
    """
    fitted = subject.folder
    if fitted is not None and fitted.comparison is not None:
        stops = listed(fitted.comparison)
        chosen = next(stop for stop in stops if stop["name"] == fitted.comparison.chosen)
        chosen["model"] = str(folder)
        if hasattr(fitted.model, "strength"):
            for stop, one in zip(stops, fitted.comparison.table.to_dict("records"), strict=True):
                if stop["path"] == chosen["path"]:
                    strength = math.inf if stop is not chosen and one["strict"] else one["strength"]
                    stop |= {"model": str(folder), "strength": repr(float(strength))}
            chosen["strength"] = repr(float(fitted.model.strength))
        free = next(stop for stop in stops if stop["name"] == fitted.comparison.free)
        kept = next((trial for trial in fitted.training["trials"] if trial["gamma"] == 0), None)
        if kept is not None and free is not chosen:
            free["model"] = str(folder / kept["folder"])
        return stops, chosen["key"]
    tried = (
        [] if fitted is None else [(trial["gamma"], folder / trial["folder"]) for trial in fitted.training["trials"]]
    )
    places = {path.resolve(): gamma for gamma, path in tried}
    places.setdefault(folder.resolve(), getattr(subject.model, "gamma_", 0.0))
    stops = []
    for path, gamma in sorted(places.items(), key=lambda place: place[1]):
        model = load_model(path)
        found = measure(replace(subject, model=model, folder=None))
        is_free = not gamma and getattr(model, "route_", None) in (INDEPENDENCE, NO_ROUTE)
        about = {"key": f"s{len(stops):02d}", "name": FREE if is_free else f"gamma {gamma:g}", "free": is_free}
        path_of_all = {"path": 0, "along": "gamma …", "learner": "network", "allowed": None, "rests_on": ""}
        others = dict.fromkeys(("baseline", "mixed", "shrinks"), False)
        stops.append({**about, **path_of_all, **others, **_measured(found), **_without_model(), "model": str(path)})
    return stops, next(stop["key"] for stop in stops if stop["model"] == str(folder.resolve()))


def _measured(found: Audit) -> Stop:
    loss, score = ("mse", "r2") if "mse" in found.scores else ("log_loss", "accuracy")
    values = (found.scores[loss], found.scores[score], found.vcf.value, found.vcf.relative, None, None)
    return dict(zip(_MEASURES, values, strict=True))
