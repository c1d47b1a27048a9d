"""A table against a drawing."""

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph, Independence
from ciplearn.workbench.document import Document

GRAPH = CausalGraph.from_edges("A -> B, B -> C")
DOCUMENT = {"do": "falsify", "document": Document(GRAPH).to_dict()}


def table(desk, refuting):
    chance = np.random.default_rng(0)
    a = chance.normal(size=400)
    b = a + chance.normal(size=400)
    c = b + (2 * a if refuting else 0) + chance.normal(size=400)
    rows = pd.DataFrame({"A": a, "B": b, "C": c})
    desk.answer({"do": "table", "name": "t.csv", "content": rows.to_csv(index=False).encode()})


class Found:
    """What `CausalGraph.falsify` returns."""

    statements = (Independence(["C"], ["B"], ["A"]),)
    tests = pd.DataFrame({"p_adjusted": [0.001], "detectable": [np.nan], "obstacle": [None]})
    violated = statements
    refuted = True

    def __str__(self):
        return "The graph is refuted."


def test_refuted_statement_comes_with_p_and_power(desk, monkeypatch):
    monkeypatch.setattr(CausalGraph, "falsify", lambda *_, **__: Found())
    table(desk, refuting=True)
    (test,) = desk.answer(DOCUMENT)["tests"]
    assert test == {
        "statement": "A ⊥ {C} | {B}", "left": ["A"], "right": ["C"], "p": 0.001, "detectable": None, "obstacle": "",
        "refuted": True,
    }  # fmt: skip


@pytest.mark.parametrize("refuting", [True, False])
def test_data_that_contradicts_the_drawing_refute_it(desk, refuting):
    table(desk, refuting)
    found = desk.answer(DOCUMENT)
    assert found["refuted"] is refuting
    assert [test["refuted"] for test in found["tests"]] == [refuting]


def test_without_a_table_there_is_one_sentence(desk):
    assert list(desk.answer(DOCUMENT)) == ["error"]
