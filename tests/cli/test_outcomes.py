"""Outcomes of two numbers have the same labels in memory, in a stream and in an audit."""

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.columns import as_target
from ciplearn.cli.app import run
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.sources import TableFiles
from ciplearn.sources.table_file import TableFile

FIT = [
    "--graph=A -> L -> Y",
    "--outcome=Y",
    "--protected=A",
    "--gamma=0",
    "--epochs=20",
    "--batch-size=32",
    "--learning-rate=0.01",
    "--no-compare",
]

PAIRS = {
    "whole": ((0.0, 1.0), [0, 1]),
    "not whole": ((0.1, 0.9), ["0.1", "0.9"]),
    "text has another order": ((9.5, 10.5), ["10.5", "9.5"]),
    "beyond 64 bits": ((0, 10**19), ["0", "10000000000000000000"]),
}


def table(pair, n=200):
    draw = np.random.default_rng(0)
    A, L = draw.normal(size=(2, n))
    return pd.DataFrame({"A": A, "L": L, "Y": [pair[int(each)] for each in L > 0]})


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", PAIRS)
def test_fit_and_audit_know_the_same_labels_of_a_file_and_of_a_folder(name, place):
    pair, labels = PAIRS[name]
    rows = table(pair)
    rows.to_csv("all.csv", index=False)
    # In the first part there is one value only.
    for part, some in enumerate((rows[rows["Y"] == pair[0]], rows[rows["Y"] != pair[0]])):
        some.to_csv(f"parts/{part}.csv", index=False)
    for given, source in (("all.csv", TableFile(place / "all.csv")), ("parts", TableFiles.matching(place / "parts"))):
        assert run(["fit", given, *FIT, "--out", f"{given}.m"]) == 0
        folder = ModelFolder.read(place / f"{given}.m")
        assert folder.model.classes_.tolist() == labels
        assert folder.training["scores"]["score"] > 0.8
        for judged in folder.rows(source)[:2]:
            assert set(judged["Y"]) == set(labels)
            np.testing.assert_array_equal(judged["Y"].astype(float), np.where(judged["L"] > 0, *map(float, pair[::-1])))


@pytest.mark.parametrize(
    ("pair", "other", "labels"), [((0, 1), 0.5, {0, 1, 0.5}), ((0.1, 0.9), 3, {"0.1", "0.9", "3.0"})]
)
def test_another_number_in_an_audited_table_leaves_the_others_what_they_are(pair, other, labels, place):
    table(pair).to_csv("t.csv", index=False)
    assert run(["fit", "t.csv", *FIT, "--out=m"]) == 0
    rows = table(pair).astype({"Y": float})
    rows.loc[3, "Y"] = other
    rows.to_csv("other.csv", index=False)
    assert set(ModelFolder.read(place / "m").rows(TableFile(place / "other.csv"))[0]["Y"]) == labels


def test_label_of_a_number_is_its_shortest_text():
    found = as_target(pd.Series([0.1, -0.0, 0.0, 1.0, 1e19]), "classification")
    assert found.tolist() == ["0.1", "0", "0", "1", "10000000000000000000"]
