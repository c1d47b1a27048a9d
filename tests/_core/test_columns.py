"""What a column holds and how it is encoded; labels, and the loss of one."""

import enum
import math
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import ciplearn
from ciplearn._core.columns import form_groups, holds_numbers, log_losses, task_of, text_as_numbers
from ciplearn._core.encoding import CategoryColumn, NumberColumn, TableEncoding
from ciplearn._core.errors import InputError
from ciplearn.estimators.criteria import Judged
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.scores import predictive_scores


class Colour(enum.StrEnum):
    RED = "red"

    def __str__(self) -> str:
        return "Colour.RED"


def objects(*values):
    return pd.Series(values, dtype=object)


COLUMNS = {
    "text": pd.Series(["b", "a", "b", "c"]),
    "text with gaps": pd.Series(["b", None, "b", np.nan]),
    "python text": pd.Series(["b", pd.NA, "b", "a"], dtype=pd.StringDtype("python")),
    "text objects": objects("b", None, "b", np.nan, pd.NA, "nan", "None"),
    "bool beside int beside float": objects(True, 1, 1.0, "1", False, 0, 0.0, "True", None, np.nan),
    "float beside text": objects(3.0, "3", "3.0", -0.0, 0.0, 2.5, np.inf, np.nan),
    "numpy scalars": objects(np.int64(1), np.float32(1), np.float64(1), np.True_, 1, Decimal(1), Decimal("1.0")),
    "enum beside text": objects("red", Colour.RED, "Colour.RED"),
    "no instants": objects("a", pd.NaT, None, "a"),
    "tuples": objects((1, 2), (1, 2), (1.0, 2)),
    "bool": pd.Series([True, False, True]),
    "nullable bool": pd.Series([True, None, False, True], dtype="boolean"),
    "int": pd.Series([3, 1, 3], index=[7, 7, 7]),
    "nullable int": pd.Series([3, None, 2**53 + 1, 3], dtype="Int64"),
    "large int": pd.Series([2**53, 2**53 + 1, 2**53]),
    "float": pd.Series([3.0, -0.0, 0.0, 2.5, np.nan, np.inf]),
    "short float": pd.Series([3.0, -0.0, 0.1, np.nan], dtype=np.float32),
    "nullable short float": pd.Series([3.0, -0.0, 0.0, None], dtype="Float32"),
    "long float": pd.Series([3.0, -0.0, 0.0], dtype=np.longdouble),
    "category of text": pd.Series(["b", "a", None, "b"], dtype=pd.CategoricalDtype(["unused", "b", "a"])),
    "category of int": pd.Series([3, 1, 3]).astype("category"),
    "category of int with gaps": pd.Series([3, 2**53 + 1, None, 3], dtype=pd.CategoricalDtype([3, 2**53 + 1])),
    "category of float": pd.Series([3.0, 0.5, np.nan, -0.0]).astype("category"),
    "category of bool": pd.Series([True, None, False], dtype=object).astype("category"),
    "category of objects": pd.Series(pd.Categorical.from_codes([0, 1, -1, 2], categories=["1", 1, 2.0])),
    "many categories": pd.Series([f"level {i % 300}" for i in range(900)]).astype("category"),
    "empty text": pd.Series([], dtype="str"),
    "empty category": pd.Series([], dtype=pd.CategoricalDtype(["a"])),
    "empty objects": objects(),
    "gaps only": objects(None, np.nan),
}


def label(value):
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def labels_cell_by_cell(column):
    return ["\0missing" if gap else label(value) for value, gap in zip(column, column.isna(), strict=True)]


def number(text):
    return float(text) if text.strip("+-").replace(".", "", 1).isdigit() else None


def code_cell_by_cell(cell, levels):
    if cell in levels:
        return levels.index(cell)
    alike = [code for code, level in enumerate(levels) if number(level) == number(cell) is not None]
    return alike[0] if len(alike) == 1 else len(levels)


@pytest.mark.parametrize("kind", [kind for kind, column in COLUMNS.items() if not column.isna().all()])
def test_levels_are_those_of_the_cells(kind):
    column = COLUMNS[kind].rename("A")
    assert CategoryColumn.of(column).levels == tuple(sorted(set(labels_cell_by_cell(column))))


@pytest.mark.parametrize("kind", COLUMNS)
def test_codes_are_those_of_the_cells(kind):
    column = COLUMNS[kind].rename("A")
    cells = labels_cell_by_cell(column)
    # Every second level is known, so that both known and unknown ones occur.
    levels = tuple(sorted(set(cells)))[::2]
    expected = [code_cell_by_cell(cell, levels) for cell in cells]
    coded = CategoryColumn("A", levels)
    assert coded.encode(column).tolist() == expected
    inputs = np.zeros((len(column), len(levels)), dtype=np.float32)
    coded.write_features(column, inputs)
    assert inputs.tolist() == [[float(code == place) for place in range(len(levels))] for code in expected]


def test_network_inputs_stand_side_by_side_in_single_precision():
    table = pd.DataFrame({"n": [0.1, 0.7, 1 / 3], "a": ["x", "new", "y"], "m": [1e-3, 5.0, 2.0]})
    columns = (NumberColumn("n", 0.1, 0.8, 0.2), CategoryColumn("a", ("x", "y")), NumberColumn("m", 0.0, 3.0, 1.0))
    inputs = TableEncoding(columns).features(table)
    scaled_n, scaled_m = ((table["n"] - 0.1) / (0.8 - 0.1)).to_numpy(), (table["m"] / 3).to_numpy()
    expected = np.stack([scaled_n, [1, 0, 0], [0, 0, 1], scaled_m], axis=1).astype(np.float32)
    assert inputs.dtype == np.float32
    assert np.array_equal(inputs, expected)


@pytest.mark.parametrize("written", ["1", "1.0", "01", " 1", "1 ", 1, 1.0, np.int64(1), "1."])
def test_a_code_reads_the_same_however_a_program_writes_it(written):
    coded = CategoryColumn.of(pd.Series(["1", "2", "1"], name="A"))
    assert coded.encode(pd.Series([written, "2"], name="A", dtype=object)).tolist() == [0, 1]


def test_labels_that_training_told_apart_are_not_merged():
    coded = CategoryColumn.of(pd.Series(["1", "01", "2"], name="zip"))
    assert coded.levels == ("01", "1", "2")
    assert coded.encode(pd.Series(["01", "1", "1.0"], name="zip")).tolist() == [0, 1, 3]


def test_unseen_levels_are_counted_and_named():
    table = pd.DataFrame({"job": ["nurse", "pilot", "pilot", "baker"], "age": [1.0, 2.0, 3.0, 4.0]})
    encoding = TableEncoding.of(table.iloc[[0, 3]], ("job", "age"))
    assert encoding.unseen(table) == {"job": {"pilot": 2}}
    gap = table.assign(job=["nurse", None, "nurse", "baker"])
    assert encoding.unseen(gap) == {"job": {"missing": 1}}


@pytest.mark.parametrize(
    ("changed", "odd"), [({}, ()), ({"job": "pilot"}, ("job",)), ({"age": -1e4}, ("age",)), ({"job": None}, ("job",))]
)
def test_columns_that_need_a_closer_look_are_known_by_what_they_become(changed, odd):
    table = pd.DataFrame({"age": [20.0, 60.0, 40.0], "job": ["clerk", "nurse", "clerk"]})
    encoding = TableEncoding.of(table, table.columns)
    for name, value in changed.items():
        table[name] = [*table[name][:2], value]
    assert encoding.odd(encoding.features(table)).names == odd
    assert tuple({**encoding.far(table), **encoding.unseen(table)}) == odd


def test_what_was_encoded_can_be_decoded():
    table = pd.DataFrame({"job": ["nurse", "baker", None], "age": [30.0, 50.0, 20.0]})
    job, age = TableEncoding.of(table, ("job", "age")).columns
    assert job.decode(job.encode(table["job"])).tolist() == ["nurse", "baker", None]
    assert age.decode(age.encode(table["age"])).tolist() == [30.0, 50.0, 20.0]


def test_kinds_of_columns():
    numbers = [
        pd.Series([1, 2]),
        pd.Series([1.5, None]),
        pd.Series([Decimal(1), Decimal("2.5")], dtype=object),
        pd.Series([1, None], dtype="Int64"),
    ]
    labels = [
        pd.Series([True, False]),
        pd.Series(["1", "2"]),
        pd.Series([1, 2]).astype("category"),
        pd.Series([True, None], dtype="boolean"),
    ]
    assert [holds_numbers(column) for column in (*numbers, *labels)] == [True] * 4 + [False] * 4


@pytest.mark.parametrize("column", [pd.Series(pd.to_datetime(["2020-01-01"]), name="t"), pd.Series([1j], name="t")])
def test_times_and_complex_numbers_are_refused_by_name(column):
    with pytest.raises(InputError, match="Column 't' holds"):
        holds_numbers(column)


def test_text_reads_as_numbers_only_where_all_of_it_does():
    assert text_as_numbers(pd.Series(["1", None, "2.5"])).tolist()[::2] == [1.0, 2.5]
    assert text_as_numbers(pd.Series(["1", "x"])) is None


def test_text_reads_as_the_float_that_was_written():
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-500, 500).clip(-300, 300)
    for kind in (object, "str", "string"):
        written = pd.Series([*map(repr, values.tolist()), None], dtype=kind)
        assert text_as_numbers(written[:-1]).tolist() == values.tolist()
    assert text_as_numbers(pd.Series(["0.1", None])).isna().tolist() == [False, True]
    assert text_as_numbers(pd.Series(["1_000"])) is None


def test_outcome_asks_for_classes_where_it_holds_labels_or_two_values():
    classes = [pd.Series(["a", "b", "c"]), pd.Series([0.5, 2.5, 0.5]), pd.Series([True, False]), objects(1, 2, 1)]
    numbers = [pd.Series([1, 2, 3]), pd.Series([1.0, 1.0]), objects(1, 2, 3)]
    found = [task_of(outcome) for outcome in (*classes, *numbers)]
    assert found == ["classification"] * 4 + ["regression"] * 3


def test_groups_are_few_and_have_rows():
    table = pd.DataFrame({"sex": ["f", "m"] * 50, "children": [0, 1, 2, 3] * 25, "age": np.arange(100.0)})
    assert form_groups(table, ["sex"])
    assert form_groups(table, ["sex", "children"])
    assert not form_groups(table, ["sex", "age"])
    # Four groups in six rows are hardly groups.
    assert not form_groups(table[:6], ["sex", "children"])


def test_part_of_an_encoding_encodes_as_the_whole_does():
    table = pd.DataFrame({"age": [20.0, 30.0, 40.0], "job": ["a", "b", "a"], "size": [1.0, 3.0, 2.0]})
    whole = TableEncoding.of(table, table.columns)
    part = whole.only(["size", "job"])
    assert part.names == ("size", "job")
    assert np.array_equal(part.features(table), whole.features(table)[:, whole.places(["size", "job"])])
    assert part.slices == [slice(0, 1), slice(1, 3)]


def test_no_other_file_decides_what_a_column_holds():
    source = Path(ciplearn.__file__).parent
    decided = re.compile(r"is_numeric_dtype|infer_dtype|is_bool_dtype|is_object_dtype|is_string_dtype|select_dtypes")
    here = source / "_core" / "columns.py"
    assert decided.search(here.read_text())
    others = [path for path in source.rglob("*.py") if path != here]
    assert [str(path) for path in others if decided.search(path.read_text())] == []


def test_a_label_beyond_whole_numbers_is_written_as_it_was():
    assert CategoryColumn.of(pd.Series([1e300, 2.0, 1e300], name="a", dtype=object)).levels == ("1e+300", "2")


def test_losses_are_those_of_scikit_learn():
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    places = np.arange(50) % 3
    assert log_losses(table, places).mean() == pytest.approx(log_loss(places, table))


def test_impossible_and_unseen_classes_cost_the_same_in_training_and_in_an_audit():
    class Sure:
        classes_ = np.array([0, 1])

        def predict_proba(self, rows):
            return np.tile([1.0, 0.0], (len(rows), 1))

    answers = Sure().predict_proba(range(3))
    losses = Judged(np.array([0, 1, -1]), answers, np.array([0.5, 0.5]), classes=2).losses()
    np.testing.assert_allclose(losses, [0, -math.log(1e-12), -math.log(1e-12)])
    predictor = Predictor(Sure(), "predict_proba", ("x",))
    audited = predictive_scores(predictor, answers, pd.Series([0, 1, 2]))["log_loss"]
    assert audited == pytest.approx(losses.mean())
