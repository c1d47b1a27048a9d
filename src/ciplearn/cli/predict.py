"""``ciplearn predict``: a saved model on new rows, however many: read, predict, write, in the order of the rows."""

from __future__ import annotations

import gzip
import sys
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pandas as pd
import torch

from ciplearn._core.columns import in_kinds
from ciplearn._core.errors import InputError, OddRowsWarning, optional_module
from ciplearn._core.files import whole_file
from ciplearn._core.wording import shortened
from ciplearn._core.workers import Engine
from ciplearn.cli.commands import Predict
from ciplearn.cli.model_folder import AnyTable, ModelFolder
from ciplearn.cli.output import is_terminal, keep_inputs, note, progress, say, say_json
from ciplearn.estimators.tables import OddRows
from ciplearn.evaluation.any_model import from_module
from ciplearn.sources import TableFiles
from ciplearn.sources.table_file import COPIED, TableFile
from ciplearn.sources.table_files import FilePart

# Names of the columns of predictions, which an audit reads back; the second one ends with a label and a bracket.
ANSWER, PROBABILITY = "prediction", "probability["

Answered = tuple[pd.DataFrame, OddRows]  # a chunk of predictions, and what is odd in its rows

_PARQUET, _TABS, _COMMAS = (".parquet", ".pq"), (".tsv", ".tab"), (".csv", ".txt")
Examples = Mapping[str, Sequence[Any]]  # values that a column may hold, by its name


def predict(asked: Predict) -> None:
    """Read, predict and write, chunk by chunk."""
    torch.set_num_threads(1)
    out, table, identity = asked.out, asked.table, asked.identity
    if asked.as_json and out is None:
        raise InputError("--json writes a summary to standard output, where the predictions would go; pass --out too.")
    if out is not None:
        keep_inputs(out, table, asked.model, asked.config)
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
    rows, empty, odd = 0, 0, OddRows()
    answering = _RowAnswers(model, identity, asked.chunk_rows)
    with closing(answering.of_table(source, asked.made())) as chunks:
        # Before anything is opened to be written: a table that cannot be read leaves no trace.
        first = next(chunks, None)
        if first is None:
            raise InputError(f"{table} has no rows; pass a table with at least one.")
        with written_table(out, examples) as written, progress("predicting", "row", shown=out is not None) as bar:
            for answers, some in chain([first], chunks):
                odd.update(some)
                empty += int(answers[ANSWER].isna().sum())
                written.write(answers)
                rows += len(answers)
                bar.update(len(answers))
    if empty:
        note(f"{empty} of {rows} rows miss an input and have no prediction.")
    for sentence in odd.sentences(folder.model):
        note(sentence)
    if asked.as_json:
        say_json({"rows": rows, "without_prediction": empty, **odd.data(), "file": str(out)})
    elif out is not None and is_terminal():
        say(f"Written: {out}, {rows} rows.")


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
        kinds = {name: folder.kinds[name] for name in folder.inputs}
        with file.opened(labels=folder.labels, copied=identity) as table:
            table.require(folder.inputs)
            if identity is not None and identity not in table.names:
                raise InputError(f"Column {identity!r} of --id is not in {file.path}; it has {shortened(table.names)}.")
            for chunk in table.chunks(self.chunk_rows, folder.inputs):
                inputs = in_kinds(chunk, kinds, str(file.path), first_row=rows + 1)
                # The worlds of a row that misses a value are unknown, so that only trained models impute.
                complete = inputs if getattr(folder.model, "missing", "error") == "impute" else inputs.dropna()
                # Counted over all chunks, and said once.
                with warnings.catch_warnings(action="ignore", category=OddRowsWarning):
                    answers = _answers(folder.model, complete)
                if len(complete) < len(inputs):
                    # As objects: a missing answer must not turn the labels 0 and 1 into 0.0 and 1.0.
                    answers = answers.astype({ANSWER: object}).reindex(inputs.index)
                if identity is not None:
                    answers.insert(0, identity, chunk[COPIED].array)
                rows += len(chunk)
                yield answers, OddRows.of(folder.model, complete)


@cache
def opened(model: Path, predictor: str | None, strength: float | None) -> ModelFolder:
    """Read a folder, with the model that it repairs and the strength that were named."""
    folder = ModelFolder.read(model, foreign=None if predictor is None else from_module(predictor))
    return folder if strength is None else folder.at(strength)


def _answers(model: Any, complete: pd.DataFrame) -> pd.DataFrame:
    """What a model says about complete rows, be there none."""
    if not hasattr(model, "predict_proba"):
        return pd.DataFrame({ANSWER: model.predict(complete) if len(complete) else np.zeros(0)}, index=complete.index)
    table = model.predict_proba(complete) if len(complete) else np.zeros((0, len(model.classes_)))
    columns: dict[str, Any] = {ANSWER: model.classes_[table.argmax(axis=1)]}
    columns |= {f"{PROBABILITY}{label}]": table[:, place] for place, label in enumerate(model.classes_)}
    return pd.DataFrame(columns, index=complete.index)


class TableWriter(Protocol):
    """Takes the rows of a table, piece by piece."""

    def write(self, rows: pd.DataFrame) -> None:
        """Append rows."""


def check_ending(out: Path) -> None:
    """Refuse a name whose ending says a notation that is not written, before any work is done."""
    # A device or a pipe has no ending of its own; a folder is refused later.
    name, is_device = out.name.lower(), out.exists() and not out.is_file()
    if name.endswith(_PARQUET):
        _arrow()
    elif not name.removesuffix(".gz").endswith(_TABS + _COMMAS) and "." in name and not is_device:
        raise InputError(f"{out} must end in .csv, .csv.gz, .tsv or .parquet; name it so.")


@contextmanager
def written_table(out: Path | None, examples: Examples | None = None) -> Iterator[TableWriter]:
    """Open a table to write; after an error nothing has changed.

    ``out``: Parquet, tabs or commas by its ending; without an ending, on a device and on standard output, commas.
    ``examples``: of columns whose first rows may hold no value, so that these do not tell what the column holds.
    """
    if out is None:
        yield _Text(sys.stdout.buffer, ",")
        return
    check_ending(out)
    name = out.name.lower()
    with whole_file(out) as stream:
        separator = "\t" if name.removesuffix(".gz").endswith(_TABS) else ","
        if name.endswith(_PARQUET):
            parquet = _Parquet(stream, examples or {})
            yield parquet
            parquet.close()
        elif name.endswith(".gz"):
            # Without name and time, so that the same rows are the same bytes.
            with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
                yield _Text(packed, separator)
        else:
            yield _Text(stream, separator)


class _Text:
    def __init__(self, stream: Any, separator: str) -> None:
        self.stream, self.separator, self.header = stream, separator, True

    def write(self, rows: pd.DataFrame) -> None:
        rows.to_csv(self.stream, sep=self.separator, index=False, header=self.header, lineterminator="\n")
        self.header = False


class _Parquet:
    def __init__(self, stream: IO[bytes], examples: Examples) -> None:
        self.stream, self.arrow = stream, _arrow()
        self.kinds = {name: self.arrow.array(list(values)).type for name, values in examples.items()}
        self.writer: Any = None

    def write(self, rows: pd.DataFrame) -> None:
        if self.writer is None:
            schema = self.arrow.Schema.from_pandas(rows, preserve_index=False).remove_metadata()
            for name, kind in self.kinds.items():
                schema = schema.set(schema.get_field_index(name), self.arrow.field(name, kind))
            self.writer = self.arrow.parquet.ParquetWriter(self.stream, schema, write_page_checksum=True)
        self.writer.write_table(self.arrow.Table.from_pandas(rows, schema=self.writer.schema, preserve_index=False))

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def _arrow() -> Any:
    arrow = optional_module("pyarrow", "Parquet files need pyarrow", "pip install 'ciplearn[parquet]', or write CSV")
    import_module("pyarrow.parquet")
    return arrow
