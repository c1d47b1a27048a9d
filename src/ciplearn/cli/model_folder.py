"""A model folder: the saved model, the trials on the way to it, the rows held out, and what to repeat it with."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import is_number
from ciplearn._core.columns import CATEGORY, NUMBER, as_target, in_kinds, text_as_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.files import check_finished, read_listed
from ciplearn._core.rows import RowsDrawn, RowsSought, TrainedRows
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.cli.output import note
from ciplearn.cli.training_table import TASKS, TrainingTable
from ciplearn.estimators.base import CIPEstimator
from ciplearn.evaluation.any_model import Foreign, Numbers, Probabilities
from ciplearn.repairing import Repaired, load_model, load_repaired, save_model
from ciplearn.repairing.kept import DESCRIPTION as REPAIRED
from ciplearn.sources import TableFiles
from ciplearn.sources.table_file import MISSING, READING, TableFile

if TYPE_CHECKING:
    from ciplearn.cli.training import Trained
    from ciplearn.routes import Comparison

_MODEL, _TRAINING, _HELD_OUT, _TRAINED = "model.json", "training.json", "held_out.csv", "trained_rows"

# The options of the training, and the graph, for commands that come after it.
OPTIONS, GRAPH = "fit.json", "graph.txt"
_FORMAT = 2

_ITSELF = "."  # where a trial is the model of the folder
_LARGEST = 16  # in MiB; a training has a few gammas and columns
_ROWS = 8192  # rows that are held in memory as text

# An audit looks at so many rows at most, and learns a causal model from so many: more change nothing that it says.
_MOST_ROWS, _MOST_TO_LEARN_FROM = 200_000, 50_000

AnyTable = TableFile | TableFiles  # one file, or many that are one table
LEAST_ROWS = 20


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """What a folder holds."""

    path: Path
    model: Any  # an estimator of ours, or a repaired model
    training: Mapping[str, Any]  # everything that ``training.json`` says
    held_out: np.ndarray[Any, Any]  # places in the training table that training never saw
    verdict: Verdict | None  # what the graph says about the roles

    @classmethod
    def read(cls, path: Path, model: Any = None, foreign: Foreign | None = None) -> ModelFolder:
        """Read a folder that ``ciplearn fit`` has written; nothing in it is run.

        Where a repaired model from elsewhere is not in the folder, it is passed, or what it repairs.
        """
        check_finished(path)
        if not any(os.path.exists(path / name) for name in (_MODEL, REPAIRED)):
            raise InputError(f"{path} is no model folder; pass the folder that ciplearn fit has written with --out.")
        if model is None:
            model = load_model(path) if foreign is None else load_repaired(path, _as_kept(path, foreign))
        try:
            training = json.loads(read_listed(path, _TRAINING, _LARGEST))
            version = training["format"]
            if version == _FORMAT:
                _check(training, model)
                verdict = getattr(model, "verdict_", None)
                if verdict is None and (said := training.get("roles", {}).get("verdict")) is not None:
                    verdict = Verdict.from_dict(said, CausalGraph.from_text(training["settings"]["graph"]))
                held_out = np.array(read_listed(path, _HELD_OUT).decode().split()[1:], dtype=np.int64)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError) as error:
            raise InputError(f"{path / _TRAINING} or {_HELD_OUT} is lost or damaged; fit the model anew.") from error
        if version != _FORMAT:
            advice = "update ciplearn" if isinstance(version, int) and version > _FORMAT else "fit the model anew"
            raise InputError(f"{path} has format {version!r:.40}, and this ciplearn reads {_FORMAT}; {advice}.")
        return cls(path, model, training, held_out, verdict)

    @cached_property
    def trained_rows(self) -> TrainedRows | None:
        """What the rows that trained are known by; folders before 0.3 do not say."""
        if not (self.path / _TRAINED).exists():
            return None
        try:
            return TrainedRows.from_bytes(read_listed(self.path, _TRAINED))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self.path / _TRAINED} is damaged; fit the model anew.") from error

    def at(self, strength: float) -> ModelFolder:
        """Return the folder with its repaired model at another strength."""
        if not isinstance(self.model, Repaired):
            raise InputError(
                f"{self.path} holds a model of the route {self.model.route_}, which has no strength; leave out "
                "--strength, or fit by repair."
            )
        return replace(self, model=self.model.at(strength))

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of all columns that training has read, outcome included."""
        return dict(self.training["columns"])

    @property
    def outcome(self) -> str:
        """The column that is predicted."""
        return str(self.training["outcome"])

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that a prediction needs."""
        return columns_of(self.model)

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that the model or one of its trials looks at: a route may leave columns out."""
        models = (self.model, *self.trials.values())
        return tuple(dict.fromkeys(name for model in models for name in columns_of(model)))

    @property
    def labels(self) -> list[str]:
        """Columns that are read as text."""
        return [name for name, kind in self.kinds.items() if kind == CATEGORY]

    @cached_property
    def comparison(self) -> Comparison | None:
        """The candidates that were compared, without their models; None where none were."""
        from ciplearn.routes import Comparison

        if "comparison" not in self.training:
            return None
        try:
            return Comparison.from_dict(self.training["comparison"])
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise InputError(f"{self.path / _TRAINING} is damaged; fit the model anew.") from error

    @cached_property
    def trials(self) -> dict[float, CIPEstimator]:
        """The models of the trials."""
        return {
            trial["gamma"]: self.model if trial["folder"] == _ITSELF else load_model(self.path / trial["folder"])
            for trial in self.training["trials"]
        }

    def as_in_training(self, source: AnyTable) -> AnyTable:
        """Return a table as it is described; where nothing is said, the training table is read as in training.

        Which cells of another table are missing is that of training too: its other marks are its own.
        """
        usual, trained = TableFile.usual_reading(), self.training["table"]["reading"]
        trained = {name: tuple(value) if isinstance(value, list) else value for name, value in trained.items()}
        if source.reading == usual and self._is_training_table(source):
            return source.read_as(trained)
        if any(source.reading[name] != usual[name] for name in MISSING):
            return source
        return source.read_as(source.reading | {name: trained[name] for name in MISSING})

    def rows(
        self, source: AnyTable, more: Sequence[str] = ()
    ) -> tuple[pd.DataFrame, pd.DataFrame, str, dict[str, int]]:
        """Read a table to judge the model on; ``more``: columns that training did not read, and a graph of today does.

        Returns complete rows that did not train, as far as can be told; all complete rows, of a large table some drawn
        at random; which rows these are, in words; and how many that would judge miss a value, by column.
        """
        where, seen_in_training = str(source.path), self._is_training_table(source)
        # Rows of another table judge and teach alike.
        judge, every = RowsDrawn(_MOST_ROWS), RowsDrawn(_MOST_TO_LEARN_FROM if seen_in_training else _MOST_ROWS)
        gaps, gaps_to_judge = Counter[str](), Counter[str]()
        sought = RowsSought(self.trained_rows)
        for chunk in source.numbered([*self.kinds, *more], self.labels, _ROWS):
            rows = in_kinds(chunk, self.kinds, where, int(chunk.index[0]) + 1).join(chunk[list(more)])
            every.update(complete := rows.dropna())
            gaps.update(gaps_of(rows))
            if not seen_in_training:
                sought.update(complete)
            else:
                held = rows[rows.index.isin(self.held_out)]
                judge.update(held.dropna())
                gaps_to_judge.update(gaps_of(held))
        require_rows(every.n, source)
        drawn = self._as_targets(every.finalise(), more)
        if not seen_in_training:
            fresh, remark = sought.fresh()
            judging = drawn[drawn.index.isin(fresh)]
            if len(judging) >= LEAST_ROWS:
                if sought.n_trained:
                    note(f"{sought.n_trained} of {every.n} rows of {where} trained the model, and do not judge it.")
                some = f"All {every.n}" if len(judging) == every.n else f"{len(judging)} of {every.n}"
                some += ", drawn at random," if every.n > len(drawn) else ""
                return judging, drawn, f"{some} complete rows of {source.path.name}{remark}.", dict(gaps)
        if not seen_in_training or judge.n < LEAST_ROWS:
            about = "The training rows themselves: scores and test are too kind. Audit on other rows."
            return drawn, drawn, about, dict(gaps)
        about = f"{judge.n} complete rows of the training table that training never saw."
        return self._as_targets(judge.finalise(), more), drawn, about, dict(gaps_to_judge)

    def _as_targets(self, rows: pd.DataFrame, more: Sequence[str]) -> pd.DataFrame:
        """Rows with the outcome as it was learnt, and further columns as numbers where they read as such."""
        for name in more:
            numbers = text_as_numbers(rows[name])
            rows = rows if numbers is None else rows.assign(**{name: numbers})
        classes = getattr(self.model, "classes_", None)
        return rows.assign(**{self.outcome: as_target(rows[self.outcome], self.training["task"], classes)})

    def _is_training_table(self, source: AnyTable) -> bool:
        if source.is_pipe:
            return False
        table = self.training["table"]
        # The size first: a large file need not be read to see that it is another.
        return source.size() == table["bytes"] and source.digest() == table["sha256"]


def write_folder(folder: Path, rows: TrainingTable, trained: Trained, settings: Mapping[str, Any]) -> None:
    """Write everything that a training has left into an empty folder; ``settings``: the options that repeat it."""
    save_model(trained.model, folder, dict(trained.scores))
    trials = []
    for number, point in enumerate(trained.trace):
        # The model itself is one of them, unless it was trained once more.
        model = trained.models[point.gamma]
        name = _ITSELF if model is trained.model else f"trials/{number:02d}"
        if name != _ITSELF:
            # What imagined their rows is kept once, with the model.
            save_model(model, folder / name, dict(point.measures), counterfactuals=False)
        trials.append({"gamma": point.gamma, "measures": dict(point.measures), "folder": name})
    result = {name: value for name, value in trained.to_dict().items() if name != "comparison" or value is not None}
    training = {
        "format": _FORMAT,
        "task": rows.task,
        "outcome": rows.outcome,
        "columns": rows.kinds,
        "table": {**rows.identity, "rows": rows.n_rows},
        "understood": rows.description(),
        "roles": rows.roles.to_dict(),
        "settings": settings,
        **result,
        "trials": trials,
    }
    for file, content in ((_TRAINING, training), (OPTIONS, settings)):
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        # A name in the settings may hold bytes that are no text.
        (folder / file).write_bytes(text.encode("utf-8", "replace"))
    (folder / GRAPH).write_text(settings["graph"], encoding="utf-8")
    (folder / _TRAINED).write_bytes(rows.trained_rows().as_bytes())
    (folder / _HELD_OUT).write_text("row\n" + "".join(f"{row}\n" for row in rows.held_out), encoding="utf-8")


def lacks_its_model(path: Path) -> bool:
    """Whether a folder holds a repaired model without the one that was repaired, which has to be named."""
    return os.path.exists(path / REPAIRED) and _repaired(path)["model"] is None


def _repaired(path: Path) -> dict[str, Any]:
    try:
        description = json.loads(read_listed(path, REPAIRED))
        if description["classes"] is not None and not list(description["classes"]):
            raise ValueError(REPAIRED)
        return {name: description[name] for name in ("model", "classes")}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} holds no repaired model, which --predictor would be for; leave it out.") from error


def _as_kept(path: Path, foreign: Foreign) -> Numbers | Probabilities:
    """A model from elsewhere as it was asked when it was repaired."""
    classes = _repaired(path)["classes"]
    return Numbers(foreign) if classes is None else Probabilities(foreign, classes)


def require_rows(n: int, source: AnyTable) -> None:
    """Refuse a table of too few complete rows to audit on."""
    if n < LEAST_ROWS:
        raise InputError(
            f"{source.path} has {n} rows without a missing value, and an audit needs {LEAST_ROWS}; pass more rows."
        )


def columns_of(model: Any) -> tuple[str, ...]:
    """The columns that a model reads: a repaired one also needs what the protected ones act on."""
    return tuple(model.inputs_ if isinstance(model, Repaired) else model.roles_.inputs)


def gaps_of(table: pd.DataFrame) -> dict[str, int]:
    """How many rows miss a value, by column."""
    return {str(name): int(count) for name, count in table.isna().sum().items() if count}


def _check(training: Mapping[str, Any], model: Any) -> None:
    """Raise a ValueError where an entry is not what `write_folder` writes."""
    table, trials, columns = training["table"], training["trials"], training["columns"]
    reading = table["reading"]
    texts = [training["measure"], training["remark"], table["name"], table["sha256"], *reading["missing"]]
    texts += [*(reading["columns"] or ()), *([] if reading["separator"] is None else [reading["separator"]])]
    numbers = [each for each in (training["gamma"], training["tolerance"]) if each is not None]
    numbers += [number for trial in trials for number in (trial["gamma"], *trial["measures"].values())]
    right = [
        all(isinstance(text, str) for text in texts),
        all(map(is_number, numbers)),
        training["task"] in TASKS,
        training["outcome"] in columns,
        set(columns_of(model)) <= set(columns),
        set(columns.values()) <= {NUMBER, CATEGORY},
        isinstance(training["settings"], dict),
        isinstance(table["bytes"], int),
        set(reading) == set(READING),
        isinstance(reading["skip"], int),
        isinstance(reading["missing"], list),
        isinstance(reading["only_missing"], bool),
        # Inside this folder and nowhere else.
        all(trial["folder"] == _ITSELF or re.fullmatch(r"trials/\d+", trial["folder"]) for trial in trials),
        all({"loss", "score"} <= set(trial["measures"]) for trial in trials),
        len({tuple(sorted(trial["measures"])) for trial in trials}) <= 1,
    ]
    if not all(right):
        raise ValueError(_TRAINING)
