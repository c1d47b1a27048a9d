"""``ciplearn imagine``: the rows that an audit asks about, in a file, for models that run elsewhere; their answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import InputError
from ciplearn.cli import options
from ciplearn.cli.audit import AuditCall, SubjectOptions
from ciplearn.cli.output import printable, say, say_json
from ciplearn.cli.parsing import with_groups
from ciplearn.cli.predict import ANSWER, PROBABILITY
from ciplearn.cli.table_writer import written_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pandas as pd

    from ciplearn.evaluation.any_model import Foreign

# The column by which a row is known again when predictions come back.
_ID = "id"

# More rows than people want in a file.
_MOST_ROWS = 5_000_000

# Digits by which a row is known again, on this machine or another.
_DIGITS = 9


@with_groups
def imagine(
    call: typer.Context,
    out: Annotated[Path, typer.Option(help="The file of rows to write: .csv, .tsv or .parquet.", metavar="FILE")],
    asked: SubjectOptions,
    answer: options.RunOptions,
) -> None:
    """Write the rows that an audit would ask a model about: as they are, and had the protected columns been different.

    Let any model predict them, keep the column id beside its predictions, and pass these to ciplearn audit
    --predictions with the same options. A number is predicted in a column prediction, which for two labels is the
    probability of the positive one; or one column probability[LABEL] per label.

    For example:
      ciplearn imagine people.csv --graph g.txt --outcome income --protected sex --out worlds.csv
      ciplearn audit people.csv --graph g.txt --outcome income --protected sex --predictions said.csv
    """
    from dataclasses import replace

    from ciplearn.evaluation.any_model import Foreign

    audited = AuditCall.of(asked, call.params)
    options.keep_inputs(out, *audited.files, answer.config)
    noted = _Noted()
    with audited.opened() as source, written_table(out) as written:
        subject = audited.subject(source, Foreign("The model", noted, inputs=audited.inputs))
        found = audited.report(subject, compare=False)
        # Whatever the report asks about, so that nothing is missing when it is written.
        replace(found, individuals=audited.fixed_individuals(subject)).to_dict()
        rows = noted.rows()
        written.write(rows)
    said = {"rows": len(rows), "columns": list(rows.columns), "file": printable(out)}
    if answer.as_json:
        say_json(said)
        return
    say(f"Written: {printable(out)}, {len(rows)} rows with {', '.join(rows.columns)}.")
    say(f"Next: predict them, keep {_ID}, and pass the file to ciplearn audit --predictions with the same options.")


class _Noted:
    """Stands in for a model: notes which rows it is asked about, and answers with numbers that mean nothing."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._tables: list[pd.DataFrame] = []

    def __call__(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        if _ID in frame.columns:
            raise InputError(f"A column is named {_ID!r}, as the file names its rows; rename it in table and graph.")
        codes = _codes(frame)
        names = [f"{code:016x}" for code in codes]
        fresh = frame.assign(**{_ID: names}).drop_duplicates(_ID)
        fresh = fresh[~fresh[_ID].isin(self._known)]
        self._known.update(fresh[_ID])
        if len(self._known) > _MOST_ROWS:
            raise InputError(
                f"The audit asks about more than {_MOST_ROWS} rows; pass fewer --points or --interventions."
            )
        self._tables.append(fresh[[_ID, *frame.columns]])
        return 0.05 + 0.9 * codes / 2.0**64

    def rows(self) -> pd.DataFrame:
        import pandas as pd

        return pd.concat(self._tables, ignore_index=True)


def from_predictions(path: Path, inputs: Sequence[str] | None) -> Foreign:
    """Read what a model has said about rows, to be looked up by what is in a row."""
    import pandas as pd

    from ciplearn._core.columns import text_as_numbers
    from ciplearn.evaluation.any_model import Foreign
    from ciplearn.sources.table_file import TableFile

    with TableFile(path).opened(labels=[_ID]) as opened:
        probabilities = [name for name in opened.names if name.startswith(PROBABILITY) and name.endswith("]")]
        wanted = probabilities or [ANSWER]
        absent = [name for name in (_ID, *wanted) if name not in opened.names]
        if absent:
            raise InputError(
                f"{path} lacks the column {absent[0]!r}; it needs {_ID} as ciplearn imagine has written it, and "
                f"{ANSWER} or {PROBABILITY}LABEL]."
            )
        table = opened.read([_ID, *wanted])
    numbers = {}
    for name in wanted:
        column = text_as_numbers(table[name])
        if column is None or column.isna().any():
            words = [repr(cell) for cell in table[name] if text_as_numbers(pd.Series([cell])) is None]
            raise InputError(
                f"Column {name!r} of {path} holds {(words or ['an empty cell'])[0]}; every row needs a number."
            )
        numbers[name] = column.to_numpy()
    known = pd.DataFrame(numbers, index=table[_ID].astype(str))
    known = known[~known.reset_index().duplicated().to_numpy()]
    if known.index.has_duplicates:
        twice = known.index[known.index.duplicated()][0]
        raise InputError(f"{path} has several predictions for the row {twice}; keep one.")
    classes = [name[len(PROBABILITY) : -1] for name in probabilities] or None

    def ask(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        found = known.reindex([f"{code:016x}" for code in _codes(frame)])
        missing = int(found.isna().any(axis=1).sum())
        if missing:
            raise InputError(
                f"{path} lacks {missing} of {len(frame)} rows that are asked about; pass the options that ciplearn "
                "imagine was called with, or imagine the rows anew."
            )
        return found.to_numpy()

    return Foreign(str(path), ask, classes, None if inputs is None else tuple(inputs))


def _codes(frame: pd.DataFrame) -> np.ndarray[Any, Any]:  # (n,)
    """A number per row by which it is known: the hash of its cells in the order of their names."""
    import numpy as np
    import pandas as pd

    from ciplearn._core.columns import holds_numbers

    cells = {}
    for name in sorted(frame.columns):
        column = frame[name]
        if holds_numbers(column):
            values = column.to_numpy(dtype=np.float64)
            size = np.where(values == 0, 1.0, np.abs(values))
            scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
            # Adding zero makes one of the two zeros.
            cells[name] = pd.Series(np.round(values * scale) / scale + 0.0)
        else:
            cells[name] = pd.Series(column.astype(str).to_numpy(dtype=object))
    return pd.util.hash_pandas_object(pd.DataFrame(cells), index=False).to_numpy()
