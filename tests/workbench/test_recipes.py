"""The command line and the script of a stop, whatever the names are."""

import ast
import shlex

import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import InputError
from ciplearn.cli.options import split_names
from ciplearn.workbench.document import Document
from ciplearn.workbench.recipes import Recipe, command_line, script, shown
from tests.workbench.graphs import HOSTILE

NAMES = [name for name in HOSTILE if len(name) < 100]
GRAPH = CausalGraph(
    directed=tuple((name, NAMES[-1]) for name in NAMES[:-1]), exposures=tuple(NAMES[:2]), outcomes=(NAMES[-1],)
)
RECIPE = Recipe(("independence",), 0.1)


def test_shell_reads_hostile_names_back():
    document = Document(GRAPH, kinds={NAMES[1]: "category"})
    words = command_line(document, RECIPE, 0.3, 20, "a table; rm -rf.csv", "model")
    again = shlex.split(shown(words))
    assert again == words
    options = dict(word[2:].split("=", 1) for word in again[3:])
    assert set(split_names(options["protected"])) == set(NAMES[:2])
    assert split_names(options["categories"]) == (NAMES[1],)
    assert CausalGraph.from_text(options["graph"]) == GRAPH


def test_role_of_no_columns_is_named():
    words = command_line(Document(GRAPH, context=()), RECIPE, 0.3, 20, "t.csv", "model")
    options = dict(word[2:].split("=", 1) for word in words[3:])
    assert split_names(options["context"]) == ()
    assert len(split_names(options["inputs"])) == len(NAMES) - 1


@pytest.mark.parametrize("route", ["independence", "counterfactual"])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_script_is_python_whatever_the_names_are(route, task):
    stop = {"route": route, "gamma": 0.3}
    text = script(Document(GRAPH, kinds={NAMES[1]: "category"}), RECIPE, stop, 20, "t'\"\n.csv", task)
    tree = ast.parse(text)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert called <= {"CIPRegressor", "CIPClassifier", "audit", "fit_scm", "save_model", "print", "len"}


@pytest.mark.parametrize(("table", "sign"), [("t.csv", None), ("t.tsv", "\t"), ("t.tsv.gz", "\t")])
def test_script_reads_a_table_by_its_separator(table, sign):
    text = script(Document(GRAPH), RECIPE, {"route": "independence", "gamma": 0.3}, 20, table, "regression")
    (read,) = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "read_csv"
    ]
    given = {word.arg: ast.literal_eval(word.value) for word in read.keywords}
    assert given.get("sep") == sign


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"routes": ["independence"], "tolerance": "x"},
        {"routes": ["independence"], "tolerance": -1},
        {"routes": ["fly"], "tolerance": 0.1},
        {"routes": ["cf1"], "tolerance": 0.1},
        {"routes": ["independence"], "tolerance": 0.1, "preset": "endless"},
        {"routes": ["independence"], "tolerance": 0.1, "seed": -1},
    ],
)
def test_what_cannot_be_trained_is_refused(asked):
    with pytest.raises(InputError):
        Recipe.read(asked)
