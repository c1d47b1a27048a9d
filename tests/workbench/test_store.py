"""The folder of the work: nothing is read or written outside."""

import json
import stat
from pathlib import Path

import pytest

from ciplearn._core.errors import InputError
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.store import InUseError, Store, default_folder

TABLE = b"A,Y\n1,2\n3,4\n"


@pytest.mark.parametrize(
    "name", ["../x", "..", "a/b", "/etc/passwd", "0" * 15, "0" * 16 + "/..", "0" * 16 + "\n", "", None, 3]
)
def test_name_from_outside_is_no_run_and_no_table(tmp_path, name):
    store = Store(tmp_path / "work")
    with pytest.raises(InputError, match="There is no run"):
        store.run_folder(name)
    with pytest.raises(InputError, match="There is no table"):
        store.table_path(str(name))
    with pytest.raises(InputError, match="There is no table"):
        store.table_path(f"{name}.csv")


@pytest.mark.parametrize(
    "shown", ["../../evil.csv", "/etc/cron.d/evil.csv", "..\\..\\evil.csv", "<b>.csv", "x\0.csv", "evil.csv"]
)
def test_uploaded_name_never_becomes_a_path(tmp_path, shown):
    desk = Desk(Store(tmp_path / "work"))
    answer = desk.answer({"do": "table", "name": shown, "content": TABLE})
    assert "error" not in answer
    inside = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.is_relative_to(tmp_path / "work") for path in inside)
    assert [path.suffix for path in (tmp_path / "work" / "tables").iterdir()] == [".csv"]
    assert "/" not in answer["table"]["name"]
    assert "\\" not in answer["table"]["name"]


@pytest.mark.parametrize(
    ("shown", "content"), [("evil.py", TABLE), ("none.csv", b""), ("odd.parquet", b"PAR1"), ("x", TABLE)]
)
def test_what_is_no_table_is_refused_in_words_and_leaves_nothing(tmp_path, shown, content):
    desk = Desk(Store(tmp_path / "work"))
    answer = desk.answer({"do": "table", "name": shown, "content": content})
    assert list(answer) == ["error"]
    assert str(tmp_path) not in answer["error"]
    assert list((tmp_path / "work" / "tables").iterdir()) == []


def test_folder_that_begins_with_a_tilde_and_names_nobody_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store(Path("~0nobody"))
    assert store.folder == tmp_path.resolve() / "~0nobody"
    store.close()


def test_uploaded_table_is_found_again_after_a_restart(tmp_path):
    first = Desk(Store(tmp_path / "work"))
    first.answer({"do": "table", "name": "people.csv", "content": TABLE})
    first.close()
    second = Desk(Store(tmp_path / "work"))
    assert second.answer({"do": "hello"})["table"] == {"name": "people.csv"}
    described = second.answer({"do": "describe", "document": {"graph": {"nodes": ["A", "Z"]}}})
    assert described["rows"] == 2
    assert described["without_column"] == ["Z"]


def test_page_that_leads_to_the_server_is_for_its_owner_only(tmp_path):
    store = Store(tmp_path / "work")
    page = store.serving('http://127.0.0.1:1/?token=a"><script>', 1)
    assert "<script>" not in page.read_text()
    for path in (page, tmp_path / "work" / "server.json", tmp_path / "work" / "lock"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700


def test_folder_is_held_by_one_workbench_which_the_second_names(tmp_path):
    first = Store(tmp_path / "work")
    with pytest.raises(InUseError, match="in a notebook, or has just begun"):
        Store(tmp_path / "work")
    first.serving("http://127.0.0.1:1/?token=abc", 1)
    with pytest.raises(InUseError, match=r"open already, at http://127\.0\.0\.1:1/\?token=abc; go there"):
        Store(tmp_path / "work")
    Store(tmp_path / "other").close()
    first.close()
    Store(tmp_path / "work").close()


def test_damaged_file_is_an_empty_drawing_and_not_an_end(tmp_path):
    store = Store(tmp_path / "work")
    (store.folder / "document.json").write_text("{half")
    assert Desk(store).answer({"do": "hello"})["document"]["graph"]["nodes"] == []


def test_saved_file_is_whole_json(tmp_path):
    desk = Desk(Store(tmp_path / "work"))
    desk.answer({"do": "save", "document": {"graph": {"nodes": ["A"]}}, "version": 0})
    assert json.loads((tmp_path / "work" / "document.json").read_text())["version"] == 1


def test_same_words_find_the_same_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder("a.csv", "") == default_folder("a.csv", "")
    assert default_folder("a.csv", "") != default_folder("", "a.csv")
    assert default_folder("", "").is_relative_to(tmp_path)
