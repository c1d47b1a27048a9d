"""What the pages tell people to type runs as it stands: in a folder with small tables, and with little effort."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

from ciplearn import CausalGraph, datasets
from ciplearn.cli.app import app, run
from ciplearn.scm.scm_file import read_scm
from tests.datasets.adult_sample import write_files
from tests.pages import ROOT, blocks, commands_on

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documentation is not beside the tests")

# Pages that follow the story share one folder: whoever has typed what stands on the first can go on with the others.
STORY = (
    "docs/start.md",
    "README.md",
    "docs/index.md",
    "docs/guide/verdict.md",
    "docs/guide/report.md",
    "docs/command-line.md",
)
OTHERS = ("docs/graphs.md", "docs/adult.md", "docs/scale.md")
EFFORT = {
    "fit": ("--preset", "quick", "--learner", "linear", "--epochs", "2", "--hidden", "8"),
    "audit": ("--points=20", "--interventions=4", "--draws=2", "--scm-rows=200", "--doubt=0", "--no-gate"),
    "imagine": ("--points=20", "--interventions=4", "--draws=2", "--scm-rows=200"),
}
# Programs of others, and a server: what is typed is looked at or run elsewhere.
NOT_HERE = {
    "pip": "installs from the network; a fresh clone does that before any test",
    "make": "the Makefile has the target, see below; continuous integration makes test and docs-quick",
    "ray": "a cluster of several machines",
    "ciplearn workbench": "a server that stays; tests/workbench/test_command.py starts it",
}


def typed(page):
    """The commands of a page that run here."""
    kinds = ((words, {words[0], " ".join(words[:2])}) for words in commands_on(page))
    return [words for words, names in kinds if not names & set(NOT_HERE)]


def works(words, said, *more):
    assert words[0] == "ciplearn", words
    assert run([*words[1:], *EFFORT.get(words[1], ()), *more]) == 0, f"{' '.join(words)}\n{said.readouterr().err}"


def drawn():
    """The graph that the start page tells people to save."""
    (graph,) = (block for block in blocks("docs/start.md", "text") if block.caption)
    return graph


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the table and the graph of the start page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    people = datasets.applicants().sample(200, random_state=0).round(1)
    people.to_csv("people.csv", index=False)
    people.assign(person=people.index).to_csv("new.csv", index=False)
    Path(drawn().caption).write_text(drawn().text)
    return tmp_path


def onnx_file(path):
    """A model of another library in a file: 2 · training."""
    helper = pytest.importorskip("onnx").helper
    number = pytest.importorskip("onnx").TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Add", ["training", "training"], ["income"])],
        "trees",
        [helper.make_tensor_value_info("training", number, [None, 1])],
        [helper.make_tensor_value_info("income", number, [None, 1])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(made.SerializeToString())


def other_models(folder, imagine, said):
    """What the page on the command line takes for granted: one model by name, in a file, and by its predictions."""
    (folder / "trees.py").write_text("def model(table):\n    return 2 * table['training']\n")
    onnx_file(folder / "trees.onnx")
    works(imagine, said)
    worlds = pd.read_csv("worlds.csv", dtype={"id": str})
    worlds.assign(prediction=2 * worlds["training"])[["id", "prediction"]].to_csv("predicted.csv", index=False)


def test_story_leads_to_a_model_predictions_and_reports_of_any_model(folder, capsys):
    commands = list(dict.fromkeys(tuple(words) for page in STORY for words in typed(page)))
    other_models(folder, next(words for words in commands if words[1] == "imagine"), capsys)
    printed, effects = "", set()
    for words in commands:
        works(words, capsys)
        said = capsys.readouterr().out
        if {"--predictor", "--onnx", "--predictions"} & set(words):
            effects.add(re.search(r"Largest effect.*", said)[0])
        printed += said
    assert [words[1] for words in commands[:5]] == ["check", "check", "fit", "predict", "audit"]
    assert "Ŷ ⊥ {age, hours, sex, training} | {region}" in printed
    assert "The graph is not refuted" in printed
    assert "unconstrained" in printed
    assert "<html" in Path("report.html").read_text(encoding="utf-8")
    predictions = pd.read_csv("predictions.csv")
    assert (next(iter(predictions)), len(predictions)) == ("person", 200)
    assert len(effects) == 1, "the same model in three disguises"


def test_page_on_graphs_asks_the_criterion(capsys):
    for words in typed("docs/graphs.md"):
        works(words, capsys)
    assert "Ŷ ⊥ {age, hours} | {region}" in capsys.readouterr().out


def test_options_in_the_files_of_the_page_are_those_of_the_commands(folder, capsys):
    """Each file begins with the command that reads it."""
    options, model = blocks("docs/command-line.md", "yaml")
    Path("fit.yaml").write_text(options.text)
    command = re.match(r"# fit.yaml: (ciplearn .*)", options.text)[1].split()
    works(command, capsys, "--route", "line")
    assert json.loads(Path("model/fit.json").read_text())["tolerance"] == "0.1", "what is typed beats the file"
    Path("known.yaml").write_text(model.text)
    audit = re.match(r"# known.yaml: (ciplearn .*)", model.text)[1].split()
    nodes = '"years at school" -> L, S -> A, A -> {L Y}, L -> Y'
    scm = read_scm(Path("known.yaml"), CausalGraph.from_edges(nodes), run_code=False)
    scm.sample(200, random_state=0).to_csv("people.csv", index=False)
    roles = ["--graph", nodes, "--outcome", "Y", "--protected", "A", "--out", "model", "--overwrite", "--gamma", "1"]
    works(["ciplearn", "fit", "people.csv", *roles], capsys)
    works(audit, capsys)
    assert "estimated" not in capsys.readouterr().out


@pytest.mark.slow
def test_page_on_adult_goes_from_the_raw_file_to_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    write_files(tmp_path)
    for words in typed("docs/adult.md"):
        works(words, capsys, *(["--route", "line"] if words[1] == "fit" else []))
    assert "Ŷ ⊥ {age, education, hours-per-week" in capsys.readouterr().out
    assert "<html" in Path("report.html").read_text(encoding="utf-8")


def parquet(folder):
    world = datasets.applicants()
    for name, seed in (("rows", 0), ("new", 9)):
        (folder / name).mkdir()
        for part in range(2):
            world.sample(150, random_state=seed + part).to_parquet(folder / name / f"{part}.parquet", index=False)


def test_page_on_scale_streams_files(folder, capsys):
    pytest.importorskip("pyarrow")
    parquet(folder)
    commands = [words for words in typed("docs/scale.md") if "--engine" not in words]
    assert [words[1] for words in commands] == ["fit", "predict", "audit"]
    for words in commands:
        works(words, capsys, *(["--route", "line"] if words[1] == "fit" else []))
    assert len(pd.read_parquet("predictions.parquet")) == 300


def test_recipe_for_a_cluster_names_options_that_exist():
    """It needs several machines, so that it is read and not run."""
    (recipe,) = (words for words in typed("docs/scale.md") if "--address" in words)
    known = {flag for option in typer.main.get_command(app).commands[recipe[1]].params for flag in option.opts}
    assert {word for word in recipe if word.startswith("--")} <= known


@pytest.mark.slow
def test_page_on_scale_trains_and_predicts_by_workers(folder, capsys):
    ray = pytest.importorskip("ray")
    parquet(folder)
    commands = [words for words in typed("docs/scale.md") if "--engine" in words and "--address" not in words]
    assert [words[1] for words in commands] == ["fit", "predict"]
    try:
        for words in commands:
            works([{"8": "2"}.get(word, word) for word in words], capsys)
    finally:
        ray.shutdown()
    assert np.isfinite(pd.read_parquet("predictions.parquet").to_numpy()).all()


def test_targets_and_extras_of_the_pages_exist():
    makefile, project = (ROOT / "Makefile").read_text(), (ROOT / "pyproject.toml").read_text()
    for page in ("README.md", "CONTRIBUTING.md", "docs/workbench.md", "docs/scale.md", "docs/start.md"):
        for program, *words in commands_on(page):
            if program == "make":
                assert re.search(rf"^{words[0]}:.*##", makefile, re.MULTILINE), words
            extras = re.search(r"\[(.*)\]", " ".join(words)) if program == "pip" else None
            for extra in extras[1].split(",") if extras else ():
                assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra
