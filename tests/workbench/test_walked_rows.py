"""The rows of a walk: cut alike for whoever asks, with the labels of the command line."""

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph
from ciplearn.cli.trained_rows import held_out_rows
from ciplearn.cli.training_table import as_target
from ciplearn.workbench.document import Document
from ciplearn.workbench.tables import Table
from ciplearn.workbench.walked_rows import WalkedRows

DOCUMENT = Document(CausalGraph.from_dagitty("dag { A [exposure] Y [outcome] A -> Y }"))


def cut(tmp_path, outcomes):
    pd.DataFrame({"A": np.arange(len(outcomes)) % 7, "Y": outcomes}).to_csv(tmp_path / "t.csv", index=False)
    return WalkedRows.of(Table(tmp_path / "t.csv", "t.csv"), DOCUMENT, 0)


def test_rows_are_cut_without_overlap_and_the_held_ones_are_those_of_fit(tmp_path):
    rows = cut(tmp_path, np.random.default_rng(0).normal(size=100))
    assert rows.task == "regression"
    assert rows.held.index.tolist() == held_out_rows(100, 0.2, 0).tolist()
    assert [len(part) for part in (rows.training, rows.judging, rows.held)] == [60, 20, 20]
    assert sorted([*rows.training.index, *rows.judging.index, *rows.held.index]) == list(range(100))


def test_copies_of_a_row_stay_together(tmp_path):
    rows = cut(tmp_path, np.tile(np.random.default_rng(0).normal(size=70), 3))
    assert [len(part) for part in (rows.training, rows.judging, rows.held)] == [126, 42, 42]
    for part in (rows.training, rows.judging, rows.held):
        assert (part.index % 70).value_counts().eq(3).all()


@pytest.mark.parametrize("pair", [(0, 1), (0.1, 0.3), (2.0**53, 2.0**53 + 2), ("no", "yes")])
def test_labels_are_those_of_the_command_line(pair, tmp_path):
    rows = cut(tmp_path, [pair[place % 2] for place in range(100)])
    expected = as_target(pd.Series(pair), "classification")
    assert rows.task == "classification"
    assert sorted(rows.every["Y"].cat.categories) == sorted(expected)


def test_label_that_training_has_not_seen_does_not_judge(tmp_path):
    often = ["a", "b"] * 50
    judge = cut(tmp_path, often).judging.index[0]
    rows = cut(tmp_path, [*often[:judge], "rare", *often[judge + 1 :]])
    assert judge in rows.every.index
    assert len(rows.judging) == 19
    assert "rare" not in set(rows.judging["Y"])


def test_codes_are_asked_about_as_fit_asks(tmp_path):
    table = pd.DataFrame({"A": [1, 2, 3] * 30, "B": [0, 1] * 45, "C": [0.5, 1.5] * 45, "Y": range(90)})
    table.to_csv(tmp_path / "t.csv", index=False)
    found = Table(tmp_path / "t.csv", "t.csv").describe(DOCUMENT)["columns"]
    assert [column["name"] for column in found if column["perhaps_codes"]] == ["A"]
