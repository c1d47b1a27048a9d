import pytest

from ciplearn import Independence
from ciplearn._core.errors import InputError


def test_statement_is_a_value_in_canonical_order():
    statement = Independence(right=["L", "A", "A"], given="S")
    assert statement.right == ("A", "L")
    assert statement.given == ("S",)
    assert statement == Independence(right=("A", "L"), given={"S"})
    assert hash(statement) == hash(Independence(["A", "L"], ["S"]))
    assert statement != Independence(["A"], ["L", "S"])


def test_statement_prints_itself():
    assert str(Independence(["A", "L"], ["S"])) == "Ŷ ⊥ {A, L} | {S}"
    assert str(Independence("A")) == "Ŷ ⊥ {A}"
    assert str(Independence("B", "C", left="A")) == "A ⊥ {B} | {C}"


def test_statement_is_json_ready():
    assert Independence("A", "S").to_dict() == {
        "left": ["Ŷ"],
        "right": ["A"],
        "given": ["S"],
        "text": "Ŷ ⊥ {A} | {S}",
    }


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ({"right": []}, "right is empty"),
        ({"right": "A", "given": ["A", "S"]}, r"\{A\} is in right and in given"),
        ({"right": "A", "left": "A"}, r"\{A\} is in left and in right"),
    ],
)
def test_impossible_statement_is_refused(sides, message):
    with pytest.raises(InputError, match=message):
        Independence(**sides)
