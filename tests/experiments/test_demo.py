import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.experiments.demo import OURS, USUAL, run_demo
from ciplearn.learners import LEARNERS

ROWS = 2000


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo shows without networks, which take longest to train."""
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ciplearn.experiments.demo.LEARNERS", {name: LEARNERS[name] for name in ("boosted", "linear")})
        return run_demo(tmp_path_factory.mktemp("demo") / "out", rows=ROWS, say=said.append), said


def test_demo_passes_its_audit_and_the_equations_agree(demo):
    agrees(demo[0])


@pytest.mark.slow
def test_demo_of_as_many_people_as_the_command_takes_passes(tmp_path):
    agrees(run_demo(tmp_path / "out"))


def agrees(found):
    conclusion = found.report.conclusion
    assert conclusion.state == "passes"
    # Sex brings 2 years of training, 6 hours and 4 thousand: 2 x 2 + 0.8 x 6 + 4.
    assert found.truth[USUAL] == pytest.approx(12.8, abs=0.3)
    assert abs(found.truth[OURS]) < next(check.limit for check in conclusion.checks if check.asks == "effect")


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


def test_demo_writes_report_picture_tables_and_graph(demo):
    found, _ = demo
    page, picture, compared, people, graph = found.files
    assert found.report.unit.amount(found.report.conclusion.checks[1].value) in page.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert found.comparison.chosen in set(pd.read_csv(compared)["name"])
    table = pd.read_csv(people)
    assert len(table) == ROWS
    # The usual model was trained on these very people.
    answers = found.comparison.models[found.comparison.free].predict(table.drop(columns="income"))
    assert np.mean((answers - table["income"]) ** 2) < 17
    assert "sex" in graph.read_text(encoding="utf-8")


def test_folder_that_cannot_be_made_is_named(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with pytest.raises(InputError, match="cannot be made"):
        run_demo(blocker / "out")
