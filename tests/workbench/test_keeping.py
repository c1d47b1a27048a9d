"""What a kept stop leaves: a model folder that predicts, a report, and a script that does the same."""

import base64
import io
import subprocess
import sys
import zipfile

import pytest

from ciplearn.cli.app import run as command
from ciplearn.repairing import load_model
from tests.workbench.test_runs import ASKED, chosen, desk_with_table, rows, wait

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["limits", "tolerance"])
def walked(tmp_path_factory, request):
    desk = desk_with_table(tmp_path_factory.mktemp("walked"))
    amount = 0.2 if request.param == "tolerance" else None
    name = desk.answer({**ASKED, "goal": request.param, "amount": amount})["run"]["name"]
    run = wait(desk, name, lambda run: run["status"] != "running", 900)
    assert run["status"] == "done", run["phase"]
    yield desk, run
    desk.close()


def stops(run):
    """The chosen stop, one that its knob is turned to, and one of another path."""
    path = [stop for stop in run["stops"] if stop["path"] == chosen(run)["path"] and stop is not chosen(run)]
    others = [stop for stop in run["stops"] if stop["path"] != chosen(run)["path"] and stop["model"]]
    return chosen(run), path[2], others[-1]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_kept_stop_gives_a_model_folder_that_predicts_and_a_report(walked, tmp_path, place, monkeypatch):
    desk, run = walked
    stop = stops(run)[place]
    desk.answer({"do": "keep", "run": run["name"], "stop": stop["key"]})
    kept = wait(desk, run["name"], lambda run: run["kept"][stop["key"]]["status"] != "running", 400)["kept"]
    assert kept[stop["key"]]["status"] == "done", kept
    asked = {"do": "download", "run": run["name"], "stop": stop["key"]}
    report = base64.b64decode(desk.answer({**asked, "what": "report"})["base64"]).decode()
    assert report.lstrip().lower().startswith("<!doctype html>")
    packed = base64.b64decode(desk.answer({**asked, "what": "model"})["base64"])
    zipfile.ZipFile(io.BytesIO(packed)).extractall(tmp_path)
    model = load_model(tmp_path / "model")
    if stop["strength"] is not None:
        assert model.strength == float(stop["strength"])
    monkeypatch.chdir(tmp_path)
    rows(30).to_csv("new.csv", index=False)
    assert command(["predict", "model", "new.csv", "--out=said.csv"]) == 0
    assert len((tmp_path / "said.csv").read_text().splitlines()) == 31


@pytest.mark.parametrize("place", [0, 1, 2])
def test_script_trains_saves_and_audits(walked, tmp_path, place):
    desk, run = walked
    stop = stops(run)[place]
    asked = {"do": "download", "run": run["name"], "stop": stop["key"], "what": "script"}
    (tmp_path / "train.py").write_text(desk.answer(asked)["text"].replace(f"epochs={run['epochs']}", "epochs=5"))
    rows().to_csv(tmp_path / "people.csv", index=False)
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "VCF" in done.stdout
    model = load_model(tmp_path / "model")
    if stop["strength"] is not None:
        assert model.strength == float(stop["strength"])
