"""Every public name has an example in its docstring that runs, and stands in the reference."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import matplotlib
import pytest

import ciplearn

matplotlib.use("Agg")

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
# Commands, studies and what is behind the doorway are no names to import.
NOT_FOR_IMPORT = {"_core", "cli", "experiments"}
ROOMS = ["", *(f".{room.name}" for room in pkgutil.iter_modules(ciplearn.__path__) if room.name not in NOT_FOR_IMPORT)]


def public_names():
    """Each object once, under the first name that it has: ``ciplearn.X`` before ``ciplearn.room.X``."""
    found = {}
    for room in ROOMS:
        module = importlib.import_module(f"ciplearn{room}")
        for name in module.__all__:
            found.setdefault(id(getattr(module, name)), f"ciplearn{room}.{name}")
    graphs = importlib.import_module("ciplearn.datasets.graphs")
    made_here = [name for name, value in vars(graphs).items() if getattr(value, "__module__", "") == graphs.__name__]
    return [*found.values(), *(f"{graphs.__name__}.{name}" for name in made_here)]


def _constants(module):
    """Public names that carry no docstring of their own, and are listed by hand."""
    values = {name: getattr(module, name) for name in module.__all__ if not name.startswith("_")}
    return [
        name
        for name, value in values.items()
        if not (inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value))
    ]


def resolved(name):
    room, _, last = name.rpartition(".")
    return getattr(importlib.import_module(room), last)


# Modules, unions and constants have no docstring of their own that Python would keep.
NAMES = [name for name in public_names() if inspect.isclass(resolved(name)) or inspect.isfunction(resolved(name))]


@pytest.mark.parametrize("name", NAMES)
def test_example_runs(name):
    thing = resolved(name)
    assert ">>>" in (vars(thing).get("__doc__") or thing.__doc__), f"{name} has no example of its own."
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(thing), {}, name, None, 0)
    said = []
    doctest.DocTestRunner().run(example, out=said.append)
    assert not said, "".join(said)


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside the tests")
def test_reference_lists_every_public_name():
    module, listed = "", set()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if named := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = named[1]
        elif entry := re.fullmatch(r"   (\w+)", line):
            listed.add(f"{module}.{entry[1]}")
    assert set(NAMES) == listed
    constants = [name for room in ROOMS for name in _constants(importlib.import_module(f"ciplearn{room}"))]
    assert [name for name in constants if not re.search(rf"`(?:[\w.]+\.)?{name}`", PAGE.read_text())] == []
