"""What a kept stop leaves: a model folder that predicts, a report, and a script that does the same."""

import base64
import io
import subprocess
import sys
import zipfile

import pytest

from ciplearn.saving import load_model
from tests.workbench.test_runs import ASKED, desk_with_table, rows, wait

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    desk = desk_with_table(tmp_path_factory.mktemp("walked"))
    name = desk.answer({**ASKED, "routes": ["independence", "counterfactual"]})["run"]["name"]
    run = wait(desk, name, lambda run: run["status"] != "running", 400)
    assert run["status"] == "done", run["phase"]
    yield desk, run
    desk.close()


def test_counterfactual_route_shares_the_stop_without_a_penalty(walked):
    _, run = walked
    assert [stop["route"] for stop in run["stops"]].count("counterfactual") == len(run["stops"]) - 6
    assert [stop["gamma"] for stop in run["stops"]].count(0.0) == 1
    assert run["stops"][-1]["vcf"]["value"] < 0.3 * run["stops"][0]["vcf"]["value"]


@pytest.mark.parametrize("route", ["independence", "counterfactual"])
def test_kept_stop_gives_a_model_folder_and_a_report(walked, tmp_path, route):
    desk, run = walked
    stop = [stop for stop in run["stops"] if stop["route"] == route][3]
    desk.answer({"do": "keep", "run": run["name"], "stop": stop["key"]})
    kept = wait(desk, run["name"], lambda run: run["kept"][stop["key"]]["status"] != "running", 400)["kept"]
    assert kept[stop["key"]]["status"] == "done", kept
    asked = {"do": "download", "run": run["name"], "stop": stop["key"]}
    report = base64.b64decode(desk.answer({**asked, "what": "report"})["base64"]).decode()
    assert report.lstrip().lower().startswith("<!doctype html>")
    packed = base64.b64decode(desk.answer({**asked, "what": "model"})["base64"])
    zipfile.ZipFile(io.BytesIO(packed)).extractall(tmp_path)
    assert load_model(tmp_path / "model").gamma_ == stop["gamma"]
    assert (tmp_path / "model" / "training.json").exists() == (route == "independence")


@pytest.mark.parametrize("route", ["independence", "counterfactual"])
def test_script_trains_saves_and_audits(walked, tmp_path, route):
    desk, run = walked
    stop = [stop for stop in run["stops"] if stop["route"] == route][2]
    asked = {"do": "download", "run": run["name"], "stop": stop["key"], "what": "script"}
    (tmp_path / "train.py").write_text(desk.answer(asked)["text"])
    rows().to_csv(tmp_path / "people.csv", index=False)
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "VCF" in done.stdout
    assert load_model(tmp_path / "model").gamma_ == stop["gamma"]
