"""A model folder: the saved model, the trials on the way to it, and how to repeat all that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError
from ciplearn._core.files import finish_folder, read_listed
from ciplearn.cli.problem import Problem, as_target, held_out_rows
from ciplearn.cli.schema import CATEGORY, Schema
from ciplearn.cli.tables import TableFile
from ciplearn.cli.training import Trained
from ciplearn.estimators import load_model, save_model
from ciplearn.estimators.base import CIPEstimator
from ciplearn.learning import Frontier
from ciplearn.learning.frontier import Point

_DESCRIPTION = "model.json"
_TRAINING, _TRIALS = "training.json", "trials"
_FORMAT = 1

_ENTRIES = {
    "task",
    "outcome",
    "schema",
    "table",
    "holdout",
    "seed",
    "gamma",
    "tolerance",
    "measure",
    "remark",
    "trials",
}
_TABLE_ENTRIES = {"name", "bytes", "sha256", "reading"}

# What is said about how to read a table.
_READING = ("separator", "columns", "skip", "missing")


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """What a folder holds.

    Attributes
    ----------
    path : Path
    model : CIPEstimator
    training : mapping
        Everything that ``training.json`` says.
    """

    path: Path
    model: CIPEstimator
    training: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> ModelFolder:
        """Read a folder that ``ciplearn fit`` has written; nothing in it is run."""
        finish_folder(path)
        if not (path / _DESCRIPTION).exists():
            raise InputError(f"{path} is no model folder; pass the folder that ciplearn fit has written with --out.")
        model = load_model(path)
        try:
            training = json.loads(read_listed(path, _TRAINING))
            known = training["format"] <= _FORMAT
            if known and not (training.keys() >= _ENTRIES and training["table"].keys() >= _TABLE_ENTRIES):
                raise KeyError(_TRAINING)
        except (InputError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{path / _TRAINING} is missing or damaged; write the folder anew with ciplearn fit."
            ) from error
        if not known:
            raise InputError(f"{path} was written by a newer ciplearn, format {training['format']}; update ciplearn.")
        return cls(path, model, training)

    @property
    def schema(self) -> Schema:
        """The kinds of all columns that training has read, outcome included."""
        return Schema(self.training["schema"])

    @property
    def outcome(self) -> str:
        """The column that is predicted."""
        return str(self.training["outcome"])

    @property
    def inputs(self) -> Schema:
        """The kinds of the columns that a prediction needs."""
        return self.schema.restricted(self.model.roles_.inputs)

    @property
    def categories(self) -> list[str]:
        """Columns that are read as text."""
        return [name for name, kind in self.schema.kinds.items() if kind == CATEGORY]

    @property
    def trace(self) -> Frontier:
        """The gammas that were tried, with what was measured."""
        return Frontier(tuple(Point(trial["gamma"], 0, trial["measures"]) for trial in self.training["trials"]))

    def trials(self) -> dict[float, CIPEstimator]:
        """Load the models of the trials."""
        return {trial["gamma"]: load_model(self.path / trial["folder"]) for trial in self.training["trials"]}

    def opened(self, source: TableFile) -> TableFile:
        """Return a table as it is described; the training table as it was in training, where nothing else is said."""
        if source != TableFile(source.path) or not self._is_training_table(source):
            return source
        return TableFile(source.path, **_reading(self.training["table"]["reading"]))

    def _is_training_table(self, source: TableFile) -> bool:
        known = self.training["table"]
        # The size first: a large file need not be read to see that it is another.
        return source.path.stat().st_size == known["bytes"] and source.digest() == known["sha256"]

    def rows(self, source: TableFile) -> tuple[pd.DataFrame, pd.DataFrame, str]:
        """Read a table to judge the model on.

        Returns
        -------
        judge : DataFrame
            Complete rows that the model has not been trained on, as far as can be told.
        every : DataFrame
            All complete rows.
        remark : str
            Which rows these are.
        """
        self.schema.require(source.names(), str(source.path))
        table = self.schema.typed(source.read(self.categories), str(source.path))
        every = table.dropna()
        if len(every) < 20:
            raise InputError(
                f"{source.path} has {len(every)} rows without a missing value; an audit needs at least 20."
            )
        every = every.assign(**{self.outcome: as_target(every[self.outcome], self.training["task"])})
        if not self._is_training_table(source):
            return (
                every,
                every,
                f"All {len(every)} complete rows of {source.path.name}, which is not the training table.",
            )
        held = held_out_rows(len(table), self.training["holdout"], self.training["seed"])
        judge = every[every.index.isin(held)]
        if len(judge) < 20:
            warning = "The training rows themselves: scores and test are too kind. Audit on other rows."
            return every, every, warning
        return judge, every, f"{len(judge)} complete rows of the training table that training never saw."


def _reading(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}


def write_folder(
    folder: Path, problem: Problem, trained: Trained, source: TableFile, settings: Mapping[str, Any]
) -> None:
    """Write everything into an empty folder."""
    save_model(trained.model, folder, trained.scores)
    trials = []
    for place, point in enumerate(trained.trace.points):
        name = f"{_TRIALS}/{place:02d}"
        save_model(trained.trials[point.gamma], folder / name, dict(point.measures))
        trials.append({"gamma": point.gamma, "measures": dict(point.measures), "folder": name})
    training = {
        "format": _FORMAT,
        "task": problem.task,
        "outcome": problem.outcome,
        "schema": dict(problem.schema.kinds),
        "table": {
            "name": source.path.name,
            "bytes": source.path.stat().st_size,
            "sha256": source.digest(),
            "rows": problem.n_rows,
            "reading": {name: getattr(source, name) for name in _READING},
        },
        "understood": problem.description(),
        "holdout": problem.wishes.holdout,
        "seed": problem.wishes.seed,
        "gamma": trained.model.gamma_,
        "tolerance": trained.tolerance,
        "measure": trained.measure,
        "remark": trained.remark,
        "trials": trials,
        "scores": trained.scores,
        "settings": dict(settings),
    }
    text = json.dumps(training, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / _TRAINING).write_text(text, encoding="utf-8")
