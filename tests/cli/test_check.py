import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import CiplearnError
from ciplearn.cli import app as application
from ciplearn.cli.app import run

CONFOUNDED = "S -> {A L Y}, A -> L -> Y, A -> Y"


def test_verdict_that_holds_ends_in_0_and_prints_its_independence(capsys):
    assert run(["check", CONFOUNDED, "--outcome", "Y", "--protected", "A", "--context", "L,S"]) == 0
    assert capsys.readouterr().out.startswith(
        "Holds: a prediction that tells nothing about A and L among rows with the same S"
    )


def test_verdict_that_does_not_hold_ends_in_1_with_its_reasons(capsys):
    code = run(["check", CONFOUNDED, "--outcome=Y", "--protected=A", "--inputs=A, L", "--adjustment="])
    assert code == 0
    code = run(["check", "H -> A -> Y", "--outcome=Y", "--protected=A", "--context=A", "--inputs=A,H", "--adjustment="])
    assert code == 1
    assert "✗ A ← H → Ŷ is open: H is not adjusted for" in capsys.readouterr().out


def test_json_holds_the_whole_verdict(capsys):
    assert run(["check", CONFOUNDED, "--outcome", "Y", "--protected", "A", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["independence"]["right"] == ["A", "L"]
    assert content["adjustment"] == ["S"]


def test_graph_may_be_a_file_in_any_notation_with_roles(tmp_path, capsys):
    path = tmp_path / "model.txt"
    path.write_text("dag { A [exposure] Y [outcome] A -> Y }")
    assert run(["check", str(path)]) == 0
    assert "Ŷ ⊥ {A}" in capsys.readouterr().out


def test_uncertain_graph_is_judged_over_its_class(capsys):
    code = run(
        ["check", "pdag { A -- M ; A -> Y ; M -> Y }", "--outcome=Y", "--protected=A", "--context=A", "--adjustment="]
    )
    assert code == 1
    assert "the edge A − M decides" in capsys.readouterr().out


def test_name_with_a_comma_is_one_name(capsys):
    assert run(["check", '"a, b" -> Y', "--outcome", "Y", "--protected", "a, b"]) == 0
    assert "{a, b}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nothing.txt", "--outcome", "Y"], "neither a file nor a graph"),
        (["check", "A -> ", "--outcome", "Y", "--protected", "A"], "line 1, column 6"),
        (["check", "years at school -> Y", "--outcome", "Y", "--protected", "years"], "quote names that hold spaces"),
        (["check", "Age -> Y", "--outcome", "Y", "--protected", "Aeg"], "did you mean 'Age'?"),
        (["check", "A -> Y", "--protected", "A"], "needs one outcome"),
        (["check", "A -> Y", "--outcome", "Y"], "Nothing is protected"),
        (["check", "A -> B -> A", "--outcome", "B", "--protected", "A"], "no directed cycle"),
        (["check", "A -> Y", "--outcome", "Y", "--protected", "A", "--inputs", "Y"], "would see what it predicts"),
        (["check", "A -> Y", "--outcome", "Y", "--protected", "\nA"], "is no list of names"),
        (["check"], "Missing argument"),
        (["check", "A -> Y", "--outcom", "Y"], "No such option"),
        (["chek"], "No such command"),
    ],
)
def test_mistake_ends_in_2_with_one_line(arguments, message, capsys):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_any_error_of_the_library_ends_in_2_with_one_line(monkeypatch, capsys):
    def fails(*arguments, **options):
        raise CiplearnError("Something\nis wrong.")

    monkeypatch.setattr(application, "app", fails)
    assert run(["check"]) == 2
    assert capsys.readouterr().err == "ciplearn: Something is wrong.\n"


def test_help_is_shown_without_a_command(capsys):
    assert run([]) == 0
    assert "check" in capsys.readouterr().out


def test_terminal_gets_headings(monkeypatch, capsys):
    monkeypatch.setattr("ciplearn.cli.check.is_terminal", lambda: True)
    assert run(["check", "A -> Y", "--outcome", "Y", "--protected", "A"]) == 0
    out = capsys.readouterr().out
    assert "Holds:" in out
    assert "Reasons" in out


def test_check_starts_without_the_heavy_libraries():
    program = (
        "import sys; from ciplearn.cli.app import run;"
        "run(['check', 'A -> Y', '--outcome', 'Y', '--protected', 'A']); run(['check', '--help']);"
        "print(sorted({'torch', 'numpy', 'pandas', 'networkx', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")


@pytest.fixture
def people(tmp_path):
    draw = np.random.default_rng(0)
    s = draw.normal(size=250)
    a = s + draw.normal(size=250) > 0
    y = s + a + draw.normal(size=250)
    path = tmp_path / "people.csv"
    pd.DataFrame({"S": s, "A": np.where(a, "u", "v"), "Y": y, "Z": y + draw.normal(size=250), "id": 1}).to_csv(path)
    return str(path)


def test_data_that_refute_the_graph_end_in_1_and_name_the_statement(people, capsys):
    assert run(["check", "S -> A, S -> Y -> Z", "--data", people]) == 1
    out = capsys.readouterr().out
    assert "The graph is refuted at the 5% level by Y ⊥ {A} | {S}" in out
    assert "detectable" in out


def test_data_that_do_not_refute_the_graph_end_in_0_after_the_verdict(people, capsys):
    arguments = ["check", "S -> {A Y}, A -> Y -> Z", "--outcome", "Y", "--protected", "A", "--data", people, "--json"]
    assert run(arguments) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["holds"] is True
    assert content["falsification"]["refuted"] is False
    assert [test["statement"] for test in content["falsification"]["tests"]] == ["Z ⊥ {S} | {Y}", "Z ⊥ {A} | {Y}"]


def test_a_table_without_a_node_is_a_mistake(people, capsys):
    assert run(["check", "S -> B", "--data", people]) == 2
    assert "has the node 'B', which is no column of the table" in capsys.readouterr().err


def test_what_is_left_untested_is_said(people, capsys):
    # Whether the first test, which always runs, refutes the graph is not the question here.
    assert run(["check", "S -> A, S -> Y -> Z", "--data", people, "--tests", "1"]) in (0, 1)
    assert "left untested" in capsys.readouterr().out


def test_what_the_table_contradicts_is_drawn(tmp_path, capsys):
    draw = np.random.default_rng(0)
    a = draw.normal(size=200)
    table, picture = tmp_path / "t.csv", tmp_path / "g.svg"
    pd.DataFrame({"A": a, "B": a + draw.normal(size=200)}).to_csv(table, index=False)
    (tmp_path / "g.txt").write_text("A; B")
    assert run(["check", str(tmp_path / "g.txt"), "--data", str(table), "--svg", str(picture)]) == 1
    assert "refuted at the 5% level by B ⊥ {A}" in capsys.readouterr().out
    assert 'class="refuted"' in picture.read_text()
    assert run(["check", str(tmp_path / "g.txt"), "--data", str(table), "--svg", str(table)]) == 2
    assert "is what this command reads" in capsys.readouterr().err
    assert run(["check", "A -> B", "--outcome=B", "--protected=A", "--svg", str(picture)]) in (0, 1)
    assert 'class="refuted"' not in picture.read_text()


def test_tiers_are_a_graph_on_the_command_line(capsys):
    assert run(["check", "sex, age | job | income", "--outcome", "income", "--protected", "sex"]) == 0
    assert "sex" in capsys.readouterr().out
    assert run(["check", "a, b | c -> d", "--outcome", "c", "--protected", "a"]) == 2
    assert "stands in a line of tiers" in capsys.readouterr().err
