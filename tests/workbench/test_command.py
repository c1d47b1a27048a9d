"""``ciplearn workbench`` on the command line."""

import json
import socket
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.pages import commands_on
from tests.workbench.browser import served

pytestmark = pytest.mark.usefixtures("page")


def hello(address):
    root, _, token = address.partition("?token=")
    request = Request(f"{root}message", b'{"do": "hello"}', {"content-type": "application/json", "x-token": token})
    with urlopen(request, timeout=20) as answer:
        return json.load(answer)


def refused(*words):
    command = [sys.executable, "-c", "from ciplearn.cli import main; main()", "workbench", "--no-browser", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_server_answers_on_the_loopback_address_and_nowhere_else(tmp_path):
    with served(tmp_path / "work") as (_, address):
        assert address.startswith("http://127.0.0.1:")
        assert hello(address)["document"]["graph"]["nodes"] == []
        port = int(address.split(":")[2].split("/")[0])
        with pytest.raises(HTTPError) as caught:
            urlopen(f"http://127.0.0.1:{port}/events", timeout=20)
        with caught.value as answer:
            assert answer.code == 403
        # Listening on one address only leaves the same port of another free.
        with socket.socket() as other:
            other.bind(("127.0.0.2", port))


def test_table_and_graph_of_the_command_line_are_on_the_page(tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("A,Y\n1,2\n3,4\n")
    with served(tmp_path / "work", table, "--graph", "A -> Y", "--json") as (_, address):
        found = hello(address)
    assert found["table"] == {"name": "people.csv"}
    assert found["document"]["graph"]["directed"] == [["A", "Y"]]


def test_command_of_the_page_about_the_workbench_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("sex,income\nf,2\nm,4\n")
    (tmp_path / "graph.txt").write_text("sex -> income")
    ((_, _, *words),) = (call for call in commands_on("docs/workbench.md") if call[:2] == ["ciplearn", "workbench"])
    with served(tmp_path / "work", *words) as (_, address):
        found = hello(address)
    assert found["table"] == {"name": "people.csv"}
    assert found["document"]["graph"]["directed"] == [["sex", "income"]]


def test_mistakes_get_one_line(tmp_path):
    for words, said in (
        (("none.csv",), "no table"),
        (("--graph", "A"), "neither a file nor a graph"),
        (("--host", "300.1.1.1"), "cannot be listened on"),
    ):
        done = refused("--folder", str(tmp_path / "work"), *words)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
