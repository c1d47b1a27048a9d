"""Tables that are written piece by piece: the last ending of a name says how, for every command."""

import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.cli.app import run
from ciplearn.cli.predict import check_ending, written_table

PIECES = [pd.DataFrame({"id": ["a, b"], "x": [None]}), pd.DataFrame({"id": ["c"], "x": [0.1]})]


@pytest.mark.parametrize(
    "name", ["t", "t.csv", "T.CSV", "t.txt", "t.csv.gz", "t.tsv", "t.csv.tsv", "t.tab", "t.tsv.gz"]
)
def test_last_ending_says_the_separator(name, tmp_path):
    with written_table(tmp_path / name) as written:
        for piece in PIECES:
            written.write(piece)
    separator = "\t" if ".ts" in name or ".tab" in name else ","
    again = pd.read_csv(tmp_path / name, sep=separator)
    assert again["id"].tolist() == ["a, b", "c"]
    assert again["x"].isna().tolist() == [True, False]


def test_parquet_of_pieces_of_which_the_first_has_no_values(tmp_path):
    with written_table(tmp_path / "t.pq", {"x": [0.0]}) as written:
        for piece in PIECES:
            written.write(piece)
    again = pd.read_parquet(tmp_path / "t.pq")
    assert again["x"].dtype == float
    assert again["x"].tolist()[1] == 0.1


def test_packed_text_is_the_same_bytes_again(tmp_path):
    for name in ("one.csv.gz", "two.csv.gz"):
        with written_table(tmp_path / name) as written:
            written.write(PIECES[0])
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


def test_device_takes_commas_whatever_its_name(tmp_path):
    (tmp_path / "a.link").symlink_to("/dev/null")
    check_ending(tmp_path / "a.link")
    with pytest.raises(InputError, match="must end in"):
        check_ending(tmp_path / "b.link")


@pytest.mark.parametrize("name", ["p.zip", "p.xlsx", "p.parquet.gz"])
def test_predict_refuses_the_same_endings_before_it_reads(name, tmp_path, capsys):
    assert run(["predict", str(tmp_path / "none"), "none.csv", "--out", str(tmp_path / name)]) == 2
    assert "must end in .csv" in capsys.readouterr().err
