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
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import FarOutsideWarning, InputError, UnseenLevelsWarning
from ciplearn.cli import options
from ciplearn.cli.output import is_terminal, note, progress, say, say_json
from ciplearn.cli.table_writer import check_ending, written_table

if TYPE_CHECKING:
    import pandas as pd

    from ciplearn._core.columns import TableEncoding
    from ciplearn._core.engine import Engine
    from ciplearn.cli.model_folder import AnyTable, ModelFolder
    from ciplearn.sources.table_file import TableFile
    from ciplearn.sources.table_files import FilePart

# Names of the columns of predictions, which an audit reads back; the second one ends with a label and a bracket.
ANSWER, PROBABILITY = "prediction", "probability["

# Labels that training never saw are named up to this number.
_NAMED = 5


def predict(
    model: Annotated[Path, typer.Argument(help="A folder that ciplearn fit has written.", metavar="MODEL_DIR")],
    table: options.Table,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A .csv, .tsv or .parquet file, also .csv.gz. Default: CSV to standard output.", metavar="FILE"
        ),
    ] = None,
    identity: Annotated[
        str | None, typer.Option("--id", help="A column to copy beside the predictions.", metavar="NAME")
    ] = None,
    predictor: Annotated[
        str | None,
        typer.Option(
            help="The model that was repaired, where the folder does not hold it: module:name.", metavar="NAME"
        ),
    ] = None,
    strength: options.Strength = None,
    chunk_rows: Annotated[int, typer.Option(help="Rows held in memory at a time.", min=1)] = 50_000,
    separator: options.Separator = None,
    columns: options.ColumnNames = None,
    skip: options.Skip = 0,
    na: options.MissingCells = None,
    only_na: options.OnlyMissingCells = False,
    engine: options.EngineName = None,
    workers: options.WorkerCount = None,
    address: options.Address = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Predict row by row, in the order of the file, in constant memory.

    A row that misses an input gets an empty prediction, unless the model was trained with --missing impute. Classifiers
    add one column per class with its probability.

    Example:

      ciplearn predict model new.csv --out predictions.csv --id person

      ciplearn predict model new.csv | head
    """
    import torch

    from ciplearn.estimators.tables import far_outside

    torch.set_num_threads(1)
    if as_json and out is None:
        raise InputError("--json writes a summary to standard output, where the predictions would go; pass --out too.")
    if out is not None:
        options.keep_inputs(out, table, model, config)
        check_ending(out)
    folder = _opened(model, predictor, strength)
    source = folder.as_in_training(options.table_files(table, separator, columns, skip, na, only_na))
    work = options.engine(engine, workers, address, None)
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
    with closing(_answered(folder, source, (predictor, strength), identity, chunk_rows, work)) as chunks:
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
        note(_about_unseen(unseen))
    for name, some in far.items():
        note(f"{far_outside(folder.model.encoding_, name, *some)}.")
    if as_json:
        named = [{"column": column, "label": label, "rows": count} for (column, label), count in unseen.items()]
        units = [{"column": name, "rows": count, "example": value} for name, (count, value) in far.items()]
        said = {"rows": rows, "without_prediction": empty, "unseen_labels": named, "far_numbers": units}
        say_json({**said, "file": str(out)})
    elif out is not None and is_terminal():
        say(f"Written: {out}, {rows} rows.")


# A chunk of predictions, the labels in its rows that training never saw, and numbers far outside.
Answered = tuple["pd.DataFrame", dict[tuple[str, str], int], dict[str, tuple[int, float]]]


def _answered(
    folder: ModelFolder,
    source: AnyTable,
    knob: tuple[str | None, float | None],
    identity: str | None,
    chunk_rows: int,
    engine: Engine,
) -> Generator[Answered, None, None]:
    """Predict file by file here; with several workers part by part, each by whoever is free, in the same order."""
    from ciplearn.sources import TableFiles

    files = source.files if isinstance(source, TableFiles) else (source,)
    if engine.workers == 1:
        for file in files:
            yield from answer_file(folder, file, identity, chunk_rows)
        return
    parts = TableFiles(str(source.path), files).parts()
    for answers in engine.each(_AnswerPart(folder.path, *knob, identity, chunk_rows), parts):
        yield from answers


@dataclass(frozen=True)
class _AnswerPart:
    """Predictions for a part of a table, wherever it is sent."""

    model: Path
    predictor: str | None
    strength: float | None
    identity: str | None
    chunk_rows: int

    def __call__(self, part: FilePart) -> list[Answered]:
        folder = _opened_once(self.model, self.predictor, self.strength)
        return list(answer_file(folder, part.file, self.identity, self.chunk_rows))


def _opened(model: Path, predictor: str | None, strength: float | None) -> ModelFolder:
    """Read a folder, with the model that it repairs and the strength that were named."""
    from ciplearn.cli.model_folder import ModelFolder
    from ciplearn.evaluation.any_model import from_module

    folder = ModelFolder.read(model, foreign=None if predictor is None else from_module(predictor))
    return folder if strength is None else folder.at(strength)


_opened_once = cache(_opened)


def answer_file(folder: ModelFolder, file: TableFile, identity: str | None, chunk_rows: int) -> Iterator[Answered]:
    """Predict the rows of a file, chunk by chunk."""
    from ciplearn.sources.table_file import COPIED, shortened

    rows = 0
    with file.opened(labels=folder.labels, copied=identity) as opened:
        opened.require(folder.inputs)
        if identity is not None and identity not in opened.names:
            raise InputError(
                f"The column {identity!r} of --id is not in {file.path}; it has {shortened(opened.names)}."
            )
        for chunk in opened.chunks(chunk_rows, folder.inputs):
            inputs = folder.in_kinds(chunk, folder.inputs, str(file.path), first_row=rows + 1)
            known = inputs if _imputes(folder.model) else inputs.dropna()
            encoding = getattr(_trained(folder.model), "encoding_", None)
            unseen = {} if encoding is None else _unseen(encoding, known)
            far = {} if encoding is None else encoding.far(known)
            with warnings.catch_warnings():
                # Counted over all chunks, and said once.
                warnings.simplefilter("ignore", UnseenLevelsWarning)
                warnings.simplefilter("ignore", FarOutsideWarning)
                answers = _answers(folder.model, inputs)
            if identity is not None:
                answers.insert(0, identity, chunk[COPIED].array)
            rows += len(chunk)
            yield answers, unseen, far


def _answers(model: Any, inputs: pd.DataFrame) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    complete = np.ones(len(inputs), dtype=bool) if _imputes(model) else inputs.notna().all(axis=1).to_numpy()
    known = inputs[complete]
    if hasattr(model, "predict_proba"):
        table = model.predict_proba(known) if len(known) else np.zeros((0, len(model.classes_)))
        columns: dict[str, Any] = {ANSWER: model.classes_[table.argmax(axis=1)]}
        columns |= {f"{PROBABILITY}{label}]": table[:, place] for place, label in enumerate(model.classes_)}
    else:
        columns = {ANSWER: model.predict(known) if len(known) else np.zeros(0)}
    answers = pd.DataFrame(columns, index=known.index)
    if not complete.all():
        # As objects: a missing answer must not turn the labels 0 and 1 into 0.0 and 1.0.
        answers = answers.astype({ANSWER: object}).reindex(inputs.index)
    return answers


def _unseen(encoding: TableEncoding, known: pd.DataFrame) -> dict[tuple[str, str], int]:
    """Count the rows of each label that training never saw."""
    found = encoding.unseen(known)
    return {(column, label): rows for column, labels in found.items() for label, rows in labels.items()}


def _trained(model: Any) -> Any:
    """The model that was trained: of a repaired one, what it repairs."""
    return model.asked.model if hasattr(model, "asked") else model


def _imputes(model: Any) -> bool:
    """Whether rows that miss a value are predicted; the worlds of such a row are unknown."""
    return getattr(model, "missing", "error") == "impute"


def _about_unseen(unseen: Counter[tuple[str, str]]) -> str:
    named = ", ".join(f"{label!r} in {column} ({rows})" for (column, label), rows in unseen.most_common(_NAMED))
    more = f" and {len(unseen) - _NAMED} more" if len(unseen) > _NAMED else ""
    return f"training never saw these labels, which the model takes for none that it knows: {named}{more}."
