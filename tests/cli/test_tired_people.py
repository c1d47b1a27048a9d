"""Tables, graphs and roles as tired people pass them: one sentence, exit code 2, and nothing half-written."""

import zipfile

import numpy as np
import pandas as pd
import pytest

from ciplearn.cli.app import run

GRAPH = "region -> {age income}, sex -> {hours income}, age -> {hours income}, hours -> income"
ROLES = ["--outcome=income", "--protected=sex"]
TABLE = "{table}"
EFFORT = ["--preset=quick", "--points=5", "--interventions=3", "--draws=2"]

# Each writes to x, whatever its ending.
COMMANDS = {
    "fit": ["fit", TABLE, "--graph", GRAPH, *ROLES, "--gamma=1", "--epochs=1", "--no-compare", "--out=x"],
    "predict": ["predict", "model", TABLE, "--out=x.csv"],
    "audit": ["audit", "model", TABLE, "--out=x.html", "--no-gate", *EFFORT],
    "check": ["check", GRAPH, *ROLES, "--data", TABLE, "--tests=1", "--svg=x.svg"],
    "imagine": ["imagine", TABLE, "--graph", GRAPH, *ROLES, "--out=x.csv", *EFFORT],
}
# Newer versions of pandas count the cells of a line that has too many.
COUNTED, UNCOUNTED = "line 62 has 7 cells, and those above have 6", "row 61 has more cells than the 6 of the first line"
TOO_MANY_CELLS = COUNTED if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else UNCOUNTED
ALL, READING_ALL = tuple(COMMANDS), ("fit", "check", "imagine")


def people(n=60):
    draw = np.random.default_rng(0)
    region, sex = draw.choice(["coast", "inland"], n), draw.choice(["f", "m"], n)
    age = draw.integers(20, 70, n)
    hours = np.round(35 + 5 * (sex == "m") + 3 * draw.normal(size=n), 1)
    income = np.round(0.8 * hours + 2 * (region == "coast") + 2 * draw.normal(size=n), 2)
    who = [f"p{place}" for place in range(n)]
    return pd.DataFrame({"region": region, "sex": sex, "age": age, "hours": hours, "income": income, "who": who})


def text(change=lambda table: table, **written):
    """Return the bytes of a CSV file."""
    encoding = written.pop("encoding", "utf-8")
    return lambda: change(people()).to_csv(index=False, **written).encode(encoding)


def workbook():
    from io import BytesIO

    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return content.getvalue()


NO_COLUMN = "The graph has the node 'hours', which is no column of the table (did you mean 'Hours'); rename one of them"
LACKS = "lacks the column 'hours', which the model was trained with; add it, or rename one of region, sex, age, Hours"
NUMBERS = "Column 'hours' of t.csv held numbers in training, got"
MOSTLY = "Column 'hours' holds mostly numbers, but also cells like"
NAMES = "in 60 rows: it looks like free text or an identifier; leave it out of the graph"

# What is wrong -> the file, and for some commands a part of what is said.
TABLES = {
    "wrong column name": (
        text(lambda t: t.rename(columns={"hours": "Hours"})),
        {("fit", "check", "imagine"): NO_COLUMN, ("predict", "audit"): LACKS},
    ),
    "text where numbers belong": (
        text(lambda t: t.assign(hours=[*t["hours"][:-1], "40h"])),
        {READING_ALL: MOSTLY, ("predict", "audit"): f"{NUMBERS} '40h' in row 60; correct it, or leave the cell empty"},
    ),
    "missing values everywhere": (
        text(lambda t: t.mask(t.notna())),
        {
            ("fit", "imagine"): "Only 0 of 60 rows have a value in each of",
            ("audit",): "has 0 rows without a missing value, and an audit needs 20; pass more rows",
            ("check",): "has the same value, or none, in all rows",
        },
    ),
    "a constant label": (
        text(lambda t: t.assign(sex="f", hours=t["hours"] + 0.05)),
        {
            ("fit", "imagine"): "The protected sex has the same value in all 60 rows",
            ("audit",): "Column 'sex' holds the one label 'f' in all 60 rows",
        },
    ),
    "three rows": (
        text(lambda t: t.head(3)),
        {
            ("fit", "imagine"): "has 3 rows, and fitting needs 10; pass more rows",
            ("audit",): "has 3 rows without a missing value, and an audit needs 20; pass more rows",
            ("check",): "needs at least 20 rows, got 3; pass more rows",
        },
    ),
    "an empty file": (lambda: b"", {ALL: "t.csv is empty; pass a table with a header and rows"}),
    "empty lines": (lambda: b"\n\n\n", {ALL: "t.csv is empty; pass a table with a header and rows"}),
    "a header only": (
        text(lambda t: t.head(0)),
        {("fit", "predict", "check", "imagine"): "has no rows; pass", ("audit",): "has 0 rows"},
    ),
    "a binary file": (lambda: bytes(range(256)) * 40, {ALL: "is not UTF-8 text; save the table as UTF-8 or Parquet"}),
    "semicolons": (text(sep=";"), {ALL: "has the single column 'region;sex;age;hours;income;who'; pass --separator"}),
    "UTF-16": (text(encoding="utf-16"), {ALL: "is UTF-16 text; save it as UTF-8"}),
    "another code page": (
        text(lambda t: t.replace("coast", "Küste"), encoding="latin-1"),
        {ALL: "is not UTF-8 text; save the table as UTF-8"},
    ),
    "a workbook": (workbook, {ALL: "is an Excel file or another archive; in the spreadsheet, save it as CSV UTF-8"}),
    "an old workbook": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 9, {ALL: "is an old Excel file; in the"}),
    "a duplicate header": (
        text(lambda t: t.rename(columns={"who": "hours"})),
        {ALL: "has several columns named 'hours'; rename all but one of them"},
    ),
    "no header": (
        text(header=False),
        {
            READING_ALL: "where that line holds no names, give them with --columns NAME,NAME,...",
            ("predict", "audit"): "lacks the column",
        },
    ),
    "mixed types": (
        text(lambda t: t.assign(age=[place if place % 3 else "x" for place in range(60)])),
        {READING_ALL: "Column 'age' holds mostly numbers", ("predict", "audit"): "got 'x' in row 1"},
    ),
    "thousands": (
        text(lambda t: t.assign(hours=[f"{1000 * hours:,.0f}" for hours in t["hours"]])),
        {READING_ALL: "correct these (a number has a decimal point and no other sign)", ("predict", "audit"): NUMBERS},
    ),
    "dates": (
        text(lambda t: t.assign(age=pd.date_range("2020-01-01", periods=60))),
        {
            READING_ALL: "Column 'age' holds dates such as '2020-01-01'; put numbers in their place",
            ("predict", "audit"): "got '2020-01-01' in row 1",
        },
    ),
    "days as people write them": (
        text(lambda t: t.assign(age=pd.date_range("2020-01-01", periods=60).strftime("%d.%m.%Y"))),
        {READING_ALL: "Column 'age' holds dates such as '01.01.2020'", ("predict", "audit"): "got '01.01.2020'"},
    ),
    "an identifier as an input": (
        text(lambda t: t.assign(region=t["who"])),
        {READING_ALL: f"60 different texts such as 'p0' {NAMES}", ("audit",): f"60 different labels {NAMES}"},
    ),
    "a quotation mark without an end": (
        lambda: text()().replace(b"inland", b'"inland', 1),
        {ALL: "a quotation mark opens in line 2 and is never closed; correct that line"},
    ),
    "a line of too many cells": (
        lambda: text()() + b"1,2,3,4,5,6,7\n",
        {ALL: TOO_MANY_CELLS},
    ),
    "an outcome that never varies": (
        text(lambda t: t.assign(income=1)),
        {("fit", "imagine"): "The outcome 'income' has the same value in all rows, so there is nothing to learn; pass"},
    ),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tired")
    people().to_csv(folder / "good.csv", index=False)
    call = [part.replace(TABLE, str(folder / "good.csv")) for part in COMMANDS["fit"][:-1]]
    assert run([*call, f"--out={folder / 'model'}"]) == 0
    return folder


@pytest.fixture
def place(model, tmp_path, monkeypatch, capsys):
    (tmp_path / "model").symlink_to(model / "model")
    (tmp_path / "good.csv").symlink_to(model / "good.csv")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    return tmp_path


def refusal(capsys, place, arguments):
    """What is said in one sentence, and that nothing else was done."""
    before = sorted(place.rglob("*"))
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("ciplearn: ")
    assert said.count("\n") == 1
    assert sorted(place.rglob("*")) == before
    return said


@pytest.mark.parametrize(
    ("name", "command"), [(name, each) for name, (_, said) in TABLES.items() for some in said for each in some]
)
def test_table(name, command, place, capsys):
    written, expected = TABLES[name]
    (place / "t.csv").write_bytes(written())
    arguments = [part.replace(TABLE, "t.csv") for part in COMMANDS[command]]
    words = next(words for some, words in expected.items() if command in some)
    assert words in refusal(capsys, place, arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_folder_as_a_table(command, place, capsys):
    (place / "t.csv").mkdir()
    said = refusal(capsys, place, [part.replace(TABLE, "t.csv") for part in COMMANDS[command]])
    assert "t.csv is a folder" in said


@pytest.mark.parametrize("command", ["fit", "check", "imagine"])
def test_decimal_commas_are_not_taken_for_text(command, place, capsys):
    (place / "t.csv").write_bytes(text(sep=";", decimal=",")())
    arguments = [part.replace(TABLE, "t.csv") for part in COMMANDS[command]]
    said = refusal(capsys, place, [*arguments, "--separator=;"])
    assert "'hours' holds mostly numbers, but also cells like" in said
    assert "a number has a decimal point" in said


@pytest.mark.parametrize("column", ["hours", "age"])
@pytest.mark.parametrize("command", COMMANDS)
def test_number_that_never_varies_does_no_harm(command, column, place, recwarn):
    people().assign(**{column: 40}).to_csv("t.csv", index=False)
    assert run([part.replace(TABLE, "t.csv") for part in COMMANDS[command]]) == 0
    assert not [warning for warning in recwarn if issubclass(warning.category, RuntimeWarning)]


def test_text_is_taken_as_categories_where_it_is_confirmed(place):
    people().assign(region=lambda t: t["who"]).to_csv("t.csv", index=False)
    call = [part.replace(TABLE, "t.csv") for part in COMMANDS["fit"]]
    assert run([*call, "--dry-run", "--categories=region"]) == 0


def test_number_that_never_varies_is_named(place, capsys):
    people().assign(hours=40).to_csv("t.csv", index=False)
    assert run([*(part.replace(TABLE, "t.csv") for part in COMMANDS["fit"]), "--dry-run"]) == 0
    assert "The same in all rows, so nothing can be learnt from it: hours." in capsys.readouterr().out


GRAPHS = {
    "a cycle": (["sex -> hours -> sex, hours -> income"], "has no directed cycle, but hours → sex → hours"),
    "a node that is no column": (["sex -> hours -> income, pay -> income"], "The graph has the node 'pay'"),
    "a node that causes itself": (["sex -> income, sex -> sex"], "'sex' was found; remove it"),
    "a table as a graph": (["good.csv"], "good.csv is a table, not a graph; pass a graph file, or edges"),
    "no text": ([""], "'' is neither a file nor a graph; give a path, or edges such as 'A -> B'"),
    "no file": (["nothing.txt"], "'nothing.txt' is neither a file nor a graph"),
    "the outcome as protected": ([GRAPH, "--protected=income"], "protected names the outcome 'income'"),
    "a protected column that is none": ([GRAPH, "--protected=sxe"], "did you mean 'sex'?"),
    "an outcome that is none": ([GRAPH, "--outcome=incme"], "did you mean 'income'?"),
    "the outcome as an input": ([GRAPH, "--inputs=income"], "inputs names the outcome 'income'"),
    "a context that is none": ([GRAPH, "--context=job"], "context names 'job', which is not in the graph"),
}


@pytest.mark.parametrize("command", ["fit", "check", "imagine"])
@pytest.mark.parametrize("name", GRAPHS)
def test_graph_and_roles(name, command, place, capsys):
    (graph, *more), words = GRAPHS[name]
    arguments = [part.replace(TABLE, "good.csv") for part in COMMANDS[command] if part != GRAPH]
    if command == "check":
        arguments = [arguments[0], graph, *arguments[1:]]
    else:
        arguments.insert(arguments.index("--graph") + 1, graph)
    assert words in refusal(capsys, place, [*arguments, *more])
