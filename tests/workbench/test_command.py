"""``ciplearn workbench`` on the command line."""

import functools
import json
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from ciplearn.workbench.store import Store
from tests.pages import commands_on
from tests.workbench import browser
from tests.workbench.browser import COLD, browsing, needs_browser

pytestmark = pytest.mark.usefixtures("page")

served = functools.partial(browser.served, command=COLD)


def hello(address):
    root, _, token = address.partition("?token=")
    request = Request(f"{root}message", b'{"do": "hello"}', {"content-type": "application/json", "x-token": token})
    with urlopen(request, timeout=20) as answer:
        return json.load(answer)


def refused(*words):
    return subprocess.run(
        [*COLD, "workbench", "--no-browser", *words], capture_output=True, text=True, check=False, timeout=60
    )


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


def test_second_workbench_on_a_folder_says_where_the_first_is_and_leaves_its_training(tmp_path):
    with served(tmp_path / "work", "--demo") as (server, address):
        run = tmp_path / "work" / "runs" / ("0" * 16)
        run.mkdir()
        second = refused("--folder", str(tmp_path / "work"), "--demo")
        assert second.returncode == 1
        assert address in second.stderr
        assert len(second.stderr.strip().splitlines()) == 1
        assert run.exists()
        server.kill()
        server.wait()
    with served(tmp_path / "work", "--demo") as (_, again):
        assert again.partition("?")[0] == address.partition("?")[0]
        assert again != address
        assert hello(again)["runs"] == []
        assert not run.exists(), "what a killed server has left is cleared by the next"
        with pytest.raises(HTTPError, match="403"):
            hello(f"{again.partition('=')[0]}={address.partition('=')[2]}")


def test_browser_is_started_with_a_private_page_and_not_with_the_secret(tmp_path, monkeypatch):
    said = tmp_path / "said"
    (tmp_path / "browser").write_text(f'#!/bin/sh\necho "$@" > {said}\n')
    (tmp_path / "browser").chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{tmp_path / 'browser'} %s")
    with served(tmp_path / "work", "--browser") as (_, address):
        end = time.monotonic() + 20
        while not said.exists() or not said.read_text().endswith("\n"):
            assert time.monotonic() < end
            time.sleep(0.05)
        page = Path(said.read_text().strip().removeprefix("file://"))
        assert address.partition("=")[2] not in said.read_text()
        assert f"url={address}" in page.read_text()
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700


@needs_browser
def test_private_page_leads_the_browser_to_the_server(tmp_path):
    with served(tmp_path / "work") as (_, address), browsing(tmp_path / "browser") as web:
        web.open((tmp_path / "work" / "opening" / "open.html").as_uri())
        assert web.driver.current_url.startswith(address.partition("?")[0])


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_server_that_is_asked_to_end_does_so_in_silence_though_a_page_listens(name, tmp_path):
    with served(tmp_path / "work", stderr=subprocess.PIPE) as (server, address):
        with urlopen(address.replace("/?", "/events?"), timeout=20) as stream:
            assert stream.readline() == b"retry: 1000\n"
            server.send_signal(getattr(signal, name))
            stream.read()
        said = server.communicate(timeout=20)[1]
    assert "Traceback" not in said
    assert "ERROR" not in said
    Store(tmp_path / "work").close()


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
