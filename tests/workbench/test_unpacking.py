"""A table of the page is bounded by what it unpacks to."""

import gzip
import io
import json
import resource

import pandas as pd
import pytest

from ciplearn.workbench.server import application
from ciplearn.workbench.unpacking import unpacks_beyond
from tests.workbench.asgi import Client

SECRET = "s" * 43
LIMIT = 1_000_000


def packed(rows):
    return gzip.compress(b"A,Y\n" + b"1,2\n" * rows)


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
