"""Predictions in chunks: read, predict, write, in the order of the rows."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from ciplearn._core.errors import InputError, MissingDependencyError
from ciplearn._core.files import whole_file
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.cli.tables import TableFile
from ciplearn.estimators.base import CIPEstimator


@dataclass(frozen=True)
class Predicted:
    """How many rows were written, and how many of them without a prediction."""

    rows: int
    empty: int


def predict_table(
    folder: ModelFolder, source: TableFile, out: Path | None, identity: str | None, chunk_rows: int
) -> Predicted:
    """Write one line of predictions for each row of a table.

    Parameters
    ----------
    folder : ModelFolder
    source : TableFile
    out : Path or None
        None writes CSV to standard output.
    identity : str or None
        A column to copy.
    chunk_rows : int
        Rows in memory at a time.
    """
    torch.set_num_threads(1)
    names = source.names()
    folder.inputs.require(names, str(source.path))
    if identity is not None and identity not in names:
        raise InputError(f"The column {identity!r} of --id is not in {source.path}; it has {', '.join(names[:12])}.")
    wanted = list(dict.fromkeys([*([identity] if identity else []), *folder.inputs.kinds]))
    text = [*folder.categories, *([identity] if identity else [])]
    rows = empty = 0
    with (
        _sink(out) as sink,
        tqdm(desc="predicting", unit="row", unit_scale=True, disable=None if out else True) as bar,
    ):
        for chunk in source.chunks(chunk_rows, wanted, text):
            inputs = folder.inputs.typed(chunk, str(source.path), first_row=rows + 1)
            answers = _answers(folder.model, inputs)
            empty += int(answers["prediction"].isna().sum())
            if identity is not None:
                answers.insert(0, identity, chunk[identity].to_numpy(), allow_duplicates=True)
            sink.write(answers)
            rows += len(chunk)
            bar.update(len(chunk))
        if not rows:
            raise InputError(f"{source.path} has no rows; pass a table with at least one.")
    return Predicted(rows, empty)


def _answers(model: CIPEstimator, inputs: pd.DataFrame) -> pd.DataFrame:
    complete = np.ones(len(inputs), dtype=bool) if model.missing == "impute" else inputs.notna().all(axis=1).to_numpy()
    known = inputs[complete]
    if hasattr(model, "predict_proba"):
        table = model.predict_proba(known) if len(known) else np.zeros((0, len(model.classes_)))
        columns: dict[str, Any] = {"prediction": model.classes_[table.argmax(axis=1)]}
        columns |= {f"probability[{label}]": table[:, place] for place, label in enumerate(model.classes_)}
    else:
        columns = {"prediction": model.predict(known) if len(known) else np.zeros(0)}
    answers = pd.DataFrame(columns, index=known.index)
    if not complete.all():
        # As objects: a missing answer must not turn the labels 0 and 1 into 0.0 and 1.0.
        answers = answers.astype({"prediction": object}).reindex(inputs.index)
    return answers


class _Sink(ABC):
    """Where chunks of predictions go."""

    @abstractmethod
    def write(self, answers: pd.DataFrame) -> None:
        """Append a chunk."""


class _Text(_Sink):
    def __init__(self, stream: IO[bytes], separator: str) -> None:
        self.stream, self.separator, self.header = stream, separator, True

    def write(self, answers: pd.DataFrame) -> None:
        answers.to_csv(self.stream, sep=self.separator, index=False, header=self.header)
        self.header = False


class _Parquet(_Sink):
    def __init__(self, stream: IO[bytes]) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise MissingDependencyError(
                "Parquet files need pyarrow, which is not installed; pip install 'ciplearn[parquet]', or write CSV."
            ) from error
        self.stream, self.arrow = stream, pyarrow
        self.writer: Any = None

    def write(self, answers: pd.DataFrame) -> None:
        schema = None if self.writer is None else self.writer.schema
        table = self.arrow.Table.from_pandas(answers, schema=schema, preserve_index=False)
        if self.writer is None:
            self.writer = self.arrow.parquet.ParquetWriter(self.stream, table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


@contextmanager
def _sink(out: Path | None) -> Iterator[_Sink]:
    if out is None:
        yield _Text(sys.stdout.buffer, ",")
        return
    kind = out.suffix.lower()
    with whole_file(out) as stream:
        if kind in (".parquet", ".pq"):
            parquet = _Parquet(stream)
            yield parquet
            parquet.close()
        else:
            yield _Text(stream, "\t" if kind in (".tsv", ".tab") else ",")
