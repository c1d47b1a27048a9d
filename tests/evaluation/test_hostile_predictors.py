"""A model from a module may do what it likes: the audit says in one sentence what went wrong, and keeps its rows."""

import sys

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.evaluation.any_model import Numbers, Probabilities, from_module

MODULE = """
import sys
import numpy as np

class Bad(Exception):
    def __str__(self):
        raise RuntimeError("no words")

class Model:
    classes_ = ["no", "yes"]
    def predict_proba(self, frame):
        return np.full((len(frame), 2), 0.5)

class Exits(Model):
    def predict_proba(self, frame):
        sys.exit(0)
exits = Exits()

def makes_exit():
    sys.exit(0)

class Wordless(Model):
    def predict_proba(self, frame):
        raise Bad
wordless = Wordless()

class NoMethod:
    @property
    def predict_proba(self):
        raise ValueError("not yet")
no_method = NoMethod()

class Names(Model):
    feature_names_in_ = 7
names = Names()

class Raises(Model):
    @property
    def feature_names_in_(self):
        raise ValueError("not fitted")
raises = Raises()

class Classes(Model):
    classes_ = 7
classes = Classes()

class Lists(Model):
    classes_ = [["no"], ["yes"]]
lists = Lists()

class Twice(Model):
    classes_ = ["yes", "yes"]
twice = Twice()

class More(Model):
    classes_ = ["no", "yes", "perhaps"]
more = More()

class Nested(Model):
    def predict_proba(self, frame):
        return [[0.1, [0.2]]] * len(frame)
nested = Nested()

class Nowhere(Model):
    def predict_proba(self, frame):
        return np.full((len(frame), 2), np.nan)
nowhere = Nowhere()

class Complex(Model):
    def predict_proba(self, frame):
        return np.full((len(frame), 2), 0.5 + 0.5j)
complexes = Complex()

class Array:
    def __array__(self, *args, **kwargs):
        sys.exit(3)
class Arrays(Model):
    def predict_proba(self, frame):
        return Array()
arrays = Arrays()

class Writes(Model):
    def predict_proba(self, frame):
        print("loud")
        frame["x"] = 0
        del frame["s"]
        return np.full((len(frame), 2), 0.5)
writes = Writes()

def deep(frame):
    return deep(frame)

def endless(frame):
    return np.full(len(frame), np.inf)

def imaginary(frame):
    return np.full(len(frame), 1j)
"""

ROWS = pd.DataFrame({"x": [1.0, 2.0], "s": ["u", "v"]})


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "hostile_models.py").write_text(MODULE)
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("hostile_models", None)


@pytest.mark.parametrize(
    "name",
    [
        "hostile_models:exits",
        "hostile_models:makes_exit",
        "hostile_models:wordless",
        "hostile_models:no_method",
        "hostile_models:names",
        "hostile_models:raises",
        "hostile_models:classes",
        "hostile_models:lists",
        "hostile_models:twice",
        "hostile_models:more",
        "hostile_models:nested",
        "hostile_models:nowhere",
        "hostile_models:complexes",
        "hostile_models:arrays",
        "hostile_models:deep",
        "leaving:model",
    ],
)
def test_a_hostile_classifier_ends_in_a_sentence(name):
    with pytest.raises(InputError, match=name) as said:
        Probabilities(from_module(name), ["no", "yes"]).predict_proba(ROWS)
    assert "\n" not in str(said.value)


@pytest.mark.parametrize("name", ["deep", "endless", "imaginary", "wordless"])
def test_a_hostile_regressor_ends_in_a_sentence(name):
    with pytest.raises(InputError, match=f"hostile_models:{name}") as said:
        Numbers(from_module(f"hostile_models:{name}")).predict(ROWS)
    assert "\n" not in str(said.value)


def test_what_a_model_writes_into_its_rows_or_prints_changes_nothing(capsys):
    before = ROWS.copy()
    found = Probabilities(from_module("hostile_models:writes"), ["no", "yes"]).predict_proba(ROWS)
    assert np.array_equal(found, np.full((2, 2), 0.5))
    pd.testing.assert_frame_equal(ROWS, before)
    said = capsys.readouterr()
    assert said.out == ""
    assert "loud" in said.err
