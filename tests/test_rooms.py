"""The walls between rooms: who may import whom, and what stands at the front door."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import ciplearn

SOURCE = Path(ciplearn.__file__).parent
ROOMS_ABOVE = {"display", "report", "cli", "experiments"}

# Room -> the rooms it may import. What people look at and type may import every public room.
MAY_IMPORT = {
    "_core": set(),
    "causal": {"_core"},
    "kernels": {"_core"},
    "penalties": {"_core", "kernels"},
    "learning": {"_core", "causal", "penalties"},
    "scm": {"_core", "causal"},
    "evaluation": {"_core", "causal", "kernels", "penalties", "scm"},
    "estimators": {"_core", "causal", "kernels", "penalties", "learning"},
    "baselines": {"_core", "causal", "kernels", "penalties", "learning", "estimators"},
    "datasets": {"_core", "causal", "scm"},
}
EVERY_ROOM = set(MAY_IMPORT) | ROOMS_ABOVE


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


def room_of(name):
    """The room behind a public name; a room's own name is its own."""
    return ciplearn._ROOM_OF.get(name, f"ciplearn.{name}").split(".")[1]


def test_every_room_is_in_the_table():
    assert set(rooms()) <= EVERY_ROOM
    assert {"_core", "causal", "kernels", "penalties"} <= set(rooms())


@pytest.mark.parametrize("room", rooms())
def test_room_imports_only_what_it_may(room):
    allowed = MAY_IMPORT.get(room, EVERY_ROOM) | {room}
    trespasses = [
        f"{path.relative_to(SOURCE)} imports {other}"
        for path in sorted((SOURCE / room).rglob("*.py"))
        for other in imported_rooms(path)
        if other in EVERY_ROOM | {"a relative path"} and other not in allowed
    ]
    assert trespasses == []


def test_wall_test_sees_a_trespass(tmp_path):
    path = tmp_path / "trespass.py"
    lines = ["def late():", "    from ciplearn.scm.model import x", "import ciplearn.learning.loop"]
    lines += ["from ciplearn import causal", "from ciplearn import audit", "from ..scm import y"]
    path.write_text("\n".join(lines))
    assert sorted(imported_rooms(path)) == ["a relative path", "causal", "evaluation", "learning", "scm"]


def test_public_names_resolve_and_are_listed():
    for name in ciplearn.__all__:
        assert getattr(ciplearn, name) is not None
    assert sorted(dir(ciplearn)) == sorted(ciplearn.__all__)
    with pytest.raises(AttributeError, match="no attribute 'HSICC'"):
        _ = ciplearn.HSICC


@pytest.mark.parametrize("room", ["causal", "kernels", "penalties"])
def test_room_lists_its_names_in_order(room):
    module = importlib.import_module(f"ciplearn.{room}")
    assert list(module.__all__) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_import_and_the_graph_half_never_load_torch():
    code = "import sys, ciplearn; ciplearn.CausalGraph; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_file_is_longer_than_400_lines():
    files = [*SOURCE.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]
    long = [str(path) for path in files if len(path.read_text().splitlines()) > 400]
    assert long == []
