"""Many files are one table, and a bad one is named."""

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.columns import distinct_labels
from ciplearn._core.encoding import column_of
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.sources import TableFiles, as_source, open_source
from ciplearn.sources.table_file import TableFile

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")


def table(n=1000, seed=0):
    generator = np.random.default_rng(seed)
    return pd.DataFrame({"a": generator.normal(size=n), "b": generator.choice(["x", "y"], n)})


@pytest.fixture
def folder(tmp_path):
    whole = table()
    for place in range(4):
        part = whole.iloc[place * 250 : (place + 1) * 250]
        part.to_parquet(tmp_path / f"part-{place}.parquet", row_group_size=100, index=False)
        part.to_csv(tmp_path / f"part-{place}.csv", index=False)
    return tmp_path


def read(source):
    pieces = [chunk for part in source.parts() for chunk in part.chunks(source.names)]
    return pd.concat(pieces, ignore_index=True)


def labels(column):
    known, places = distinct_labels(column)
    return [known[place] for place in places]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_are_read_in_the_order_of_their_names(folder, ending):
    source = TableFiles.matching(folder / f"*.{ending}")
    found = read(source)
    assert len(source.files) == 4
    pd.testing.assert_frame_equal(found.astype({"a": float, "b": object}), table().astype({"b": object}))


def test_a_folder_is_all_its_tables(folder):
    (folder / "notes.md").write_text("no table")
    for path in folder.glob("*.csv"):
        path.unlink()
    assert len(TableFiles.matching(folder).files) == 4


def test_parts_know_their_rows_and_do_not_overlap(folder, monkeypatch):
    monkeypatch.setattr("ciplearn.sources.table_files.PART_ROWS", 200)
    parts = TableFiles.matching(folder / "*.parquet").parts()
    assert [part.n_rows for part in parts] == [200, 50] * 4
    assert sum(len(chunk) for part in parts for chunk in part.chunks(["a"])) == 1000


def test_a_pyarrow_dataset_is_read_fragment_by_fragment(folder):
    import pyarrow.dataset

    source = open_source(pyarrow.dataset.dataset(sorted(map(str, folder.glob("*.parquet")))))
    assert [part.n_rows for part in source.parts()] == [250] * 4
    pd.testing.assert_frame_equal(read(source).astype({"b": object}), table().astype({"b": object}))


@pytest.mark.parametrize("kind", ["bool", "boolean", "category"])
def test_booleans_have_the_labels_of_frames_and_text(tmp_path, kind):
    import pyarrow.dataset

    cells = [True, None, False] if kind != "bool" else [True, True, False]
    frame = pd.DataFrame({"b": pd.Series(cells, dtype=kind)})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False, na_rep="NA")
    held = pyarrow.dataset.dataset(pyarrow.Table.from_pandas(frame))
    for source in (*(TableFiles.matching(tmp_path / name) for name in ("t.parquet", "t.csv")), open_source(held)):
        assert labels(read(source)["b"]) == labels(frame["b"])


def test_a_damaged_file_is_named(folder):
    (folder / "part-2.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InputError, match=r"part-2\.parquet cannot be read"):
        TableFiles.matching(folder / "*.parquet").parts()


def test_changed_bytes_of_a_file_with_checksums_are_noticed(folder):
    path = folder / "part-1.parquet"
    table(5000).to_parquet(path, index=False, write_page_checksum=True)
    content = path.read_bytes()
    path.write_bytes(content[:2000] + bytes(64) + content[2064:])
    with pytest.raises(InputError, match=r"part-1\.parquet cannot be read: .*CRC checksum"):
        read(TableFiles.matching(folder / "*.parquet"))


def test_a_file_with_another_kind_is_named(folder):
    table(50).assign(a="high").to_parquet(folder / "part-3.parquet", index=False)
    with pytest.raises(InputError, match=r"'a' holds text in .*part-3\.parquet and numbers in .*part-0"):
        TableFiles.matching(folder / "*.parquet").parts()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_that_lacks_a_column_is_named(folder, ending):
    lacking = table(50)[["a"]]
    if ending == "csv":
        lacking.to_csv(folder / "part-1.csv", index=False)
    else:
        lacking.to_parquet(folder / "part-1.parquet", index=False)
    with pytest.raises(InputError, match=rf"part-1\.{ending} lacks the column 'b', which .*part-0"):
        read(TableFiles.matching(folder / f"*.{ending}"))


def test_a_pattern_without_files_is_refused(tmp_path):
    with pytest.raises(InputError, match="No file matches"):
        TableFiles.matching(tmp_path / "*.parquet")
    with pytest.raises(InputError, match="is a folder without"):
        TableFiles.matching(tmp_path)


def test_a_name_that_no_file_can_have_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="x cannot be read: File name too long; pass another file"):
        TableFiles.matching("x" * 300)


def test_identity_changes_with_the_content(folder):
    before = TableFiles.matching(folder / "*.csv").identity()
    assert before == TableFiles.matching(folder / "*.csv").identity()
    table(250, seed=1).to_csv(folder / "part-0.csv", index=False)
    assert before["sha256"] != TableFiles.matching(folder / "*.csv").identity()["sha256"]


def test_only_what_streams_is_a_source():
    assert as_source(table()) is None
    with pytest.raises(InputTypeError, match="A table that streams is a path"):
        open_source(3)


def test_a_file_that_is_written_to_meanwhile_is_named(folder):
    source = TableFiles.matching(folder / "*.csv")
    with source.unchanged():
        read(source)
    with pytest.raises(InputError, match=r"part-2\.csv was changed while it was read"), source.unchanged():
        table(20).to_csv(folder / "part-2.csv", index=False)


@pytest.mark.parametrize("kind", [pyarrow.duration("ns"), pyarrow.duration("s"), pyarrow.time64("us")], ids=str)
def test_durations_of_a_parquet_file_are_refused_as_those_of_a_frame_are(kind, tmp_path):
    values = pyarrow.array(range(10), pyarrow.int64()).cast(kind)
    parquet.write_table(pyarrow.table({"wait": values}), tmp_path / "t.parquet")
    with (
        TableFile(tmp_path / "t.parquet").opened() as opened,
        pytest.raises(InputError, match=r"'wait' .* dates or times"),
    ):
        opened.read(["wait"])
    with pytest.raises(InputError, match="Column 'wait' holds dates or times"):
        column_of(pd.read_parquet(tmp_path / "t.parquet")["wait"])
    with TableFile(tmp_path / "t.parquet").opened(labels=["wait"]) as opened:
        assert opened.read(["wait"])["wait"].nunique() == 10


def test_label_that_a_parquet_file_holds_once_is_held_once(tmp_path):
    """Written out in every row, 400 times 1 MB would be held."""
    labels = pyarrow.DictionaryArray.from_arrays([0] * 300 + [None, 1] + [0] * 98, ["x" * 1_000_000, " y "])
    parquet.write_table(pyarrow.table({"a": labels}), tmp_path / "t.parquet")
    pool = pyarrow.default_memory_pool()
    highest = max(pool.max_memory(), pool.bytes_allocated() + 50_000_000)
    with TableFile(tmp_path / "t.parquet", missing=("y",)).opened() as opened:
        column = opened.read(["a"])["a"]
    assert pool.max_memory() <= highest
    assert len({id(cell) for cell in column if isinstance(cell, str)}) <= 2
    assert column.isna().tolist() == [False] * 300 + [True, False] + [False] * 98
    assert column.iloc[301] == " y "
