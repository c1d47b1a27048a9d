"""The command line and the script of a stop, whatever the names are."""

import ast
import shlex

import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import InputError
from ciplearn.cli.options import split_names
from ciplearn.learners import LEARNERS
from ciplearn.workbench.document import Document
from ciplearn.workbench.protocol import RECIPE as SCHEMA
from ciplearn.workbench.recipes import Recipe, audit_line, fit_line, script, shown
from tests.workbench.graphs import HOSTILE

NAMES = [name for name in HOSTILE if len(name) < 100]
GRAPH = CausalGraph(
    directed=tuple((name, NAMES[-1]) for name in NAMES[:-1]), exposures=tuple(NAMES[:2]), outcomes=(NAMES[-1],)
)
RECIPE = Recipe()
STOP = {"name": "linear, repaired at strength 3", "model": "model", "strength": "3.0"}


def about(table="t.csv", task="regression"):
    return {"table": {"name": table}, "task": task, "epochs": 20}


def test_shell_reads_hostile_names_back():
    document = Document(GRAPH, kinds={NAMES[1]: "category"})
    words = fit_line(document, RECIPE, "a table; rm -rf.csv")
    again = shlex.split(shown(words))
    assert again == words
    options = dict(word[2:].split("=", 1) for word in again[3:])
    assert set(split_names(options["protected"])) == set(NAMES[:2])
    assert split_names(options["categories"]) == (NAMES[1],)
    assert CausalGraph.from_text(options["graph"]) == GRAPH


def test_role_of_no_columns_is_named():
    words = fit_line(Document(GRAPH, context=()), RECIPE, "t.csv")
    options = dict(word[2:].split("=", 1) for word in words[3:])
    assert split_names(options["context"]) == ()
    assert len(split_names(options["inputs"])) == len(NAMES) - 1


@pytest.mark.parametrize(
    ("asked", "fit", "audit"),
    [
        ({"goal": "limits"}, [], []),
        ({"goal": "limits", "amount": 2}, ["--max-effect=2"], ["--max-effect=2"]),
        ({"goal": "vcf", "amount": 0.05, "learner": "linear"}, ["--vcf=0.05", "--learner=linear"], []),
        ({"goal": "strict"}, ["--strict"], []),
        ({"goal": "tolerance", "amount": 0.1, "learner": "linear"}, ["--tolerance=0.1"], []),
    ],
)
def test_goal_is_asked_as_on_the_command_line(asked, fit, audit):
    recipe = Recipe.read(asked)
    words = fit_line(Document(GRAPH), recipe, "t.csv")
    options = [word for word in words if word.startswith(("--max", "--vcf", "--strict", "--tol", "--learner"))]
    assert options == fit
    assert [word for word in audit_line(recipe, "t.csv") if word.startswith("--max")] == audit
    assert Recipe.read(recipe.to_dict()) == recipe


def test_learners_are_those_of_the_library():
    assert SCHEMA["properties"]["learner"]["enum"] == ["auto", *LEARNERS]


@pytest.mark.parametrize("goal", ["limits", "vcf", "strict", "tolerance"])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_script_is_python_whatever_the_names_are(goal, task):
    recipe = Recipe(goal, 0.1)
    text = script(Document(GRAPH, kinds={NAMES[1]: "category"}), recipe, STOP, about("t'\"\n.csv", task))
    tree = ast.parse(text)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    library = {"CIPRegressor", "CIPClassifier", "compare_routes", "audit", "fit_scm", "save_model"}
    assert called <= library | {"WithinLimits", "Limits", "ShareOfVCF", "Strict", "print", "len", "float"}


@pytest.mark.parametrize(("table", "sign"), [("t.csv", None), ("t.tsv", "\t"), ("t.tsv.gz", "\t")])
def test_script_reads_a_table_by_its_separator(table, sign):
    text = script(Document(GRAPH), RECIPE, STOP, about(table))
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
        {"goal": "fly"},
        {"goal": "tolerance"},
        {"goal": "vcf", "amount": None},
        {"goal": "tolerance", "amount": "x"},
        {"goal": "tolerance", "amount": -1},
        {"goal": "limits", "preset": "endless"},
        {"goal": "limits", "learner": "endless"},
        {"goal": "limits", "seed": -1},
    ],
)
def test_what_cannot_be_trained_is_refused(asked):
    with pytest.raises(InputError):
        Recipe.read(asked)
