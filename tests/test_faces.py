"""Every face is asked the same question on the same rows, and gives the same number."""

import contextlib
import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ciplearn import Report, audit, fit_scm, group_scores, load_model
from ciplearn.causal import CausalGraph
from ciplearn.cli.app import run
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.sources.table_file import TableFile
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.document import Document
from ciplearn.workbench.store import Store
from tests.workbench.conftest import warm_workers  # noqa: F401
from tests.workbench.test_runs import chosen, wait

GRAPH = "S -> {A X Y}, A -> X, X -> Y"
# What ciplearn fit asks about the rows that it keeps for the audit.
EFFORT = {"n_points": 500, "n_interventions": 100, "n_draws": 10}


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


@pytest.fixture(scope="module", params=[None, ("S",)], ids=["whole row", "given S"])
def answers(place, request):
    """Fit by the command line and by the workbench; ask command line, library and workbench about the same rows."""
    context = request.param
    roles = [] if context is None else [f"--context={','.join(context)}"]
    out, page = place / f"model{len(roles)}", str(place / "r.html")
    call = ["fit", str(place / "t.csv"), "--graph", GRAPH, "--outcome=Y", "--protected=A", *roles]
    assert run([*call, "--learner=linear", "--preset=quick", "--overwrite", "--out", str(out)]) == 0
    effort = [f"--points={EFFORT['n_points']}", f"--interventions={EFFORT['n_interventions']}", "--draws=10"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        run(["audit", str(out), str(place / "t.csv"), *effort, "--doubt=0", "--json", "--out", page])
    command = json.loads(said.getvalue())
    folder = ModelFolder.read(out)
    rows = folder.rows(folder.as_in_training(TableFile(place / "t.csv")))[0]
    rows = rows.assign(Y=rows["Y"].astype("category"))
    graph = CausalGraph.from_text(GRAPH)
    scm = fit_scm(graph, rows, None, 0)
    verdict = folder.verdict
    model = load_model(out)
    library = audit(model, scm, rows, verdict=verdict, random_state=0, inputs=folder.shown, **EFFORT)
    return command, library, on_the_page(place / f"work{len(roles)}", place / "t.csv", context), (model, rows, folder)


def on_the_page(folder, table, context):
    """What the workbench has come to for the same question, and has kept."""
    desk = Desk(Store(folder))
    graph = replace(CausalGraph.from_text(GRAPH), exposures=("A",), outcomes=("Y",))
    desk.answer({"do": "table", "name": "t.csv", "content": table.read_bytes()})
    asked = {"do": "train", "document": Document(graph, context).to_dict(), "goal": "limits", "learner": "linear"}
    name = desk.answer(asked)["run"]["name"]
    ran = wait(desk, name, lambda run: run["status"] != "running")
    desk.answer({"do": "keep", "run": name, "stop": ran["chosen"]})
    ran = wait(desk, name, lambda run: run["kept"].get(run["chosen"], {}).get("status") in ("done", "failed"))
    desk.close()
    assert ran["kept"][ran["chosen"]]["status"] == "done", ran
    return ran


def test_vcf_given_a_context_is_one_number(answers):
    command, library, workbench, _ = answers
    assert command["vcf"]["context"] == list(library.vcf.context) == workbench["audit"]["vcf"]["context"]
    assert library.vcf.value == pytest.approx(command["vcf"]["value"], rel=1e-9)
    assert workbench["audit"]["vcf"]["value"] == pytest.approx(command["vcf"]["value"], rel=1e-9)
    assert library.vcf.interval == pytest.approx(command["vcf"]["interval"], rel=1e-9)
    assert workbench["audit"]["vcf"]["interval"] == pytest.approx(command["vcf"]["interval"], rel=1e-9)


def test_what_passes_and_scores_by_group_are_one_answer(answers):
    command, library, workbench, (model, rows, folder) = answers
    assert library.conclusion.state == command["conclusion"]["state"] or library.floor is None
    assert workbench["audit"]["conclusion"] == command["conclusion"]
    ours = {check.asks: check.value for check in library.conclusion.checks}
    assert ours == pytest.approx({check["asks"]: check["value"] for check in command["conclusion"]["checks"]})
    assert Report.of(library).to_dict()["groups"] == [
        {**group, "model": "this model"} for group in command["groups"] if group["model"] == "this model"
    ]
    alone = group_scores(model, rows, "Y", ["A"], inputs=folder.shown).table
    shown = [group["n_rows"] for group in command["groups"] if group["model"] == "this model"]
    assert shown == alone["n_rows"].tolist()
    kept = workbench["kept"][workbench["chosen"]]["audit"]
    assert kept["groups"] == command["groups"]
    assert kept["scores"] == workbench["audit"]["scores"] == command["scores"]


def test_what_was_chosen_is_one_name(answers):
    _, _, workbench, (model, _, folder) = answers
    comparison = folder.comparison
    taken = comparison.table.set_index("name").loc[comparison.chosen]
    assert taken["learner"] == "linear"
    assert (taken["strict"] and np.isinf(model.strength)) or taken["strength"] == model.strength
    assert comparison.reason == folder.training["remark"] == workbench["reason"]
    assert comparison.chosen == chosen(workbench)["name"]
    assert [stop["name"] for stop in workbench["stops"]] == comparison.table["name"].tolist()
    for key in ("loss", "score", "vcf", "relative", "effect", "moved"):
        stops = [stop[key] for stop in workbench["stops"]]
        assert stops == pytest.approx(comparison.table[key].tolist(), rel=1e-9), key
