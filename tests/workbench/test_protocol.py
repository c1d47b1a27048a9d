"""What comes in is a message of the schema or refused in a sentence: at every door, and never with a 500."""

import json
import math
import os
import re
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciplearn._core.errors import InputError
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.document import Document
from ciplearn.workbench.protocol import DOCUMENT, MESSAGES, RUN, SAVED, check, check_message
from ciplearn.workbench.server import application
from ciplearn.workbench.store import Store
from tests.workbench.asgi import Client
from tests.workbench.test_runs import ASKED

SECRET = "s" * 43

# Hypothesis draws as many messages as CIPLEARN_FUZZ says, and half as many tables.
EXAMPLES = int(os.environ.get("CIPLEARN_FUZZ", "50"))
NAMES = st.sampled_from(["A", "Y", "Z", "L"]) | st.text(max_size=5)
# Messages that start work of seconds are answered elsewhere.
QUICK = [do for do in MESSAGES if do not in ("table", "demo-table", "train", "falsify")]


def nested(depth):
    return json.loads("[" * depth + "]" * depth)


HOSTILE = {
    "deep": {"do": "save", "document": {"graph": {"nodes": nested(900)}}, "version": 0},
    "deep key": {"do": "judge", "document": {"graph": {}, "kinds": nested(900)}},
    "surrogate": {"do": "save", "document": {"graph": {"nodes": ["\ud800"]}}, "version": 0},
    "surrogate key": {"do": "save", "document": {"graph": {"positions": {"\udfff": [0, 0]}}}, "version": 0},
    "surrogate text": {"do": "read", "text": "A -> \ud800"},
    "do": {"do": []},
    "do of an object": {"do": {"do": "hello"}},
    "format": {"do": "write", "document": {}, "format": []},
    "preset": {**ASKED, "preset": []},
    "large": {**ASKED, "amount": 10**400},
    "large position": {"do": "save", "document": {"graph": {"positions": {"A": [10**400, 0]}}}, "version": 0},
    "nan": {**ASKED, "amount": math.nan},
    "infinite": {"do": "save", "document": {"graph": {"positions": {"A": [math.inf, 0]}}}, "version": 0},
    "version": {"do": "save", "document": {}, "version": []},
    "client": {"do": "save", "document": {}, "version": 0, "client": nested(500)},
    "run": {"do": "cancel", "run": {}},
    "way out": {"do": "download", "run": "0" * 16, "stop": "../..", "what": "model"},
    "what": {"do": "download", "run": "0" * 16, "stop": "i00", "what": []},
    "values": {"do": "imagine", "run": "0" * 16, "stop": "i00", "row": "0", "values": {"A": nested(3)}},
    "no document": {"do": "judge"},
    "list": [],
    "null": None,
    "number": 10**400,
}


def posted(desk, content):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Client(application(desk, SECRET)).post("/message", body, {"x-token": SECRET})


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_message_is_refused_in_a_sentence_and_the_page_still_opens(name, desk):
    answer = posted(desk, HOSTILE[name])
    assert answer.status == 400
    said = json.loads(answer.text)["error"]
    assert len(said) < 600
    assert said.endswith(".")
    assert list(desk.answer(HOSTILE[name])) == ["error"]
    desk.close()
    again = Desk(Store(desk.store.folder))
    assert again.answer({"do": "hello"})["set_aside"] == ""
    assert again.document.graph.nodes == ()
    again.close()


def test_every_action_has_a_schema_and_every_schema_an_action(desk):
    assert set(desk._actions) == set(MESSAGES)


@pytest.mark.parametrize(
    "content",
    [
        b"{half",
        json.dumps({"version": 1, "document": {"graph": {"nodes": nested(900)}}}).encode(),
        b'{"version": 1, "document": {"graph": {"nodes": ["\\ud800"]}}}',
        b'{"version": 1e999, "document": {}}',
        b'{"version": 1, "document": {}, "table": []}',
        b'{"version": 1}',
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"version": ' + b"9" * 5000 + b', "document": {}}',
    ],
)
@pytest.mark.parametrize("file", ["document.json", "server.json"])
def test_damaged_state_is_set_aside_and_said(file, content, tmp_path):
    store = Store(tmp_path / "work")
    store.close()
    if file == "server.json":
        content = content.replace(b'"version"', b'"port"').replace(b'"port": 1,', b'"port": "1",')
        content = content.replace(b'"port": 1}', b'"port": -1}')
    (tmp_path / "work" / file).write_bytes(content)
    desk = Desk(Store(tmp_path / "work"))
    hello = desk.answer({"do": "hello"})
    assert hello["document"] == Document().to_dict()
    (aside,) = (tmp_path / "work").glob(f"damaged-*-{file}")
    assert aside.read_bytes() == content
    assert aside.name in hello["set_aside"]
    assert desk.answer({"do": "save", "document": {"graph": {"nodes": ["A"]}}, "version": 0}) == {"version": 1}
    desk.close()
    again = Desk(Store(tmp_path / "work"))
    assert again.document.graph.nodes == ("A",)
    assert again.answer({"do": "hello"})["set_aside"] == ""
    again.close()


@pytest.mark.parametrize("content", [b'{"status": "done"}', b'{"status": "running"}', b"[1]", b'{"name": "../../x"}'])
def test_damaged_run_is_set_aside_with_its_files_and_said(content, tmp_path):
    store = Store(tmp_path / "work")
    store.close()
    run = store.runs / ("0" * 16)
    run.mkdir()
    (run / "run.json").write_bytes(content)
    (run / "model").write_text("an hour of training")
    desk = Desk(Store(tmp_path / "work"))
    hello = desk.answer({"do": "hello"})
    assert hello["runs"] == []
    (aside,) = store.runs.glob("damaged-*")
    assert aside.name in hello["set_aside"]
    assert (aside / "model").read_text() == "an hour of training"
    desk.close()


def strategy(schema):
    """Values that a schema describes."""
    kinds = schema.get("type", ("null", "boolean", "integer", "string"))
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    low, high = schema.get("minimum", -1000), schema.get("maximum", 1000)
    most = min(schema.get("maxItems", 4), 4)
    made = {
        "null": st.none(),
        "boolean": st.booleans(),
        "integer": st.integers(low, high),
        "number": st.floats(low, high) | st.integers(low, high),
        "string": st.from_regex(schema["pattern"], fullmatch=True) if "pattern" in schema else NAMES,
        "bytes": st.binary(max_size=200),
    }
    if "array" in kinds:
        made["array"] = st.lists(strategy(schema.get("items", {})), min_size=schema.get("minItems", 0), max_size=most)
    if "object" in kinds:
        known, needed = schema.get("properties", {}), schema.get("required", ())
        fixed = st.fixed_dictionaries(
            {name: strategy(known[name]) for name in needed},
            optional={name: strategy(part) for name, part in known.items() if name not in needed},
        )
        others = schema.get("additionalProperties", {})
        more = st.dictionaries(NAMES, strategy(others), max_size=3) if others and not known else st.just({})
        made["object"] = st.builds(lambda one, other: {**other, **one}, fixed, more)
    return st.one_of([made[kind] for kind in kinds])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**400) | st.floats() | st.text() | st.just("\ud800"),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=8), part, max_size=4),
    max_leaves=20,
)


@st.composite
def broken(draw, whole):
    """A value in which one place was replaced by anything, left out, or added to."""
    value = json.loads(json.dumps(draw(whole)))
    place, parent, key = value, None, None
    while isinstance(place, dict | list) and place and (parent is None or draw(st.booleans())):
        parent, key = place, draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        place = parent[key]
    if parent is None:
        return draw(JSON)
    how = draw(st.sampled_from(["replaced", "left out", "added"]))
    if how == "replaced":
        parent[key] = draw(JSON)
    elif how == "left out":
        del parent[key]
    elif isinstance(parent, dict):
        parent[draw(st.text(max_size=8))] = draw(JSON)
    else:
        parent.append(draw(JSON))
    return value


def refusal(value, schema):
    """What a schema says against a value; nothing where it takes it."""
    try:
        check(value, schema, "the value")
    except InputError as refused:
        return str(refused)
    return ""


def messages(names):
    return st.sampled_from(names).flatmap(lambda do: strategy(MESSAGES[do]).map(lambda said: {**said, "do": do}))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=EXAMPLES,
)
@given(st.data())
def test_any_message_is_answered_and_what_is_saved_is_found_again(desk, data):
    valid = data.draw(messages(QUICK))
    check_message(valid)
    for message in (valid, data.draw(broken(st.just(valid))), data.draw(JSON)):
        answer = posted(desk, message)
        assert answer.status in (200, 400)
        said = json.loads(answer.text)
        if answer.status == 400:
            assert list(said) == ["error"]
        if "error" in said:
            assert "\n" not in said["error"]
            assert len(said["error"]) < 2000
    saved = json.loads((desk.store.folder / "document.json").read_text()) if desk._saved["version"] else None
    if saved:
        check(saved, SAVED, "the file")
        assert saved["document"] == desk._saved["document"]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=EXAMPLES)
@given(st.data())
def test_schema_takes_what_it_describes_and_refuses_the_rest_in_a_sentence(data):
    for schema in (DOCUMENT, SAVED, RUN):
        value = data.draw(strategy(schema))
        assert refusal(value, schema) == ""
        said = refusal(data.draw(broken(st.just(value))), schema)
        assert not said or re.fullmatch(r".+; .+\.", said, re.DOTALL), said


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=EXAMPLES // 2)
@given(name=st.text(max_size=20) | st.just("a.csv"), content=st.binary(max_size=300) | st.just(b"A,Y\n1,2\n"))
def test_any_table_is_answered(desk, name, content):
    client = Client(application(desk, SECRET))
    scope_name = urlencode({"name": name}, errors="surrogatepass")
    answer = client.post("/table", content, {"x-token": SECRET}, dict([tuple(scope_name.split("=", 1))]))
    assert answer.status in (200, 400)
