import numpy as np
import pytest

from ciplearn._core.wording import as_list, as_set, told_apart, written


@pytest.mark.parametrize(("names", "text"), [([], "∅"), (["A"], "{A}"), (("A", "L"), "{A, L}")])
def test_set_of_names_stands_in_braces(names, text):
    assert as_set(names) == text


@pytest.mark.parametrize(("names", "text"), [(["A"], "A"), ("AL", "A and L"), (iter("ALS"), "A, L and S")])
def test_list_of_names_has_one_and(names, text):
    assert as_list(names) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (568_500.4, "568500"),
        (2072.0, "2072"),
        (np.float32(0.123456), "0.1235"),
        (1e300, "1e+300"),
        (float("nan"), "nan"),
        (np.int64(7), "7"),
        (True, "True"),
        ("cook", "cook"),
    ],
)
def test_numbers_are_written_as_people_do(value, text):
    assert written(value) == text


def test_values_get_as_many_digits_as_tell_them_apart():
    assert told_apart([0.5, 0.25]) == ["0.5", "0.25"]
    assert told_apart([0.123451, 0.123459]) == ["0.12345", "0.12346"]
    assert told_apart([10001.0, 10002.0, "x"]) == ["10001", "10002", "x"]
