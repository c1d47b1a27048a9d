"""The raw format of the Adult files: no header, ", " between fields, "?" for what is not known.

The file of test rows starts with a comment, and its labels end in a full stop.
"""

from __future__ import annotations

import pandas as pd

from ciplearn._core.errors import InputError

NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)

INCOMES = ("<=50K", ">50K")

_UNKNOWN = "?"
_COMMENT = "|"


def read_raw(text: str, name: str) -> pd.DataFrame:
    """Return the rows of one file: whole numbers, and labels as text with None where the file says "?".

    ``name``: what messages call the file.
    """
    rows = []
    for place, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith(_COMMENT):
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(COLUMNS):
            raise InputError(
                f"{name} has {len(fields)} fields instead of {len(COLUMNS)} in line {place}; pass the files as UCI "
                "publishes them."
            )
        fields[-1] = fields[-1].rstrip(".")
        if fields[-1] not in INCOMES:
            raise InputError(
                f"{name} has the income {fields[-1]!r} in line {place}, which is neither {' nor '.join(INCOMES)}; pass "
                "the files as UCI publishes them."
            )
        rows.append([None if field == _UNKNOWN else field for field in fields])
    if not rows:
        raise InputError(f"{name} has no rows; pass the files as UCI publishes them.")
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.assign(**{column: _whole(frame[column], column, name) for column in NUMBERS})


def _whole(column: pd.Series, title: str, name: str) -> pd.Series:
    try:
        return column.astype("int64")
    except (TypeError, ValueError) as error:
        bad = next(value for value in column if value is None or not value.lstrip("-").isdigit())
        raise InputError(
            f"{name} has the {title} {bad!r}, which is no whole number; pass the files as UCI publishes them."
        ) from error
