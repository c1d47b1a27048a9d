"""Separators by the names of files, and blank lines, which are rows where a table has one column only."""

import bz2
import gzip
import lzma
import os
import threading

import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.sources import TableFiles
from ciplearn.sources.formats import separator_of
from ciplearn.sources.table_file import COPIED, TableFile

zstandard = pytest.importorskip("zstandard")

PACKS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


def written(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_bytes(PACKS["." + name.rpartition(".")[2] if name.count(".") == 2 else ""](text.encode()))
    return tmp_path / name


def cells(file, name="x"):
    with file.opened() as opened:
        found = opened.read([name])
    assert found.index.tolist() == list(range(len(found)))
    return [None if pd.isna(cell) else cell for cell in found[name]]


@pytest.mark.parametrize("packed", PACKS)
@pytest.mark.parametrize("ending", [".tsv", ".TAB", ".csv"])
def test_cells_are_parted_by_what_the_name_says_however_the_file_is_packed(ending, packed, tmp_path):
    sign = "," if ending == ".csv" else "\t"
    path = written(tmp_path, f"x{sign}y\n1{sign}2\n", f"t{ending}{packed}")
    assert separator_of(path) == sign
    assert cells(TableFile(path), "y") == ["2"]
    assert TableFiles.matching(tmp_path).names == ("x", "y")


ONE_COLUMN = {
    "between": ("x\n1.0\n\n2.0", {}),
    "windows": ("x\r\n1.0\r\n\r\n2.0\r\n", {}),
    "above the name": ("\n \nx\n1.0\n\n2.0\n", {}),
    "after lines to pass over": ("about\n\nx\n1.0\n\n2.0\n", {"skip": 2}),
    "named": ("1.0\n\n2.0\n", {"columns": ("x",)}),
    "another separator": ("x\n1.0\n\n2.0\n", {"separator": "·"}),
    "blanks": ("x\n1.0\n   \n2.0\n", {}),
}


@pytest.mark.parametrize("name", ONE_COLUMN)
def test_blank_line_is_a_row_of_a_single_column(name, tmp_path):
    text, reading = ONE_COLUMN[name]
    assert cells(TableFile(written(tmp_path, text), **reading)) == ["1.0", None, "2.0"]


def test_first_and_last_line_of_a_single_column_may_be_blank(tmp_path):
    path = written(tmp_path, "\n1\n\n")
    assert cells(TableFile(path, columns=("x",))) == [None, "1", None]


@pytest.mark.parametrize("packed", PACKS)
def test_blank_line_is_a_row_in_files_and_pipes(packed, tmp_path):
    path = written(tmp_path, "x\n1\n\n2\n", f"t.csv{packed}")
    assert cells(TableFile(path)) == ["1", None, "2"]
    (tmp_path / "pipes").mkdir()
    pipe = tmp_path / "pipes" / path.name
    for kept in (False, True):
        os.mkfifo(pipe)
        threading.Thread(target=pipe.write_bytes, args=(path.read_bytes(),), daemon=True).start()
        if kept:
            with TableFile(pipe).kept_from_pipe() as file:
                assert cells(file) == cells(file) == ["1", None, "2"]
        else:
            assert cells(TableFile(pipe)) == ["1", None, "2"]
        pipe.unlink()


def test_blank_lines_are_counted_when_a_cell_is_copied_and_in_chunks(tmp_path):
    path = written(tmp_path, "x\n1\n\n 2\n\n")
    with TableFile(path).opened(copied="x") as opened:
        chunks = list(opened.chunks(3, ["x"]))
    assert [chunk.index.tolist() for chunk in chunks] == [[0, 1, 2], [3]]
    assert pd.concat(chunks)[COPIED].tolist() == ["1", "", " 2", ""]


@pytest.mark.parametrize("reading", [{}, {"separator": "·"}], ids=["quick", "slow"])
def test_blank_lines_of_several_columns_are_no_rows(reading, tmp_path):
    sign = reading.get("separator", ",")
    text = "\nx,y\n1,2\n\n  \n,\n3,4\n\n\n".replace(",", sign)
    assert cells(TableFile(written(tmp_path, text), **reading)) == ["1", None, "3"]


def test_long_first_line_of_a_pipe_has_several_columns(tmp_path):
    names = [f"c{place}" for place in range(12_000)]  # more than a pipe holds at once
    text = ",".join(names) + "\n\n" + ",".join(["1"] * len(names)) + "\n"
    os.mkfifo(tmp_path / "t.csv")
    threading.Thread(target=(tmp_path / "t.csv").write_text, args=(text,), daemon=True).start()
    assert cells(TableFile(tmp_path / "t.csv"), "c11999") == ["1"]


@pytest.mark.parametrize("text", ["", "\n\n", '""\n', "x\n1,2\n"])
def test_what_is_no_table_is_refused(text, tmp_path):
    with pytest.raises(InputError, match=r"is empty|no regular table"):
        cells(TableFile(written(tmp_path, text)))


LONG_ROWS = {
    "the first": ("x,y\n1,2,3\n4,5\n", {}, 1),
    "far too long": ("x,y\n1,2,3,4,5\n4,5\n", {}, None),
    "the first of a later chunk": ("x,y\n1,2\n3,4\n5,6,7\n", {}, 3),
    "a single column": ("x\n1,2\n", {}, 1),
    "without names": ("1,2\n4,5,6\n", {"columns": ("x", "y")}, 2),
    "another separator": ("x·y\n1·2·3\n", {"separator": "·"}, 1),
}


@pytest.mark.parametrize("name", LONG_ROWS)
@pytest.mark.parametrize("cuts", [False, True], ids=["new pandas", "old pandas"])
def test_a_row_of_too_many_cells_is_refused_by_every_pandas(name, cuts, tmp_path, monkeypatch):
    """Before 3.1 pandas itself cuts the first row of each chunk to the width of the table, and says nothing."""
    monkeypatch.setattr("ciplearn.sources.table_file._PANDAS_CUTS_ROWS", cuts)
    text, reading, row = LONG_ROWS[name]
    with (
        TableFile(written(tmp_path, text), **reading).opened() as opened,
        pytest.raises(InputError, match=rf"row {row} has more cells than" if cuts and row else "is no regular table"),
    ):
        list(opened.chunks(2, ["x"]))


def test_old_pandas_reads_a_regular_table_as_the_new_one_does(tmp_path, monkeypatch):
    monkeypatch.setattr("ciplearn.sources.table_file._PANDAS_CUTS_ROWS", True)
    for text in ("x,y\n1,2\n\n3\n,4\n", "x\n1\n3\n\n"):
        assert cells(TableFile(written(tmp_path, text))) == ["1", "3", None]
    assert cells(TableFile(written(tmp_path, "1,2\n3,4\n"), columns=("x", "y")), "y") == ["2", "4"]
