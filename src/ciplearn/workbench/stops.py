"""Stops of a walk: the candidates of a comparison as the page shows them, their models, and what these say of a row."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import CLASSIFICATION, holds_numbers, task_of
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.files import listed_folder
from ciplearn._core.plain_data import as_data
from ciplearn._core.rows import as_generator
from ciplearn.cli.audit import measures
from ciplearn.cli.audited import Audited
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.cli.options import Effort
from ciplearn.estimators.base import is_unconstrained
from ciplearn.estimators.problem import statement_on_columns
from ciplearn.evaluation import Audit, Beside, variance_of_counterfactuals
from ciplearn.evaluation.counterfactual_rows import as_known_beforehand, sample_with_every_label
from ciplearn.evaluation.predictors import enforced_statement
from ciplearn.repairing import load_model, save_model
from ciplearn.routes import Comparison
from ciplearn.routes.route import BASELINE, FREE
from ciplearn.scm import StructuralCausalModel, fit_scm
from ciplearn.sources.table_file import TableFile
from ciplearn.workbench.document import Document
from ciplearn.workbench.recipes import Recipe
from ciplearn.workbench.tables import Table

Stop = dict[str, Any]

_MEASURES = ("loss", "score", "vcf", "relative", "effect", "moved")
_SHOWN_ROWS = 40  # to choose from, the most affected first
_DRAWS, _CURVE = 30, 25  # draws of what a row leaves open; values along a curve


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
            about = {key: one[key] for key in ("name", "learner", "allowed", "shrinks", "rests_on")}
            about |= {"free": one["kind"] == FREE, "baseline": one["kind"] == BASELINE}
            about |= {"mixed": one["share"] is not None, **{name: one.get(name) for name in (*_MEASURES, "keeps")}}
            stops.append(_stop(len(stops), number, _along([each["name"] for each in path]), about))
    return stops


def _stop(number: int, path: int, along: str, about: Mapping[str, Any]) -> Stop:
    """Return a stop, which is as it is said to be, and by default nothing special and without a model."""
    return {
        "key": f"s{number:02d}",
        "path": path,
        "along": along,
        **dict.fromkeys(("free", "baseline", "mixed", "shrinks"), False),
        **{"allowed": None, "rests_on": ""},
        # model: a folder inside that of the run, or any other; strength: of a repaired one, as text, for it may be inf;
        # weaker: the statement that training has kept to, where it is not the verdict's
        **dict.fromkeys(("model", "strength", "weaker")),
        **about,
    }


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
    text = " ".join(words[0] for words in alike).rstrip(",")
    return text.removesuffix(" at") if text.endswith(" at") else f"{text} …"


def save_models(comparison: Comparison, stops: Sequence[Stop], folder: Path) -> None:
    """Keep the model of every stop that can be kept, and say at the stop where it is.

    A repaired model is kept once, and its knob turned to each of its stops. That of the chosen path is the fitted one.
    """
    chosen = next(stop for stop in stops if stop["name"] == comparison.chosen)
    knobs = {chosen["path"]: "model"} if hasattr(comparison.model, "strength") else {}
    for stop in stops:
        model = comparison.models[stop["name"]]
        statement = enforced_statement(model)
        if statement is not None and statement != statement_on_columns(model.verdict_, tuple(model.feature_names_in_)):
            stop["weaker"] = str(statement)
        if has_knob := hasattr(model, "strength"):
            stop["strength"] = repr(float(model.strength))
            if stop["path"] in knobs:
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
        rows[verdict.outcome] = rows[verdict.outcome].astype("category")
    return Audited(load_model(folder), None, verdict, task, rows, rows, f"All {len(rows)} complete rows.", {})


def of_folder(folder: Path, subject: Audited, measure: Callable[[], Audit]) -> tuple[list[Stop], str]:
    """Return the stops of a model folder, and which is its model: what was compared, or else its measured trials."""
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
    audit, own = measure(), getattr(subject.model, "gamma_", 0.0)
    # The model of the folder, and the other trials beside it.
    measured: list[Audit | Beside] = [audit, *audit.beside.values()]
    models = ({} if fitted is None else fitted.trials) | {own: subject.model}
    places = {} if fitted is None else {trial["gamma"]: trial["folder"] for trial in fitted.training["trials"]}
    stops = []
    for gamma, model in sorted(models.items()):
        one = next(each for each in measured if each.model is model)
        path = folder.resolve() if model is subject.model else (folder / places[gamma]).resolve()
        is_free = is_unconstrained(model)
        about = {"name": FREE if is_free else f"gamma {gamma:g}", "free": is_free, "learner": "network"}
        about |= {"model": str(path), **dict.fromkeys(_MEASURES), **measures(one.vcf.value, one.scores)}
        about["relative"] = one.vcf.relative
        stops.append(_stop(len(stops), 0, "gamma …", about))
    return stops, next(stop["key"] for stop in stops if stop["model"] == str(folder.resolve()))


@dataclass(frozen=True, eq=False)
class Imagination:
    """One row, other values of the protected nodes, and what two models would have said."""

    rows: pd.DataFrame  # without the outcome, unless it acts on another column
    outcomes: pd.Series
    scm: StructuralCausalModel
    # kept, free: the model of a stop and the one without a constraint; free is None where there is none
    kept: Any
    free: Any | None
    protected: tuple[str, ...]
    classes: list[Any] | None

    @classmethod
    def of(cls, run: Mapping[str, Any], folder: Path, stop: Mapping[str, Any]) -> Imagination:
        """Load what a run has left; the causal model of the rows that judge is that of the audit."""
        document, recipe = Document.read(run["document"]), Recipe.read(run["recipe"])
        table = Table(Path(run["table"]["read"]), run["table"]["name"])
        subject = subject_of(folder / (run["models"] or "model"), table, document)
        outcome = subject.verdict.outcome
        labels = [name for name in subject.rows.columns if not holds_numbers(subject.rows[name])]
        rows = subject.rows.astype(dict.fromkeys(labels, "category"))
        some = sample_with_every_label(rows, Effort.of(recipe.preset).scm_rows, as_generator(recipe.seed))
        scm = fit_scm(subject.verdict.graph, some, random_state=recipe.seed)
        model = load_stop(folder, stop)
        free = next((one for one in run["stops"] if one["key"] == run.get("free") and one["model"]), None)
        return cls(
            as_known_beforehand(scm, rows, outcome),
            rows[outcome],
            scm,
            model,
            None if free is None else load_stop(folder, free),
            subject.verdict.protected,
            list(model.classes_) if hasattr(model, "classes_") else None,
        )

    def choices(self) -> dict[str, Any]:
        """Return rows to pick from, the most affected first, and what the protected nodes can be."""
        judged = self.free if self.free is not None else self.kept
        inputs = [str(name) for name in self.rows.columns if name != self.outcomes.name]
        per_row = variance_of_counterfactuals(
            judged, self.scm, self.rows, list(self.protected), 300, 40, 0, inputs=inputs, n_draws=5
        ).per_row
        top = per_row.sort_values("vcf", ascending=False, kind="stable").head(_SHOWN_ROWS)
        return {
            "columns": [str(name) for name in self.rows.columns],
            "rows": [
                {"row": str(index), "vcf": float(top.loc[index, "vcf"]), "values": _values(self.rows.loc[[index]])}
                for index in top.index
            ],
            "protected": [self._range(name) for name in self.protected],
            "output": self.output,
        }

    @property
    def output(self) -> str:
        """What the numbers of an answer are."""
        return "prediction" if self.classes is None else f"probability of {self.classes[-1]}"

    def _range(self, name: str) -> dict[str, Any]:
        column = self.rows[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            return {"name": name, "kind": "category", "levels": [str(level) for level in column.cat.categories]}
        return {"name": name, "kind": "number", "low": float(column.min()), "high": float(column.max())}

    def imagine(self, row: Any, values: Any) -> dict[str, Any]:
        """Say what the row would have been with other protected values, and what both models would have said."""
        positions = [position for position, index in enumerate(self.rows.index) if str(index) == str(row)]
        if not positions:
            raise InputError(f"There is no row {str(row)[:40]!r} among those that judge; pick one of the list.")
        observed = self.rows.iloc[[positions[0]]]
        wanted = self._checked(values)
        imagined = self._had(observed, wanted)
        return {
            "observed": _values(observed),
            "imagined": {str(name): _average(imagined[name]) for name in imagined.columns},
            "moved": [str(name) for name in imagined.columns if _differs(imagined[name], observed[name].iloc[0])],
            "outcome": as_data(self.outcomes.iloc[positions[0]]),
            "protected": list(self.protected),
            "before": self._said(observed),
            "after": self._said(imagined),
            "curve": self._curve(observed, wanted),
            "output": self.output,
        }

    def _checked(self, values: Any) -> dict[str, Any]:
        if not isinstance(values, Mapping) or set(values) != set(self.protected):
            raise InputError(f"Values must be given for {', '.join(self.protected)}, got {values!r}; move the sliders.")
        checked: dict[str, Any] = {}
        for name, value in values.items():
            column = self.rows[name]
            if isinstance(column.dtype, pd.CategoricalDtype):
                level = next((level for level in column.cat.categories if str(level) == str(value)), None)
                if level is None:
                    raise InputError(f"{name} is never {str(value)[:40]!r} in the table; pick one of its values.")
                checked[name] = level
            elif isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
                raise InputError(f"{name} must be a number, got {str(value)[:40]!r}; move the slider.")
            else:
                checked[name] = float(value)
        return checked

    def _had(self, observed: pd.DataFrame, wanted: Mapping[str, Any]) -> pd.DataFrame:
        worlds = self.scm.counterfactual(observed, wanted, n_draws=_DRAWS, random_state=0)
        return worlds[[name for name in self.rows.columns if name in worlds.columns]]

    def _said(self, frame: pd.DataFrame) -> dict[str, float | None]:
        models = {"kept": self.kept, "free": self.free}
        return {name: None if one is None else _answer(one, frame) for name, one in models.items()}

    def _curve(self, observed: pd.DataFrame, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """What both models would have said along the first protected node, the others as they are set."""
        name = self.protected[0]
        described = self._range(name)
        if described["kind"] == "category":
            levels = list(self.rows[name].cat.categories)
        else:
            levels = np.linspace(described["low"], described["high"], _CURVE).tolist()
        answers = [self._said(self._had(observed, {**wanted, name: level})) for level in levels]
        points = [{"at": as_data(level), **both} for level, both in zip(levels, answers, strict=True)]
        return {"name": name, "kind": described["kind"], "points": points}


def _values(row: pd.DataFrame) -> dict[str, Any]:
    return {str(name): as_data(row[name].iloc[0]) for name in row.columns}


def _average(column: pd.Series) -> float | str:
    """The mean of numbers over the draws, or the shares of labels."""
    if holds_numbers(column):
        return float(column.mean())
    shares = column.astype(str).value_counts(normalize=True).head(3)
    return ", ".join(f"{label} {share:.0%}" if share < 1 else str(label) for label, share in shares.items())


def _differs(imagined: pd.Series, observed: Any) -> bool:
    """Tell whether some draw is not what was observed, beyond rounding."""
    if holds_numbers(imagined):
        return not np.allclose(imagined.to_numpy(dtype=float), float(observed))
    return bool((imagined.astype(str) != str(observed)).any())


def _answer(model: Any, rows: pd.DataFrame) -> float:
    """A predictor's mean answer: of labels the probability of the last one."""
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    answers = np.asarray(ask(rows), dtype=float)
    return float(answers.reshape(len(rows), -1)[:, -1].mean())
