"""The walls between rooms: who may import whom."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import ciplearn

SOURCE = Path(ciplearn.__file__).parent
ARCHITECTURE = Path(__file__).parent.parent / "ARCHITECTURE.md"
needs_the_table = pytest.mark.skipif(
    not ARCHITECTURE.exists(), reason="the page on architecture is not beside the tests"
)

# A graph is asked whether data refute it; the answer is made upstairs, and imported when it is asked for.
THE_ONE_IMPORT_UPWARDS = "causal/graph.py imports doubt"


def may_import():
    """Room -> the rooms it may import, as the table of the page on architecture has it."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)
    allowed = {}
    for room, words in rows:
        named = set(re.findall(r"`(\w+)`", words.partition(";")[0]))
        if words == "every room":
            named = {name for name, _ in rows}
        elif words.startswith("all above but"):
            named = set(allowed) - named
        allowed[room] = named
    return allowed


def rooms():
    return sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists())


def imported_rooms(path):
    """Rooms of ciplearn that a file imports, wherever in the file the import stands, by the front door too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield "a relative path"
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "ciplearn":
            parts = node.module.split(".")
            names = [alias.name for alias in node.names]
            yield from [parts[1]] if len(parts) > 1 else [room_of(name) for name in names]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("ciplearn."))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ciplearn":
            yield room_of(node.attr)


def room_of(name):
    """The room behind a public name; a room's own name is its own."""
    return ciplearn._ROOM_OF.get(name, f"ciplearn.{name}").split(".")[1]


@needs_the_table
def test_every_room_is_in_the_table_and_the_scientific_walls_stand():
    table = may_import()
    assert sorted(table) == rooms()
    assert table["_core"] == set()
    assert table["scm"] == {"_core", "causal", "kernels"}
    assert table["baselines"] == {"_core", "causal", "kernels", "penalties", "learning", "estimators"}
    assert table["learning"].isdisjoint({"scm", "evaluation"})
    assert "learning" not in table["evaluation"]


@needs_the_table
@pytest.mark.parametrize("room", rooms())
def test_room_imports_only_what_it_may(room):
    table = may_import()
    trespasses = [
        f"{path.relative_to(SOURCE)} imports {other}"
        for path in sorted((SOURCE / room).rglob("*.py"))
        for other in imported_rooms(path)
        if other in {*table, "a relative path"} and other not in table[room] | {room}
    ]
    assert [found for found in trespasses if found != THE_ONE_IMPORT_UPWARDS] == []


@needs_the_table
def test_walk_of_a_row_passes_at_most_20_files_and_every_file_named_is_there():
    page = ARCHITECTURE.read_text(encoding="utf-8")
    assert len(re.findall(r"^\d+\. `[\w/]+\.py`", page, re.MULTILINE)) == 20
    named = re.findall(r"`([a-z_]+/[\w/]+\.py)`", page)
    assert [name for name in named if not ((SOURCE / name).exists() or name == "tests/test_rooms.py")] == []


def test_library_never_imports_what_lies_beside_it():
    beside = re.compile(r"^\s*(?:from|import) (?:reproduction|benchmarks|tests)\b", re.MULTILINE)
    assert [str(path) for path in SOURCE.rglob("*.py") if beside.search(path.read_text())] == []


def test_wall_test_sees_a_trespass(tmp_path):
    path = tmp_path / "trespass.py"
    lines = ["def late():", "    from ciplearn.scm.model import x", "import ciplearn.learning.loop"]
    lines += ["from ciplearn import causal", "from ciplearn import audit", "from ..scm import y"]
    lines += ["import ciplearn", "ciplearn.HSCIC()", "print(ciplearn.__version__)"]
    path.write_text("\n".join(lines))
    found = set(imported_rooms(path)) & {*rooms(), "a relative path"}
    assert found == {"a relative path", "causal", "evaluation", "learning", "penalties", "scm"}


@pytest.mark.parametrize("room", rooms())
def test_room_has_every_name_that_it_lists(room):
    module = importlib.import_module(f"ciplearn.{room}")
    listed = getattr(module, "__all__", [])
    assert len(set(listed)) == len(listed)
    assert [name for name in listed if not hasattr(module, name)] == []


def test_no_file_is_longer_than_400_lines():
    files = [*SOURCE.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]
    long = [str(path) for path in files if len(path.read_text().splitlines()) > 400]
    assert long == []
