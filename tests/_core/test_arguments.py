"""What is passed in is checked at the doorway."""

import os

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.arguments import finite, mapping_of, names_of, of_kind, one_of, positive, processes, several, whole
from ciplearn._core.columns import checked_table
from ciplearn._core.errors import CiplearnError, InputError, InputTypeError


def test_one_of_a_few_words():
    assert one_of("drop", "missing", ("error", "drop")) == "drop"
    for wrong in ("dorp", None, 1, ["drop"], np.array(["drop", "drop"]), np.zeros(0), pd.Series(["drop"])):
        with pytest.raises(InputError, match="missing must be one of error, drop, got"):
            one_of(wrong, "missing", ("error", "drop"))


def test_several_values():
    assert several((1, 2), "gammas") == [1, 2]
    assert several(np.array([1.0]), "gammas") == [1.0]
    for wrong in ("ab", b"ab", 3, None, np.array(3.0), object()):
        with pytest.raises(InputTypeError, match="gammas must be several values, got"):
            several(wrong, "gammas")


def test_names():
    assert names_of("A", "groups") == ["A"]
    assert names_of(["A", "B"], "groups") == ["A", "B"]
    for wrong in (3, None, ["A", 1]):
        with pytest.raises(InputTypeError, match="groups must be"):
            names_of(wrong, "groups")


def test_mapping():
    assert mapping_of(None, "values") == {}
    assert mapping_of({"A": 1}, "values") == {"A": 1}
    for wrong in ("A", [("A", 1)], pd.Series([1])):
        with pytest.raises(InputTypeError, match="values must map names to values"):
            mapping_of(wrong, "values")


def test_object_of_a_kind():
    assert of_kind(True, bool, "baselines", "pass True or False") is True
    with pytest.raises(InputTypeError, match="baselines must be a bool, got str; pass True or False"):
        of_kind("yes", bool, "baselines", "pass True or False")


def test_processes():
    assert [processes(each) for each in (None, 1, np.int64(2))] == [1, 1, 2]
    for wrong in (0, 1.5, "2", True, [1]):
        with pytest.raises(InputError, match="n_jobs must be a whole number other than 0"):
            processes(wrong)


def test_table_with_names_of_its_own():
    assert checked_table(pd.DataFrame({"A": [1]}), "rows").shape == (1, 1)
    with pytest.raises(InputError, match="rows has several columns named 'A'; rename all but one"):
        checked_table(pd.DataFrame([[1, 2]], columns=["A", "A"]), "rows")
    with pytest.raises(InputTypeError, match="rows must be a pandas DataFrame, got list"):
        checked_table([1], "rows")


def test_table_of_polars_is_refused_with_what_makes_it_one_of_pandas():
    frame = type("DataFrame", (), {"to_pandas": None, "get_column": None, "__module__": "polars.dataframe"})()
    with pytest.raises(InputTypeError, match=r"got polars\.dataframe\.DataFrame; pass what its to_pandas\(\) returns"):
        checked_table(frame, "rows")
    lazy = type("LazyFrame", (), {"collect": None, "collect_schema": None})()
    with pytest.raises(InputTypeError, match=r"LazyFrame; pass what its collect\(\)\.to_pandas\(\) returns"):
        checked_table(lazy, "rows")


def test_error_is_one_line_whatever_was_received():
    assert str(InputError(f"n must be a number, got {np.zeros((2, 2))!r}; pass one.")) == (
        "n must be a number, got array([[0., 0.], [0., 0.]]); pass one."
    )
    assert str(CiplearnError()) == ""


def test_processes_are_counted_as_joblib_counts_them():
    assert (processes(None), processes(1), processes(3)) == (1, 1, 3)
    assert 1 <= processes(-1) <= os.cpu_count()


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "all"])
def test_other_numbers_of_jobs_are_refused(n_jobs):
    with pytest.raises(InputError, match="n_jobs must be a whole number other than 0"):
        processes(n_jobs)


def test_more_jobs_than_any_machine_runs_are_refused():
    with pytest.raises(InputError, match="n_jobs must be at most 1024, got 10000000000000000000; pass -1"):
        processes(10**19)


def test_what_is_long_is_shortened():
    for wrong in (10**400, 10**5000, -(10**5000)):
        for check in (finite, lambda value, name: whole(value, name, 0, 9), positive):
            with pytest.raises(
                InputError, match=r"gamma must be .*(\d{12}\.\.\. \(\d+ characters\)|of more digits)"
            ) as found:
                check(wrong, "gamma")
            assert len(str(found.value)) < 200
    with pytest.raises(InputError, match="got int of more digits than can be written; pass one of these"):
        one_of(10**5000, "missing", ("error", "drop"))
