"""The way of a data scientist with a table and a graph: fit, predict, audit."""

import json
import signal
import subprocess
import time

import pandas as pd

from tests import warm
from tests.cli.conftest import QUICK
from tests.cli.installed import ciplearn
from tests.cli.people import GRAPH, people


def test_three_commands_from_a_table_to_a_report(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "graph.txt").write_text(GRAPH)
    roles = ["--graph", "graph.txt", "--protected", "sex", "--tolerance", "0.3"]
    fitted = warm.ciplearn("fit", "people.csv", *roles, *QUICK, "--out=model", cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    assert "600 rows; 20 left out because a value is missing" in fitted.stdout
    assert "Not in the graph, so not used: id." in fitted.stdout
    words = "a prediction that tells nothing about education, hours, job and sex among rows with the same race would"
    assert words in fitted.stdout
    # A note, and now and then progress where the machine is slow.
    said = [line for line in fitted.stderr.splitlines() if not line.startswith("ciplearn: choosing gamma")]
    assert len(said) <= 1, "quiet when piped"

    predicted = ciplearn("predict", "model", "people.csv", "--id=id", "--out=p.csv", "--json", cwd=tmp_path)
    assert predicted.returncode == 0, predicted.stderr
    assert json.loads(predicted.stdout) == {
        "rows": 600,
        "without_prediction": 20,
        "unseen_labels": [],
        "far_numbers": [],
        "impossible_numbers": [],
        "file": "p.csv",
    }
    answers = pd.read_csv(tmp_path / "p.csv")
    assert list(answers.columns) == ["id", "prediction", "probability[<=50K]", "probability[>50K]"]
    assert list(answers["id"]) == list(people()["id"])
    truth = people()["income"][answers["prediction"].notna()]
    assert (answers["prediction"].dropna() == truth).mean() > 0.6

    effort = ["--points=40", "--interventions=10", "--draws=4", "--scm-rows=300", "--doubt=0", "--no-gate"]
    audited = warm.ciplearn("audit", "model", "people.csv", "--out=report.html", "--json", *effort, cwd=tmp_path)
    assert audited.returncode == 0, audited.stderr
    answer = json.loads(audited.stdout)
    assert answer["model_based"] is True
    assert 0 <= answer["vcf"]["interval"][0] <= answer["vcf"]["value"]
    assert {group["group"] for group in answer["groups"]} == {"Female", "Male"}
    assert len(answer["trials"]) >= 3
    assert answer["conclusion"]["state"] in ("passes", "fails", "useless", "cannot be told")
    chosen = next(one for one in answer["candidates"] if one["chosen"])
    assert (chosen["vcf"], chosen["loss"]) == (answer["vcf"]["value"], answer["scores"]["log_loss"])
    assert all(trial["vcf"] >= 0 for trial in answer["trials"])
    page = (tmp_path / "report.html").read_text()
    assert "rows of the training table that training never saw" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "graph.txt",
        "model",
        "p.csv",
        "people.csv",
        "report.html",
    ]


def test_interrupt_leaves_nothing_half_written(tmp_path):
    people(2000).to_csv(tmp_path / "people.csv", index=False)
    arguments = ["fit", "people.csv", "--graph", GRAPH, "--epochs=100000", "--gamma=1", "--out=model"]
    running = subprocess.Popen(
        [warm.command(), *arguments],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell runs in the background ignores Ctrl-C, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # The working folder appears when training starts.
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".ciplearn-*")) and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=60)
    assert running.returncode == 130
    assert complaint == "ciplearn: interrupted.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_completion_and_help_with_examples(monkeypatch):
    # Else the shell is guessed, which is sh where make runs the tests.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = ciplearn("--show-completion", "bash")
    assert "ciplearn" in shown.stdout
    for name in ("demo", "check", "fit", "predict", "audit"):
        examples = warm.ciplearn(name, "--help").stdout.split("For example:")[1]
        assert f"ciplearn {name} " in examples
        told = examples.split("\n\n")[0].split("\n")
        assert all(line.split()[0] == "ciplearn" for line in told if line.strip()), "each on one line of 80 columns"


def test_help_of_fit_begins_with_the_roles_and_the_goal():
    shown = warm.ciplearn("fit", "--help").stdout
    places = [shown.index(text) for text in ("What is predicted.", "\nGoal:", "\nRun:")]
    assert places == sorted(places)
    everything = warm.ciplearn("fit", "--help-all").stdout
    assert all(text in everything for text in ("\nGoal:", "\nRoute", "\nThe table:", "\nRun:"))
