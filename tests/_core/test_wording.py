import pytest

from ciplearn._core.wording import as_list, as_set


@pytest.mark.parametrize(("names", "text"), [([], "∅"), (["A"], "{A}"), (("A", "L"), "{A, L}")])
def test_set_of_names_stands_in_braces(names, text):
    assert as_set(names) == text


@pytest.mark.parametrize(("names", "text"), [(["A"], "A"), ("AL", "A and L"), (iter("ALS"), "A, L and S")])
def test_list_of_names_has_one_and(names, text):
    assert as_list(names) == text
