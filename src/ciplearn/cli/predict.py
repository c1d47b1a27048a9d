"""``ciplearn predict``: a saved model on new rows, however many: read, predict, write, in the order of the rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ciplearn._core.engine import Engine
from ciplearn._core.errors import FarOutsideWarning, InputError, UnseenLevelsWarning
from ciplearn.cli import options
from ciplearn.cli.commands import Predict
from ciplearn.cli.model_folder import AnyTable, ModelFolder
from ciplearn.cli.output import is_terminal, note, progress, say, say_json
from ciplearn.cli.table_writer import check_ending, written_table
from ciplearn.estimators.tables import far_outside
from ciplearn.evaluation.any_model import from_module
from ciplearn.sources import TableFiles
from ciplearn.sources.table_file import COPIED, TableFile, shortened
from ciplearn.sources.table_files import FilePart

# Names of the columns of predictions, which an audit reads back; the second one ends with a label and a bracket.
ANSWER, PROBABILITY = "prediction", "probability["

# Labels that training never saw are named up to this number.
_NAMED = 5


def predict(asked: Predict) -> None:
    """Read, predict and write, chunk by chunk."""
    torch.set_num_threads(1)
    out, table, identity = asked.out, asked.table, asked.identity
    if asked.as_json and out is None:
        raise InputError("--json writes a summary to standard output, where the predictions would go; pass --out too.")
    if out is not None:
        options.keep_inputs(out, table, asked.model, asked.config)
        check_ending(out)
    opened.cache_clear()
    model = asked.model, asked.predictor, asked.strength
    folder = opened(*model)
    source = folder.as_in_training(asked.source(table))
    answered = [ANSWER, *(f"{PROBABILITY}{label}]" for label in getattr(folder.model, "classes_", ()))]
    # From the model: a first chunk without a single prediction would not tell.
    examples = {name: [0.0] for name in answered}
    if hasattr(folder.model, "classes_"):
        examples[ANSWER] = folder.model.classes_.tolist()
    if identity in answered:
        raise InputError(f"--id names {identity!r}, as a column of predictions is named; rename the column.")
    rows = empty = 0
    unseen: Counter[tuple[str, str]] = Counter()
    far: dict[str, tuple[int, float]] = {}
    answering = _RowAnswers(model, identity, asked.chunk_rows)
    with closing(answering.of_table(source, asked.made())) as chunks:
        # Before anything is opened to be written: a table that cannot be read leaves no trace.
        first = next(chunks, None)
        if first is None:
            raise InputError(f"{table} has no rows; pass a table with at least one.")
        with written_table(out, examples) as written, progress("predicting", "row", shown=out is not None) as bar:
            for answers, new, outside in chain([first], chunks):
                unseen.update(new)
                for name, (count, value) in outside.items():
                    before, example = far.get(name, (0, value))
                    far[name] = before + count, example
                empty += int(answers[ANSWER].isna().sum())
                written.write(answers)
                rows += len(answers)
                bar.update(len(answers))
    if empty:
        note(f"{empty} of {rows} rows miss an input and have no prediction.")
    if unseen:
        named = ", ".join(f"{label!r} in {column} ({rows})" for (column, label), rows in unseen.most_common(_NAMED))
        more = f" and {len(unseen) - _NAMED} more" if len(unseen) > _NAMED else ""
        note(f"training never saw these labels, which the model takes for none that it knows: {named}{more}.")
    for name, some in far.items():
        note(f"{far_outside(folder.model.encoding_, name, *some)}.")
    if asked.as_json:
        labels = [{"column": column, "label": label, "rows": count} for (column, label), count in unseen.items()]
        units = [{"column": name, "rows": count, "example": value} for name, (count, value) in far.items()]
        said = {"rows": rows, "without_prediction": empty, "unseen_labels": labels, "far_numbers": units}
        say_json({**said, "file": str(out)})
    elif out is not None and is_terminal():
        say(f"Written: {out}, {rows} rows.")


# A chunk of predictions, the labels in its rows that training never saw, and numbers far outside.
Answered = tuple[pd.DataFrame, dict[tuple[str, str], int], dict[str, tuple[int, float]]]


@dataclass(frozen=True)
class _RowAnswers:
    """Predictions for a table or a part of one, wherever it is sent."""

    model: tuple[Path, str | None, float | None]  # as `opened` takes it
    identity: str | None
    chunk_rows: int

    def of_table(self, source: AnyTable, engine: Engine) -> Generator[Answered, None, None]:
        """Predict file by file here; with several workers part by part, each by whoever is free, in the same order."""
        files = source.files if isinstance(source, TableFiles) else (source,)
        if engine.workers == 1:
            for file in files:
                yield from self.of_file(file)
            return
        for answers in engine.each(self, TableFiles(str(source.path), files).parts()):
            yield from answers

    def __call__(self, part: FilePart) -> list[Answered]:
        return list(self.of_file(part.file))

    def of_file(self, file: TableFile) -> Iterator[Answered]:
        """Predict the rows of a file, chunk by chunk."""
        folder, identity, rows = opened(*self.model), self.identity, 0
        encoding = folder.model.encoding_
        with file.opened(labels=folder.labels, copied=identity) as table:
            table.require(folder.inputs)
            if identity is not None and identity not in table.names:
                raise InputError(
                    f"The column {identity!r} of --id is not in {file.path}; it has {shortened(table.names)}."
                )
            for chunk in table.chunks(self.chunk_rows, folder.inputs):
                inputs = folder.in_kinds(chunk, folder.inputs, str(file.path), first_row=rows + 1)
                # The worlds of a row that misses a value are unknown, so that only trained models impute.
                known = inputs if getattr(folder.model, "missing", "error") == "impute" else inputs.dropna()
                unseen = encoding.unseen(known)
                with warnings.catch_warnings():
                    # Counted over all chunks, and said once.
                    warnings.simplefilter("ignore", UnseenLevelsWarning)
                    warnings.simplefilter("ignore", FarOutsideWarning)
                    answers = _answers(folder.model, known)
                if len(known) < len(inputs):
                    # As objects: a missing answer must not turn the labels 0 and 1 into 0.0 and 1.0.
                    answers = answers.astype({ANSWER: object}).reindex(inputs.index)
                if identity is not None:
                    answers.insert(0, identity, chunk[COPIED].array)
                rows += len(chunk)
                counts = {(name, label): count for name, labels in unseen.items() for label, count in labels.items()}
                yield answers, counts, encoding.far(known)


@cache
def opened(model: Path, predictor: str | None, strength: float | None) -> ModelFolder:
    """Read a folder, with the model that it repairs and the strength that were named."""
    folder = ModelFolder.read(model, foreign=None if predictor is None else from_module(predictor))
    return folder if strength is None else folder.at(strength)


def _answers(model: Any, known: pd.DataFrame) -> pd.DataFrame:
    """What a model says about complete rows, be there none."""
    if not hasattr(model, "predict_proba"):
        return pd.DataFrame({ANSWER: model.predict(known) if len(known) else np.zeros(0)}, index=known.index)
    table = model.predict_proba(known) if len(known) else np.zeros((0, len(model.classes_)))
    columns: dict[str, Any] = {ANSWER: model.classes_[table.argmax(axis=1)]}
    columns |= {f"{PROBABILITY}{label}]": table[:, place] for place, label in enumerate(model.classes_)}
    return pd.DataFrame(columns, index=known.index)
