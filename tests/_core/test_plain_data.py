"""Results as plain data."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ciplearn._core.plain_data import as_data, fields_as_data


class Named(NamedTuple):
    node: str


@dataclass
class Inner:
    share: float


@dataclass
class Result:
    value: float
    interval: tuple[float, float]
    parts: tuple[Inner, ...]
    rows: pd.DataFrame


class Says:
    def to_dict(self):
        return {"own": "words"}


def test_numbers_that_json_lacks_are_none_and_numpys_are_pythons_own():
    plain = as_data([np.float64(0.5), np.int64(3), np.bool_(True), float("nan"), np.inf, 2, "text", None])
    assert plain == [0.5, 3, True, None, None, 2, "text", None]
    assert [type(entry) for entry in plain[:3]] == [float, int, bool]


def test_frames_are_lists_of_rows_without_nan():
    table = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": ["x", None]})
    assert as_data(table) == [{"a": 1, "b": 0.5, "c": "x"}, {"a": 2, "b": None, "c": None}]


def test_what_says_itself_what_it_is_is_asked_and_all_else_is_text():
    assert as_data({1: Says(), "named": Named("A"), "path": Path("a/b")}) == {
        "1": {"own": "words"},
        "named": {"node": "A"},
        "path": str(Path("a/b")),
    }


def test_fields_of_a_result_can_be_left_out_and_more_be_said():
    result = Result(0.5, (0.0, np.nan), (Inner(0.25),), pd.DataFrame({"a": [1]}))
    plain = fields_as_data(result, "rows", value="half", sentence="So it is.")
    assert plain == {"value": "half", "interval": [0.0, None], "parts": [{"share": 0.25}], "sentence": "So it is."}
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
