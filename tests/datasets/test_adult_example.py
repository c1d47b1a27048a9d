"""The user's own path on raw files: graph file, configuration, command and script, on made-up rows."""

import json
import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

from ciplearn import CausalGraph
from ciplearn.cli.app import run
from ciplearn.datasets import graphs
from ciplearn.datasets.adult import COLUMNS
from tests.datasets.adult_sample import write_files

EXAMPLE = Path(__file__).parents[2] / "examples" / "adult"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("adult"))


def test_the_graph_file_is_the_graph_of_the_data_set():
    assert CausalGraph.from_file(EXAMPLE / "graph.txt") == graphs.adult_columns()


def test_the_verdict_conditions_on_race_and_country_and_names_its_assumption():
    verdict = graphs.adult_columns().criterion()
    assert verdict.holds
    assert verdict.independence.given == ("native-country", "race")
    assert set(verdict.independence.right) == {
        "age",
        "sex",
        "marital-status",
        "education",
        "workclass",
        "occupation",
        "hours-per-week",
    }
    assert any(sentence.startswith("Overlap, on which the certificate rests") for sentence in verdict.assumptions)


@pytest.mark.parametrize(
    ("context", "holds"),
    [
        ((), True),
        (("marital-status",), True),
        (("marital-status", "education"), True),
        (("education",), False),
        (("workclass", "occupation", "hours-per-week"), False),
    ],
    ids=str,
)
def test_a_context_has_to_hold_the_causes_that_age_and_sex_act_on(context, holds):
    verdict = graphs.adult_columns().criterion(context=["race", "native-country", *context])
    assert verdict.holds == holds
    assert set(verdict.independence.right) == {"age", "sex", *context}


def test_the_command_reads_the_raw_file_with_the_configuration(folder, tmp_path, capsys):
    arguments = ["--graph", str(EXAMPLE / "graph.txt"), "--config", str(EXAMPLE / "fit.yaml"), "--out", str(tmp_path)]
    assert run(["fit", str(folder / "adult.data"), *arguments, "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rows"] == 400
    assert said["dropped"] > 0
    kinds = {column["name"]: column["kind"] for column in said["columns"]}
    assert kinds["age"] == "number"
    assert kinds["occupation"] == "category"
    assert "fnlwgt" in said["ignored"]
    columns = (EXAMPLE / "fit.yaml").read_text().split("columns: ")[1].splitlines()[0]
    assert tuple(columns.split(",")) == COLUMNS


@pytest.mark.slow
def test_the_script_goes_from_the_files_to_an_audit(folder, monkeypatch, capsys):
    script = EXAMPLE / "fit_and_audit.py"
    assert len(script.read_text().splitlines()) <= 60
    monkeypatch.setattr(sys, "argv", [str(script), str(folder)])
    with warnings.catch_warnings():
        # On few rows every gamma may be within the tolerance, and the search says so.
        warnings.filterwarnings("ignore", message=".*gamma", category=UserWarning)
        runpy.run_path(str(script), run_name="__main__")
    said = capsys.readouterr().out
    assert said.startswith("Holds:")
    assert "Largest gamma that costs at most two points of accuracy" in said
    assert "H_r is a latent law learned with hours-per-week, occupation, workclass" in said
    assert said.count("VCF = ") == 2
    accuracies = [float(found) for found in re.findall(r"predictor has accuracy ([\d.]+)", said)]
    assert len(accuracies) == 2
    assert min(accuracies) > 0.5
