"""What stands at the front door: public names, seen by people, editors and type checkers alike."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ciplearn
from ciplearn import errors
from ciplearn._core import errors as own_errors

FRONT_DOOR = Path(ciplearn.__file__)
ROOT = Path(__file__).parent.parent


def test_public_names_resolve_and_are_listed():
    for name in ciplearn.__all__:
        assert getattr(ciplearn, name) is not None
    assert sorted(dir(ciplearn)) == sorted(ciplearn.__all__)
    assert {"CIPRegressor", "save_model", "load_model", "Report", "baselines", "errors"} <= set(ciplearn.__all__)
    assert ciplearn.baselines.StraightLine.__name__ in ciplearn.baselines.__all__
    with pytest.raises(AttributeError, match="no attribute 'HSICC'"):
        _ = ciplearn.HSICC


def test_imports_for_type_checkers_are_the_names_that_load_on_first_use():
    (block,) = (node for node in ast.parse(FRONT_DOOR.read_text()).body if isinstance(node, ast.If) and node.body[1:])
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    seen = {}
    for node in block.body:
        for alias in node.names:
            assert alias.asname == alias.name  # what is imported under its own name counts as exported
            seen[alias.name] = getattr(importlib.import_module(node.module), alias.name)
    assert sorted(seen) == sorted(set(ciplearn.__all__) - {"__version__"})
    assert [name for name, value in seen.items() if value is not getattr(ciplearn, name)] == []


def test_type_checker_sees_public_names_and_no_others(tmp_path):
    pytest.importorskip("mypy")
    user = tmp_path / "user.py"
    names = ", ".join(name for name in ciplearn.__all__ if name != "__version__")
    user.write_text(f"from ciplearn import {names}\nfrom ciplearn import HSICC\n")
    # What stands behind the front door is checked by mypy's own run; here it is not followed, which takes long.
    options = ["--follow-imports=skip", f"--cache-dir={tmp_path / 'cache'}", "--config-file=", "--no-error-summary"]
    command = [sys.executable, "-m", "mypy", *options, str(FRONT_DOOR), str(user)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FRONT_DOOR.parent.parent)
    (complaint,) = (found.stdout + found.stderr).splitlines()
    assert "user.py:2" in complaint
    assert 'has no attribute "HSICC"' in complaint
    assert (FRONT_DOOR.parent / "py.typed").exists()


def test_errors_are_all_public_and_nothing_else_is():
    raised = {name for name, kind in vars(own_errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}
    assert sorted(errors.__all__) == sorted(raised)
    ours = errors.CiplearnError, errors.CiplearnWarning
    assert all(issubclass(getattr(errors, name), ours) for name in errors.__all__)


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documentation is not beside the tests")
def test_pages_and_examples_import_public_names():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    imported = {
        name.strip()
        for page in pages
        for names in re.findall(r"^from ciplearn import (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        for name in names.split(",")
    }
    assert len(imported) > 10
    assert imported - set(ciplearn.__all__) == set()


def test_import_and_the_graph_half_never_load_torch():
    loaded = "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    code = f"import sys, ciplearn; ciplearn.CausalGraph; ciplearn.errors.InputError; {loaded}"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_version_is_the_one_that_the_changelog_opens_with():
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## (\S+)$", changes, re.MULTILINE).group(1) == ciplearn.__version__
