import json

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.cli.app import run
from ciplearn.experiments.demo import OURS, USUAL, run_demo
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.store import Store
from tests.pages import blocks

ROWS = 2000


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo shows of linear models, which train in no time."""
    said = []
    return run_demo(tmp_path_factory.mktemp("demo") / "out", rows=ROWS, learner="linear", say=said.append), said


def test_demo_passes_its_audit_and_the_equations_agree(demo):
    agrees(demo[0])


@pytest.mark.slow
def test_demo_of_as_many_people_as_the_command_takes_passes(tmp_path):
    agrees(run_demo(tmp_path / "out"))


def test_readme_demo_and_workbench_begin_with_one_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(blocks("README.md", "python")[0].text, {})
    monkeypatch.setattr("ciplearn.experiments.demo.fitted", lambda asked: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_demo(tmp_path / "demo")
    desk = Desk(Store(tmp_path / "work"))
    desk.take_demo_table()
    told = [(tmp_path / "demo" / "people.csv").read_bytes(), desk.table.path.read_bytes()]
    desk.close()
    assert told == 2 * [(tmp_path / "people.csv").read_bytes()]


def test_demo_has_the_figures_of_the_command_on_its_folder(demo, capsys):
    table, _, model, page, _ = map(str, demo[0].files)
    assert run(["audit", model, table, "--doubt=0", "--no-gate", "--json", f"--out={page}"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["vcf"]["value"] == demo[0].report.audit.vcf.value
    assert told["conclusion"]["headline"] == demo[0].report.conclusion.headline


def agrees(found):
    conclusion = found.report.conclusion
    assert conclusion.state == "passes"
    # Sex brings 2 years of training, 6 hours and 4 thousand: 2 x 2 + 0.8 x 6 + 4.
    assert found.truth[USUAL] == pytest.approx(12.8, abs=0.3)
    assert abs(found.truth[OURS]) < next(check.limit for check in conclusion.checks if check.asks == "effect")


def test_command_prints_what_was_seen(demo, capsys, monkeypatch):
    found, said = demo

    def shown(folder, say=print, **settings):
        for line in said:
            say(line)
        return found

    monkeypatch.setattr("ciplearn.experiments.demo.run_demo", shown)
    assert run(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "What was seen" in printed
    assert "applicants.png" in printed
    assert run(["demo", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"sentences", "comparison", "audit", "verdict", "truth", "files"}
    assert all(sentence in printed for sentence in answer["sentences"])


def test_demo_says_the_figures_of_its_audit(demo):
    found, said = demo
    unit, sentences = found.report.unit, found.sentences()
    of_use, effect, _ = found.report.conclusion.checks
    assert str(ROWS) in said[1]
    assert len(sentences) == 6
    assert f"{100 * of_use.before:.1f} %" in sentences[0]
    assert unit.amount(effect.before) in sentences[0]
    assert unit.amount(effect.value, signed=True) in sentences[2]
    assert f"{100 * of_use.value:.1f} %" in sentences[3]
    assert found.report.conclusion.headline in sentences[4]
    # Whoever is denied sex is measured by the comparison.
    left_out = found.comparison.table.query("kind == 'left-out'")["effect"].min()
    assert unit.amount(left_out) in sentences[1]


def test_demo_writes_table_graph_model_report_and_picture(demo):
    found, _ = demo
    people, graph, model, page, picture = found.files
    assert found.report.unit.amount(found.report.conclusion.checks[1].value) in page.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (model / "repaired.json").is_file()
    table = pd.read_csv(people)
    assert len(table) == ROWS
    # The usual model was trained on most of these very people.
    answers = found.comparison.models[found.comparison.free].predict(table.drop(columns="income"))
    assert np.mean((answers - table["income"]) ** 2) < 17
    assert "sex -> training" in graph.read_text(encoding="utf-8")


def test_folder_that_cannot_be_made_is_named(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with pytest.raises(InputError, match="cannot be made"):
        run_demo(blocker / "out")
