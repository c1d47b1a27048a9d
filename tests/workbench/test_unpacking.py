"""A table of the page is bounded by what it unpacks to."""

import gzip
import io
import json
import resource

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from ciplearn.workbench.server import application, unpacks_beyond
from tests.workbench.asgi import Client

SECRET = "s" * 43
LIMIT = 1_000_000


def packed(rows):
    return gzip.compress(b"A,Y\n" + b"1,2\n" * rows, mtime=0)


def parquet(**columns):
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize("name", ["a.csv.gz", "a.TSV.GZ", "a.parquet"])
def test_bomb_is_refused_and_leaves_nothing(name, desk):
    client = Client(application(desk, SECRET, largest_table=LIMIT))
    bomb = parquet(A=["x" * 100] * 50_000) if name.endswith("parquet") else packed(30_000_000)
    assert len(bomb) < LIMIT / 2
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = client.post("/table", bomb, {"x-token": SECRET}, {"name": name})
    assert answer.status == 413
    assert "1 MB here, unpacked" in json.loads(answer.text)["error"]
    assert list(desk.store.tables.iterdir()) == []
    # In KiB: no more than a few blocks were ever held.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv.gz", packed(1000)), ("a.parquet", parquet(A=[1.0, 2.0], Y=["a", "b"]))]
)
def test_table_within_the_limit_is_taken(name, content, desk):
    client = Client(application(desk, SECRET, largest_table=LIMIT))
    assert client.post("/table", content, {"x-token": SECRET}, {"name": name}).status == 200
    assert desk.has_table


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv.gz", b"no gzip"), ("a.csv.gz", packed(10)[:-5]), ("a.parquet", b"PAR1"), ("a.csv", b"A\n")],
)
def test_what_cannot_be_read_is_left_to_the_reader(name, content):
    assert not unpacks_beyond(name, content, LIMIT)


@pytest.mark.parametrize("labels", [True, False], ids=["a column of labels", "a column of text"])
def test_cell_that_a_parquet_file_holds_once_and_repeats_counts_in_every_row(labels):
    """A cell of 1 MB in 500 rows takes 1 MB where labels are numbered, and 500 MB once they are written out."""
    cells = pyarrow.DictionaryArray.from_arrays([0] * 500, ["x" * 1_000_000])
    file, limit = io.BytesIO(), 100_000_000
    # Without Arrow's schema the column is one of text, which Arrow writes out when it reads.
    pyarrow.parquet.write_table(pyarrow.table({"A": cells}), file, store_schema=labels)
    content = file.getvalue()
    assert len(content) < limit / 10
    pool = pyarrow.default_memory_pool()
    highest = max(pool.max_memory(), pool.bytes_allocated() + limit)
    assert unpacks_beyond("a.parquet", content, limit)
    assert not unpacks_beyond("a.parquet", content, 10 * limit)
    assert pool.max_memory() <= highest
