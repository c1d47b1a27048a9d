"""Every face is asked the same question on the same rows, and gives the same number."""

import json

import numpy as np
import pandas as pd
import pytest

from ciplearn import Report, audit, fit_scm, group_scores, load_model
from ciplearn.causal import CausalGraph
from ciplearn.cli.app import run
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.sources.table_file import TableFile
from ciplearn.workbench.measures import Judge

GRAPH = "S -> {A X Y}, A -> X, X -> Y"
EFFORT = {"n_points": 300, "n_interventions": 60, "n_draws": 10}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faces")
    draw = np.random.default_rng(0)
    s, a = draw.normal(size=500), draw.integers(2, size=500)
    x = a + s + draw.normal(size=500)
    chance = 1 / (1 + np.exp(-(x + s - 0.5)))
    labels = np.where(draw.random(500) < chance, "yes", "no")
    pd.DataFrame({"S": s, "A": np.where(a, "f", "m"), "X": x, "Y": labels}).to_csv(folder / "t.csv", index=False)
    return folder


def asked(place, capsys, *roles):
    """Fit by the command line, and ask command line, library and workbench about the rows kept for the audit."""
    out = place / f"model{len(roles)}"
    call = ["fit", str(place / "t.csv"), "--graph", GRAPH, "--outcome=Y", "--protected=A", *roles]
    assert run([*call, "--learner=linear", "--epochs=2", "--overwrite", "--out", str(out)]) == 0
    capsys.readouterr()
    effort = [f"--points={EFFORT['n_points']}", f"--interventions={EFFORT['n_interventions']}", "--draws=10"]
    page = str(place / "r.html")
    run(["audit", str(out), str(place / "t.csv"), *effort, "--doubt=0", "--json", "--out", page])
    command = json.loads(capsys.readouterr().out)
    folder = ModelFolder.read(out)
    rows = folder.rows(folder.as_in_training(TableFile(place / "t.csv")))[0]
    rows = rows.assign(Y=rows["Y"].astype("category"))
    graph = CausalGraph.from_text(GRAPH)
    scm = fit_scm(graph, rows, None, 0)
    verdict = folder.verdict
    model = load_model(out)
    library = audit(model, scm, rows, verdict=verdict, random_state=0, inputs=folder.shown, **EFFORT)
    judge = Judge(rows.assign(Y=rows["Y"].astype(str)), verdict, scm, model.classes_, 0)
    return command, library, judge.measured(model), (model, rows, folder)


@pytest.mark.parametrize("roles", [(), ("--context=S",)])
def test_vcf_given_a_context_is_one_number(place, capsys, roles):
    command, library, workbench, _ = asked(place, capsys, *roles)
    assert command["vcf"]["context"] == list(library.vcf.context)
    assert library.vcf.value == pytest.approx(command["vcf"]["value"], rel=1e-9)
    assert workbench["vcf"]["value"] == pytest.approx(command["vcf"]["value"], rel=1e-9)
    assert library.vcf.interval == pytest.approx(command["vcf"]["interval"], rel=1e-9)


def test_what_passes_and_scores_by_group_are_one_answer(place, capsys):
    command, library, workbench, (model, rows, folder) = asked(place, capsys)
    assert library.conclusion.state == command["conclusion"]["state"] or library.floor is None
    ours = {check.asks: check.value for check in library.conclusion.checks}
    assert ours == pytest.approx({check["asks"]: check["value"] for check in command["conclusion"]["checks"]})
    assert Report.of(library).to_dict()["groups"] == [
        {**group, "model": "this model"} for group in command["groups"] if group["model"] == "this model"
    ]
    alone = group_scores(model, rows, "Y", ["A"], inputs=folder.shown).table
    shown = [group["n_rows"] for group in command["groups"] if group["model"] == "this model"]
    assert shown == alone["n_rows"].tolist() == [group["rows"] for group in workbench["groups"]]
    assert workbench["score"]["value"] == pytest.approx(command["scores"]["accuracy"])
    assert workbench["loss"]["value"] == pytest.approx(command["scores"]["log_loss"], rel=1e-6)


def test_what_was_chosen_is_one_name(place, capsys):
    _, _, _, (model, _, folder) = asked(place, capsys)
    comparison = folder.comparison
    taken = comparison.table.set_index("name").loc[comparison.chosen]
    assert taken["learner"] == "linear"
    assert (taken["strict"] and np.isinf(model.strength)) or taken["strength"] == model.strength
    assert comparison.reason == folder.training["remark"]
