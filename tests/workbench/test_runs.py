"""Training, watched and cancelled; stops that are walked and kept; a server that is killed and started again."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph
from ciplearn.cli.app import run as command
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.document import Document
from ciplearn.workbench.runs import Job
from ciplearn.workbench.stops import load_stop
from ciplearn.workbench.store import Store

GRAPH = CausalGraph.from_dagitty("dag { Z -> {A L Y} A [exposure] Y [outcome] A -> L -> Y A -> Y }")
DOCUMENT = Document(GRAPH).to_dict()
ASKED = {"do": "train", "document": DOCUMENT, "goal": "limits", "learner": "linear"}


def rows(n=240):
    chance = np.random.default_rng(0)
    z = chance.normal(size=n)
    a = z + chance.normal(size=n)
    middle = a + chance.normal(size=n)
    return pd.DataFrame({"Z": z, "A": a, "L": middle, "Y": z + a + middle + 0.3 * chance.normal(size=n)})


def desk_with_table(folder):
    desk = Desk(Store(folder))
    desk.answer({"do": "table", "name": "people.csv", "content": rows().to_csv(index=False).encode()})
    return desk


def chosen(run):
    return next(stop for stop in run["stops"] if stop["key"] == run["chosen"])


def wait(desk, name, until, seconds=150):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run = desk.runs.known.get(name)
        if run is None or until(run):
            return run
        time.sleep(0.05)
    raise AssertionError(f"nothing happened: {desk.runs.known.get(name)}")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A desk with a finished run, and what was told on the way."""
    desk = desk_with_table(tmp_path_factory.mktemp("trained"))
    told = []
    desk.subscribe(told.append)
    name = desk.answer(ASKED)["run"]["name"]
    run = wait(desk, name, lambda run: run["status"] != "running")
    assert run["status"] == "done", run["phase"]
    yield desk, run, told
    desk.close()


@pytest.mark.slow
def test_stops_are_the_candidates_of_fit_and_the_chosen_one_is_fit_s(trained, tmp_path, monkeypatch, capsys):
    desk, run, _ = trained
    monkeypatch.chdir(tmp_path)
    rows().to_csv("people.csv", index=False)
    typed = desk.runs._text(run, chosen(run), "command").partition("\nciplearn audit")[0]
    assert command([*shlex.split(typed)[1:], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    candidates = told["comparison"]["candidates"]
    assert [stop["name"] for stop in run["stops"]] == [one["name"] for one in candidates]
    for key in ("loss", "score", "vcf", "relative", "effect", "moved"):
        assert [stop[key] for stop in run["stops"]] == pytest.approx([one[key] for one in candidates], rel=1e-9)
    assert chosen(run)["name"] == told["comparison"]["chosen"]
    assert run["reason"] == told["comparison"]["reason"]
    assert run["audit"]["vcf"]["value"] == pytest.approx(told["audit"]["vcf"]["value"], rel=1e-9)
    assert run["audit"]["conclusion"]["headline"] == told["audit"]["conclusion"]["headline"]


def test_knob_is_turned_along_the_chosen_path_without_another_training(trained):
    desk, run, _ = trained
    folder = desk.store.run_folder(run["name"])
    path = [stop for stop in run["stops"] if stop["path"] == chosen(run)["path"]]
    assert len(path) == 16
    assert {stop["model"] for stop in path} == {"model"}
    assert [float(stop["strength"]) for stop in path] == sorted(float(stop["strength"]) for stop in path)
    fitted = ModelFolder.read(folder / "model").model
    table = rows(20)
    for stop in path[::5]:
        expected = fitted.at(float(stop["strength"])).predict(table)
        assert load_stop(folder, stop).predict(table).tolist() == expected.tolist()
    assert not np.allclose(load_stop(folder, path[0]).predict(table), load_stop(folder, path[-1]).predict(table))
    spread = [stop["vcf"] for stop in path]
    assert spread[-1] < 0.2 * spread[0]


def test_progress_was_told_step_by_step_and_without_paths(trained):
    desk, _, told = trained
    events = [event["run"] for event in told if event["event"] == "run"]
    assert len({event["done"] for event in events}) > 2
    assert all(0 <= event["done"] <= event["total"] for event in events)
    assert "comparing routes" in {event["phase"] for event in events}
    assert str(desk.store.folder) not in json.dumps(told)


def test_reloaded_page_and_restarted_server_find_the_run(trained, tmp_path):
    desk, run, _ = trained
    shutil.copytree(desk.store.folder, tmp_path / "work")
    again = Desk(Store(tmp_path / "work")).answer({"do": "hello"})
    assert [(known["name"], known["status"], len(known["stops"])) for known in again["runs"]] == [
        (run["name"], "done", len(run["stops"]))
    ]


def test_command_names_the_strength_of_a_stop_and_the_script_every_stop(trained):
    desk, run, _ = trained
    turned = next(stop for stop in run["stops"] if stop["model"] == "model" and stop is not chosen(run))
    asked = {"do": "download", "run": run["name"], "stop": turned["key"]}
    text = desk.answer({**asked, "what": "command"})["text"]
    assert text.startswith("ciplearn fit people.csv ")
    assert f"--strength={turned['strength']}" in text
    own = desk.answer({**asked, "stop": run["chosen"], "what": "command"})["text"]
    assert "ciplearn audit model people.csv" in own
    assert "--strength" not in own
    other = next(stop for stop in run["stops"] if stop["model"] != "model")
    refused = desk.answer({**asked, "stop": other["key"], "what": "command"})
    assert "takes the best stop for the goal, not this one" in refused["error"]
    for stop in (turned, other):
        compile(desk.answer({**asked, "stop": stop["key"], "what": "script"})["text"], "train.py", "exec")


def test_stop_that_is_not_kept_has_no_model_to_download(trained):
    desk, run, _ = trained
    answer = desk.answer({"do": "download", "run": run["name"], "stop": run["stops"][1]["key"], "what": "model"})
    assert "not kept" in answer["error"]


def test_what_if_moves_descendants_and_both_models(trained):
    desk, run, _ = trained
    asked = {"run": run["name"], "stop": run["chosen"]}
    found = desk.answer({"do": "rows", **asked})
    row = min(found["rows"], key=lambda entry: abs(entry["values"]["A"]))
    spreads = [entry["vcf"] for entry in found["rows"]]
    assert spreads == sorted(spreads, reverse=True)
    same = desk.answer({"do": "imagine", **asked, "row": row["row"], "values": {"A": row["values"]["A"]}})
    assert same["after"] == pytest.approx(same["before"])
    moved = desk.answer({"do": "imagine", **asked, "row": row["row"], "values": {"A": row["values"]["A"] + 1}})
    assert moved["imagined"]["Z"] == pytest.approx(moved["observed"]["Z"])
    assert moved["imagined"]["L"] - moved["observed"]["L"] == pytest.approx(1, abs=0.5)
    change = {key: abs(moved["after"][key] - moved["before"][key]) for key in ("kept", "free")}
    assert change["kept"] < 0.6 * change["free"], change


@pytest.mark.parametrize(
    ("row", "values"), [("none", {"A": 1}), (None, {}), ("0", {"A": "x"}), ("0", {"B": 1}), ("0", {"A": float("nan")})]
)
def test_what_if_refuses_what_it_cannot_imagine(trained, row, values):
    desk, run, _ = trained
    known = desk.answer({"do": "rows", "run": run["name"], "stop": run["chosen"]})["rows"][0]["row"]
    asked = {"do": "imagine", "run": run["name"], "stop": run["chosen"], "values": values}
    assert list(desk.answer({**asked, "row": known if row == "0" else row})) == ["error"]


# ---------------------------------------------------------------- endings


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_cancelled_training_leaves_no_process_and_no_file(tmp_path):
    desk = desk_with_table(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    name = desk.answer(ASKED)["run"]["name"]
    assert "Another training" in desk.answer(ASKED)["error"]
    pid = desk.runs._job._process.pid
    wait(desk, name, lambda run: run["done"])
    assert desk.answer({"do": "cancel", "run": name}) == {"cancelled": name}
    assert gone(pid)
    assert sorted(tmp_path.rglob("*")) == before
    assert desk.answer({"do": "hello"})["runs"] == []


def test_killed_server_takes_its_worker_along_and_the_next_says_so(tmp_path):
    desk = desk_with_table(tmp_path)
    desk.close()
    code = (
        "import json, sys, time\n"
        "from pathlib import Path\n"
        "from ciplearn.workbench.desk import Desk\n"
        "from ciplearn.workbench.store import Store\n"
        "desk = Desk(Store(Path(sys.argv[1])))\n"
        "name = desk.answer(json.loads(sys.argv[2]))['run']['name']\n"
        "while not desk.runs.known[name]['done']: time.sleep(0.05)\n"
        "print(desk.runs._job._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), json.dumps(ASKED)], stdout=subprocess.PIPE, text=True
    )
    with server:
        pid = int(server.stdout.readline())
        server.kill()
    end = time.monotonic() + 20
    while not gone(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert gone(pid)
    hello = Desk(Store(tmp_path)).answer({"do": "hello"})
    assert "interrupted" in hello["interrupted"]
    assert hello["runs"] == []
    assert list((tmp_path / "runs").iterdir()) == []
    assert desk.table.shown == "people.csv"


def test_training_that_cannot_start_says_why_and_leaves_nothing(desk):
    assert "no table" in desk.answer(ASKED)["error"]
    desk.answer({"do": "table", "name": "t.csv", "content": b"A,Y\n1,2\n3,4\n"})
    assert "no column 'L'" in desk.answer(ASKED)["error"]
    other = Document(CausalGraph.from_dagitty("dag { A [exposure] Y [outcome] A -> Y }")).to_dict()
    assert "at least 60" in desk.answer({**ASKED, "document": other})["error"]
    assert list(desk.store.runs.iterdir()) == []


def test_worker_is_ended_while_what_it_said_waits_to_be_written_down(tmp_path):
    lock, heard = threading.Lock(), []

    def told(event):
        with lock:
            heard.append(event)

    with lock:
        job = Job(tmp_path, told)
        job.kill()
        assert (job.alive, heard) == (False, [])
    job.end()
    assert heard[-1]["ended"]
