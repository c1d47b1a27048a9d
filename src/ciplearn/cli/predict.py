"""``ciplearn predict``: a saved model on new rows, however many."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ciplearn.cli import options
from ciplearn.cli.output import complain, say, say_json


def predict(
    model: Annotated[Path, typer.Argument(help="A folder that ciplearn fit has written.", metavar="MODEL_DIR")],
    table: Annotated[Path, typer.Argument(help="A CSV, TSV or Parquet file.", metavar="TABLE")],
    out: Annotated[
        Path | None,
        typer.Option(help="A .csv, .tsv or .parquet file. Default: CSV to standard output.", metavar="FILE"),
    ] = None,
    identity: Annotated[
        str | None, typer.Option("--id", help="A column to copy beside the predictions.", metavar="NAME")
    ] = None,
    chunk_rows: Annotated[int, typer.Option(help="Rows held in memory at a time.", min=1)] = 50_000,
    separator: options.Separator = None,
    columns: options.ColumnNames = None,
    skip: options.Skip = 0,
    na: options.MissingCells = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Predict row by row, in the order of the file, in constant memory.

    A row that misses an input gets an empty prediction, unless the model was trained with --missing impute. Classifiers
    add one column a class with its probability.

    Example:

      ciplearn predict model new.csv --out predictions.csv --id person

      ciplearn predict model new.csv | head
    """
    from ciplearn._core.errors import InputError
    from ciplearn.cli.model_folder import ModelFolder
    from ciplearn.cli.prediction import predict_table

    if as_json and out is None:
        raise InputError("--json writes a summary to standard output, where the predictions would go; pass --out too.")
    if out is not None:
        options.keep_inputs(out, table, model, config)
    folder = ModelFolder.read(model)
    source = folder.opened(options.table_file(table, separator, columns, skip, na))
    done = predict_table(folder, source, out, identity, chunk_rows)
    if done.empty:
        complain(f"ciplearn: note: {done.empty} of {done.rows} rows miss an input and have no prediction.")
    if as_json:
        say_json({"rows": done.rows, "without_prediction": done.empty, "file": str(out)})
    elif out is not None and sys.stdout.isatty():
        say(f"Written: {out}, {done.rows} rows.")
