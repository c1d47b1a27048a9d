"""Who is let in, and what every answer forbids."""

import pytest

from ciplearn import workbench
from ciplearn.workbench.server import application, is_loopback
from tests.workbench.asgi import Client

SECRET = "s" * 43
HELLO = {"do": "hello"}
ELSEWHERE = ("evil.example", "127.0.0.1.evil.example:8765", "evil.example:8765", "", "10.0.0.7:8765")
ORIGINS = (
    "http://evil.example",
    "null",
    "https://127.0.0.1:8765",
    "http://127.0.0.1:9999",
    "http://localhost:8765",
)


@pytest.fixture
def page_folder(tmp_path, monkeypatch):
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "workbench.js").write_text("export {}")
    monkeypatch.setattr(workbench, "BUNDLE", folder)
    return folder


@pytest.fixture
def client(desk, page_folder):
    return Client(application(desk, SECRET, largest_table=1000))


def status(client, content=HELLO, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/message", content, {"x-token": SECRET, **named}).status


def test_secret_opens_and_everything_else_does_not(client):
    assert status(client) == 200
    assert client.get("/", token=SECRET).status == 200
    for wrong in ("", "t" * 43, SECRET[:-1], SECRET + "s"):
        assert status(client, x_token=wrong) == 403
        assert client.get("/events", token=wrong).status == 403
        assert client.post("/table", b"a\n1", {"x-token": wrong}, {"name": "a.csv"}).status == 403


def test_page_itself_is_the_same_for_everybody(client):
    assert client.get("/").text == client.get("/", token=SECRET).text == client.get("/", token="t" * 43).text


def test_scripts_are_scripts_whatever_the_machine_calls_them(client, monkeypatch):
    monkeypatch.setattr("starlette.responses.guess_type", lambda name: ("text/plain", None))
    assert client.get("/workbench.js").headers["content-type"] == "text/javascript; charset=utf-8"
    assert client.get("/").headers["content-type"] == "text/html; charset=utf-8"


def test_secret_in_the_address_does_not_open_what_changes_something(client):
    assert client.post("/message", HELLO, query={"token": SECRET}).status == 403


def test_secret_never_comes_back(client):
    assert SECRET not in client.post("/message", HELLO, {"x-token": SECRET}).text
    assert SECRET not in client.get("/", token=SECRET).text


@pytest.mark.parametrize("host", ELSEWHERE)
def test_another_host_name_is_refused(client, host):
    assert status(client, host=host) == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "[::1]:8765"])
def test_names_of_this_machine_are_answered(client, host):
    assert status(client, host=host) == 200


def test_host_that_was_asked_for_is_answered_in_digits_only(desk, page_folder):
    client = Client(application(desk, SECRET, host="0.0.0.0"), "10.0.0.7:8765")
    assert status(client) == 200
    assert status(client, host="evil.example:8765") == 403


@pytest.mark.parametrize("origin", ORIGINS)
def test_another_origin_is_refused_though_it_knows_the_secret(client, origin):
    assert status(client, origin=origin) == 403


def test_own_origin_is_answered(client):
    assert status(client, origin="http://127.0.0.1:8765") == 200


def test_browser_that_says_cross_site_is_refused(client):
    assert status(client, sec_fetch_site="cross-site") == 403
    assert status(client, sec_fetch_site="same-origin") == 200


def test_message_must_be_announced_as_json_so_that_no_plain_form_can_send_it(client):
    assert status(client, content_type="text/plain") == 415


def test_no_answer_allows_inline_script_or_frames(client):
    answers = [client.post("/message", HELLO, {"x-token": SECRET}), client.get("/", token=SECRET)]
    for answer in (*answers, client.get("/"), client.get("/workbench.js")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers


def test_table_over_the_limit_is_refused_announced_or_not(client, desk):
    for content in (b"a" * 1001, [b"a,b\n"] * 1000):
        answer = client.post("/table", content, {"x-token": SECRET}, {"name": "a.csv"})
        assert answer.status == 413
    assert list(desk.store.tables.iterdir()) == []


def test_message_over_the_limit_is_refused(client):
    assert status(client, {"do": "read", "text": "x" * 4_100_000}) == 413


def test_nothing_but_the_page_is_served(client):
    for path in ("/../pyproject.toml", "/%2e%2e/server.json", "/server.json", "/page/../../x", "/document.json"):
        assert client.request("GET", path, headers={"x-token": SECRET}).status == 404


def test_websocket_is_closed(client):
    import asyncio

    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(client.app({"type": "websocket", "headers": []}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_loopback_is_told_from_the_rest():
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.1.2.3")))
    assert not any(map(is_loopback, ("0.0.0.0", "10.0.0.7", "example.org", "::")))
