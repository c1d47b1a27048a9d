"""The frame that every reproduction runs in, tried with a study that costs nothing."""

import json
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from ciplearn._core.errors import InputError
from reproduction import Claim, Comparison, Findings, Study, Unmatched, fingerprints, registry
from reproduction.__main__ import main
from reproduction.first_case import FIRST
from reproduction.page import assemble
from reproduction.runner import _settings, judge, measure, reproduce
from reproduction.runtime import RuntimeSettings


@dataclass(frozen=True)
class Settings:
    rows: int = 3


class Counter:
    """A study's measurement that counts how often it is asked, and may be interrupted."""

    def __init__(self):
        self.calls = 0
        self.conditions = None
        self.interrupted = False

    def __call__(self, settings, conditions):
        self.calls += 1
        self.conditions = conditions
        conditions.file("half", settings).write_text("done")
        if self.interrupted:
            raise KeyboardInterrupt
        return {"numbers": pd.DataFrame({"x": np.random.default_rng(conditions.seed).random(settings.rows)})}


def judged(tables, settings):
    """What is said of the numbers: how many there are, and much that never changes."""
    figure = Figure()
    figure.subplots().plot([0, 1])
    return Findings(
        comparisons=(Comparison("A | B", pd.DataFrame({"γ": ["0.5"], "paper": ["1 ± 1"], "ours": ["2 | 2"]})),),
        claims=(
            Claim("x rises", "Spearman 1.00 (at least 0.9)", holds=True, method="default", value=np.float64(1)),
            Claim("y rises", "Spearman undefined", holds=np.bool_(False), value=float("nan")),
        ),
        figure=figure,
        caption="A line",
        unmatched=(Unmatched("MSE", "1", "2", "another scale"),),
        notes=(f"{len(tables['numbers'])} numbers of {settings.rows} asked for.", "Second."),
    )


@pytest.fixture
def counter():
    return Counter()


@pytest.fixture
def study(counter):
    presets = {"quick": Settings(), "paper": Settings(rows=5)}
    return Study("toy", "A toy", presets, counter, judged, paper={"MSE": 1.0})


@pytest.fixture
def registered(study, monkeypatch):
    monkeypatch.setattr(registry, "SYNTHETIC", {"toy": "toy_module"})
    monkeypatch.setattr(registry, "_load", lambda module: study)
    return study


def test_result_says_that_its_time_is_not_the_whole_time(study, counter, tmp_path):
    counter.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        reproduce(study, "quick", tmp_path, device="cpu")
    counter.interrupted = False
    (kept,) = reproduce(study, "quick", tmp_path, device="cpu")["reused"]
    assert kept.startswith("half-")
    assert "beside what an earlier run had kept" in (tmp_path / "toy" / "result.md").read_text()
    assert reproduce(study, "quick", tmp_path, seed=1, device="cpu")["reused"] == []
    assert "beside" not in (tmp_path / "toy" / "result.md").read_text()


def test_everything_is_written_and_says_what_it_is(study, tmp_path):
    result = reproduce(study, "quick", tmp_path, seed=4, device="cpu", n_jobs=2)
    folder = tmp_path / "toy"
    assert json.loads((folder / "result.json").read_text()) == result
    written = {"measured.json", "result.json", "result.md", "figure.png", "numbers.csv"}
    assert {path.name for path in folder.iterdir()} == written
    assert result["settings"] == {"rows": 3}
    assert result["seed"] == 4
    assert {"ciplearn", "python", "torch"} <= set(result["versions"])
    assert result["claims"][0]["holds"] is True
    assert result["claims"][1] == {
        "claim": "y rises",
        "statistic": "Spearman undefined",
        "holds": False,
        "method": "",
        "value": None,
    }
    assert len(pd.read_csv(folder / "numbers.csv")) == 3
    assert (folder / "figure.png").stat().st_size < 200_000
    text = (folder / "result.md").read_text()
    assert "| 0.5 | 1 ± 1 | 2 \\| 2 |" in text
    assert "**does not hold**" in text
    assert "* 3 numbers of 3 asked for.\n* Second.\n" in text


def test_finished_study_is_not_run_again_unless_something_differs(study, counter, tmp_path):
    first = reproduce(study, "quick", tmp_path, device="cpu")
    assert reproduce(study, "quick", tmp_path, device="cpu") == first
    assert counter.calls == 1
    reproduce(study, "quick", tmp_path, device="cpu", seed=1)
    reproduce(study, "paper", tmp_path, device="cpu", seed=1)
    assert counter.calls == 3


def test_changed_code_makes_old_results_old(study, counter, tmp_path, monkeypatch):
    reproduce(study, "quick", tmp_path, device="cpu")
    before = counter.conditions.file("x", Settings())
    assert before == counter.conditions.file("x", Settings())
    assert before != counter.conditions.file("x", Settings(rows=4))
    monkeypatch.setattr(fingerprints, "_code", lambda places: "other")
    assert before != counter.conditions.file("x", Settings())
    reproduce(study, "quick", tmp_path, device="cpu")
    assert counter.calls == 2


def test_everything_that_results_depend_on_is_there():
    assert all(place.exists() for place in fingerprints._COMPUTATIONS)
    assert fingerprints.of_computation(1) != fingerprints.of_computation(2)
    assert fingerprints.of_computation(1) != fingerprints.of_result(1)


def test_interrupted_study_leaves_no_result_and_runs_again(study, counter, tmp_path):
    counter.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        reproduce(study, "quick", tmp_path, device="cpu")
    assert list((tmp_path / "toy").iterdir()) == []
    counter.interrupted = False
    assert reproduce(study, "quick", tmp_path, device="cpu")["study"] == "toy"


def test_unreadable_result_is_made_anew(study, counter, tmp_path):
    reproduce(study, "quick", tmp_path, device="cpu")
    (tmp_path / "toy" / "result.json").write_text('{"half": ')
    reproduce(study, "quick", tmp_path, device="cpu")
    assert counter.calls == 2


def test_same_seed_same_bytes(study, tmp_path):
    for name in ("one", "two"):
        reproduce(study, "quick", tmp_path / name, seed=7, device="cpu")
    one, two = ((tmp_path / name / "toy" / "numbers.csv").read_bytes() for name in ("one", "two"))
    assert one == two


def test_numbers_measured_elsewhere_are_judged_anew_without_measuring(study, counter, tmp_path):
    measure(study, "paper", tmp_path, device="cpu")
    assert {path.name for path in (tmp_path / "toy").iterdir()} == {"measured.json", "numbers.csv"}
    other = replace(study, judge=lambda tables, settings: replace(judged(tables, settings), figure=None, claims=()))
    assert judge(study, tmp_path)["notes"][0] == "5 numbers of 5 asked for."
    again = judge(other, tmp_path)
    assert again["claims"] == []
    assert again["settings"] == {"rows": 5}
    assert counter.calls == 1


def test_nothing_measured_is_said(study, tmp_path):
    with pytest.raises(InputError, match="holds nothing that was measured"):
        judge(study, tmp_path)


def test_settings_come_back_from_json_with_what_was_not_kept_from_the_preset():
    preset = RuntimeSettings(rows=1, batch_size=2, epochs=3, figure=FIRST["quick"])
    kept = json.loads(json.dumps(asdict(replace(preset, rows=7, figure=FIRST["paper"]))))
    del kept["batch_size"]
    assert _settings(preset, {**kept, "unknown": 1}) == replace(preset, rows=7, figure=FIRST["paper"])


def test_page_lists_results_and_links_their_files(registered, tmp_path):
    reproduce(registered, "quick", tmp_path / "docs" / "results", device="cpu")
    page = tmp_path / "docs" / "page.md"
    assert assemble(tmp_path / "docs" / "results", page) == 1
    text = page.read_text()
    assert "| `toy` | [A toy](#a-toy) | quick | 1 of 2 |" in text
    assert "(results/toy/figure.png)" in text
    assert "Claims that do not hold:" in text


def test_command_runs_studies_and_prints_claims(registered, counter, tmp_path, capsys):
    assert main(["all", "--out", str(tmp_path), "--device", "cpu"]) == 0
    printed = capsys.readouterr().out
    assert "✓ x rises [default]: Spearman 1.00" in printed
    assert "✗ y rises: Spearman undefined" in printed
    assert main(["toy", "--out", str(tmp_path), "--device", "cpu", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer[0]["claims"][0]["claim"] == "x rises"
    assert counter.calls == 1
    assert main(["page", "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == 1


@pytest.mark.usefixtures("registered")
def test_command_measures_now_and_judges_later(counter, tmp_path, capsys):
    assert main(["toy", "--preset=paper", "--device=cpu", f"--out={tmp_path}", "--measure"]) == 0
    assert not (tmp_path / "toy" / "result.json").exists()
    assert main(["judge", "--out", str(tmp_path)]) == 0
    assert "1 results" in capsys.readouterr().out
    assert "5 numbers of 5 asked for." in (tmp_path / "index.md").read_text()
    assert counter.calls == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["fig9"], "no study 'fig9'"),
        (["toy", "--preset", "slow"], "no preset 'slow'"),
        (["toy", "--device", "abacus"], "device must be"),
        (["page"], "holds no results"),
    ],
)
@pytest.mark.usefixtures("registered")
def test_mistakes_end_in_one_line(arguments, word, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert word in printed.err
    assert printed.err.count("\n") == 1


def test_no_process_is_a_mistake(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["toy", "--jobs=0"])
    assert "argument --jobs" in capsys.readouterr().err


def test_folder_that_cannot_be_made_is_named(study, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with pytest.raises(InputError, match="cannot be made"):
        reproduce(study, "quick", blocker, device="cpu")


def test_every_registered_study_has_its_name_and_both_presets():
    for name in registry.order():
        (study,) = registry.find(name)
        assert study.name == name
        assert set(study.presets) == {"quick", "paper"}
