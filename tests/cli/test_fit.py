import json
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from ciplearn import datasets
from ciplearn._core.rows import held_out_rows
from ciplearn.cli.app import run
from ciplearn.cli.commands import Fit, Plan
from ciplearn.cli.model_folder import ModelFolder
from ciplearn.cli.output import progress
from ciplearn.estimators.base import CIPEstimator
from ciplearn.evaluation import Limits
from ciplearn.routes import ShareOfVCF, Strict, WithinLimits
from tests.cli.people import GRAPH, people

TINY = ["--epochs=1", "--gamma=1", "--no-compare"]


def trained(folder):
    return json.loads((folder / "training.json").read_text())


def test_dry_run_says_what_was_understood_and_writes_nothing(place, tmp_path, capsys):
    out = tmp_path / "m"
    assert run(["fit", str(place / "people.csv"), "--graph", GRAPH, "--out", str(out), "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["rows"], said["dropped"], said["training"] + said["held_out"]) == (600, 20, 580)
    assert said["task"] == "classification"
    assert said["ignored"] == ["id"]
    roles = {column["name"]: column["roles"] for column in said["columns"]}
    assert roles["sex"] == ["protected", "context", "inputs"]
    assert roles["race"] == ["context", "inputs", "adjustment"]
    assert roles["income"] == ["outcome"]
    assert not out.exists()


def test_every_option_can_come_from_a_file_and_the_command_line_beats_it(place, tmp_path):
    config = tmp_path / "fit.yaml"
    lines = [f"table: {place / 'people.csv'}", f"graph: {place / 'graph.txt'}", f"out: {tmp_path / 'm'}"]
    lines += ["gamma: 3", "compare: false", "epochs: 2", "batch-size: 100", "hidden: [8, 4]", "protected: [sex]"]
    config.write_text("\n".join(lines))
    assert run(["fit", "--config", str(config), "--epochs", "1"]) == 0
    model = ModelFolder.read(tmp_path / "m").model
    assert (model.gamma_, model.epochs, model.batch_size, tuple(model.hidden)) == (3.0, 1, 100, (8, 4))


@pytest.mark.parametrize(
    ("kept", "typed", "wanted"),
    [
        ({"gamma": 1, "penalty": "hsic", "refit": True}, ["--strict"], Strict()),
        ({"route": "line", "tolerance": "10%", "measure": "auc"}, ["--vcf=5%"], ShareOfVCF(0.05)),
        ({"strict": True}, ["--max-effect=0.1"], WithinLimits(Limits(0.1))),
        ({"max_effect": 1.0, "route": "repair"}, ["--gamma=2"], 2.0),
        ({"gamma": 1, "penalty": "hsic"}, ["--tolerance=20%"], 0.2),
    ],
)
def test_a_goal_that_is_typed_replaces_that_of_a_file(kept, typed, wanted, place, tmp_path, monkeypatch):
    (tmp_path / "fit.json").write_text(json.dumps({"graph": GRAPH, "epochs": 3, **kept}))
    asked = []
    monkeypatch.setattr("ciplearn.cli.fit.fit", lambda options: asked.append(options.settled()))
    assert run(["fit", "t.csv", "--config", str(tmp_path / "fit.json"), *typed, "--out", "m"]) == 0
    (plan,) = asked
    assert wanted == (plan.goal() if plan.by_goal else plan.allowed or plan.gamma)
    assert plan.epochs == 3
    if "penalty" in kept:
        assert plan.penalty == (None if plan.by_goal else "hsic")
    assert run(["fit", "t.csv", *typed, "--route=line", "--vcf=1%", "--out", "m"]) == 2, "two that were typed"


@pytest.mark.parametrize(
    ("more", "most"), [((), "a tenth of the spread of income, {:.3g}, on"), (("--max-effect=2",), "2 on")]
)
def test_the_table_of_candidates_says_what_its_columns_mean_and_where_the_limit_is_from(more, most, tmp_path, capsys):
    world = datasets.applicants()
    table = world.sample(500, random_state=0)
    table.to_csv(tmp_path / "people.csv", index=False)
    roles = [
        "--graph",
        world.graph.to_dagitty(),
        "--outcome=income",
        "--protected=sex",
        "--learner=linear",
        "--holdout=0",
    ]
    assert run(["fit", str(tmp_path / "people.csv"), *roles, *more, "--out", str(tmp_path / "m")]) == 0
    said = capsys.readouterr().out
    assert (
        "loss is the squared error, score the R², VCF left how much predictions still follow sex. Strength is" in said
    )
    assert f"changing sex moves a prediction by at most {most.format(table['income'].std(ddof=0) / 10)} average" in said


@pytest.mark.parametrize("notation", ["json", "toml"])
def test_config_in_other_notations(notation, place, tmp_path):
    config = tmp_path / f"fit.{notation}"
    entries = {"graph": GRAPH, "gamma": 2.0, "compare": False, "epochs": 1}
    text = json.dumps(entries)
    if notation == "toml":
        text = "\n".join(f"{name} = {json.dumps(value)}" for name, value in entries.items())
    config.write_text(text)
    assert run(["fit", str(place / "people.csv"), "--config", str(config), "--out", str(tmp_path / "m")]) == 0
    assert trained(tmp_path / "m")["gamma"] == 2.0


def test_settings_of_a_folder_repeat_it(place, model, tmp_path):
    settings = trained(model)["settings"]
    config = tmp_path / "again.json"
    config.write_text(json.dumps(settings))
    assert run(["fit", str(place / "people.csv"), "--config", str(config), "--out", str(tmp_path / "m")]) == 0
    again, first = trained(tmp_path / "m"), trained(model)
    assert again["trials"] == first["trials"]
    assert again["gamma"] == first["gamma"]
    assert again["settings"] == first["settings"]


@pytest.mark.parametrize("role", ["context", "adjustment"])
def test_settings_repeat_a_role_of_no_columns(role, place, tmp_path, capsys):
    table, out = str(place / "people.csv"), tmp_path / "m"
    assert run(["fit", table, "--graph", GRAPH, f"--{role}=", *TINY, "--out", str(out), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["understood"]
    again = ["fit", table, "--config", str(out / "fit.json"), "--out", str(tmp_path / "n"), "--dry-run", "--json"]
    assert run(again) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert not any(role in column["roles"] for column in first["columns"])


def test_settings_of_a_folder_name_every_option_that_changes_a_model(model):
    shown_or_placed = {
        "call",
        "table",
        "out",
        "overwrite",
        "dry_run",
        "config",
        "as_json",
        "help_all",
        "address",
        "scratch",
        "meet",
    }
    not_given = {
        "gamma",
        "max_effect",
        "vcf",
        "measure",
        "penalty",
        "categories",
        "separator",
        "columns",
        "na",
        "engine",
        "workers",
    }
    named = trained(model)["settings"]
    assert set(named) == {field.name for field in fields(Fit)} - shown_or_placed - not_given
    assert list(named)[:6] == ["graph", "protected", "context", "inputs", "adjustment", "outcome"]


def test_naming_the_default_penalty_changes_nothing(tmp_path):
    rng = np.random.default_rng(0)
    s = rng.normal(size=80)
    a = s + rng.normal(size=80)
    pd.DataFrame({"S": s, "A": a, "Y": a + s}).to_csv(tmp_path / "t.csv", index=False)
    roles = ["--graph", "S -> {A Y}, A -> Y", "--outcome", "Y", "--protected", "A"]
    weights = []
    for more in ([], ["--penalty", "residual-hscic"], ["--penalty", "circe"]):
        out = tmp_path / f"m{len(weights)}"
        assert run(["fit", str(tmp_path / "t.csv"), *roles, *TINY, *more, "--out", str(out)]) == 0
        weights.append((out / "weights.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.parametrize("written", ["2%", "0.02", " 2 %", "2e-2"])
def test_tolerance_is_written_as_a_share_or_as_a_number(written):
    assert Plan(tolerance=written).settled().allowed == pytest.approx(0.02)


def test_chosen_gamma_is_the_largest_tried_within_the_tolerance(model):
    said = trained(model)
    losses = {trial["gamma"]: trial["measures"]["loss"] for trial in said["trials"]}
    # A constant that knows the shares of both classes loses their entropy, at most log 2.
    bound = losses[0] + said["tolerance"] * (np.log(2) - losses[0])
    assert said["gamma"] > 0
    assert losses[said["gamma"]] <= bound
    assert all(losses[gamma] > losses[0] for gamma in losses if gamma > said["gamma"])
    assert len(losses) >= 3


def test_numbers_of_many_values_are_regressed_and_two_values_classified(tmp_path):
    table = people(200).assign(rich=lambda t: (t["income"] == ">50K").astype(int))
    table.to_csv(tmp_path / "p.csv", index=False)
    for outcome, task in {"hours": "regression", "rich": "classification"}.items():
        graph = f"sex -> {outcome}, race -> {outcome}, race -> sex"
        roles = ["--graph", graph, f"--outcome={outcome}", "--protected=sex"]
        assert run(["fit", str(tmp_path / "p.csv"), *roles, *TINY, "--out", str(tmp_path / outcome)]) == 0
        assert trained(tmp_path / outcome)["task"] == task
    assert ModelFolder.read(tmp_path / "rich").model.classes_.tolist() == [0, 1]
    roles = ["--graph", "sex -> rich, race -> rich", "--outcome=rich", "--protected=sex", "--task=regression"]
    assert run(["fit", str(tmp_path / "p.csv"), *roles, *TINY, "--out", str(tmp_path / "asked")]) == 0
    assert trained(tmp_path / "asked")["task"] == "regression"


@pytest.mark.parametrize("penalty", ["hscic", "hscic-paper", "circe", "mmd"])
def test_penalty_is_known_by_name(penalty, tmp_path):
    people(120).to_csv(tmp_path / "p.csv", index=False)
    roles = ["--graph", "sex -> hours, race -> hours, race -> sex", "--outcome=hours", "--protected=sex"]
    assert (
        run(["fit", str(tmp_path / "p.csv"), *roles, *TINY, f"--penalty={penalty}", "--out", str(tmp_path / "m")]) == 0
    )
    kept = type(ModelFolder.read(tmp_path / "m").model.penalty).__name__
    assert kept.lower() == penalty.removesuffix("-paper")


@pytest.mark.parametrize(
    ("more", "trainings"),
    [(["--gamma=1"], 2), (["--gamma=0"], 1), (["--gamma=1", "--refit"], 3), (["--gamma=1", "--no-compare"], 1)],
)
def test_progress_at_a_fixed_gamma_ends_where_it_said(more, trainings, tmp_path, monkeypatch):
    bars = []

    def kept(*about):
        bars.append(progress(*about))
        return bars[-1]

    monkeypatch.setattr("ciplearn.cli.training.progress", kept)
    if "--no-compare" in more:
        monkeypatch.setattr("ciplearn.cli.training.Prepared", None)
    people(120).to_csv(tmp_path / "p.csv", index=False)
    roles = ["--graph", "sex -> hours, race -> hours", "--outcome=hours", "--protected=sex", "--epochs=1"]
    assert run(["fit", str(tmp_path / "p.csv"), *roles, *more, "--out", str(tmp_path / "m")]) == 0
    assert [(bar.desc.strip(": "), bar.n, bar.total) for bar in bars] == [("training", trainings, trainings)]


def test_progress_of_a_comparison_ends_at_the_end_though_not_every_training_was_needed(tmp_path, monkeypatch):
    bars = []
    monkeypatch.setattr("ciplearn.cli.training.progress", lambda *about: bars.append(progress(*about)) or bars[-1])
    people(120).to_csv(tmp_path / "p.csv", index=False)
    roles = ["--graph", "sex -> hours, race -> hours", "--outcome=hours", "--protected=sex", "--epochs=1"]
    assert run(["fit", str(tmp_path / "p.csv"), *roles, "--preset=quick", "--out", str(tmp_path / "m")]) == 0
    assert [bar.n for bar in bars] == [bar.total for bar in bars]


def test_held_out_rows_are_never_trained_on_and_known_again():
    first, again = held_out_rows(100, 0.3, 5), held_out_rows(100, 0.3, 5)
    assert first.tolist() == again.tolist()
    assert len(set(first.tolist())) == 30
    assert held_out_rows(100, 0.3, 6).tolist() != first.tolist()


def test_graph_that_does_not_certify_is_refused_unless_told_otherwise(tmp_path, capsys):
    people(120).to_csv(tmp_path / "p.csv", index=False)
    graph = "race -> sex, sex -> hours, race -> hours"
    roles = ["--graph", graph, "--outcome=hours", "--protected=sex", "--context=sex", "--adjustment="]
    arguments = ["fit", str(tmp_path / "p.csv"), *roles, *TINY, "--out", str(tmp_path / "m")]
    assert run(arguments) == 2
    assert "does not certify" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()
    assert run([*arguments, "--on-violation=warn"]) == 0
    assert "enforced all the same" in capsys.readouterr().err


def test_model_folder_is_replaced_when_told_and_a_foreign_folder_never(place, tmp_path, capsys):
    arguments = ["fit", str(place / "people.csv"), "--graph", GRAPH, *TINY, "--out", str(tmp_path / "m")]
    assert run(arguments) == 0
    (tmp_path / "m" / "thesis.tex").write_text("years of work")
    assert run([*arguments, "--seed=1"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert trained(tmp_path / "m")["settings"]["seed"] == 0
    assert run([*arguments, "--seed=1", "--overwrite"]) == 0
    assert trained(tmp_path / "m")["settings"]["seed"] == 1
    assert (tmp_path / "m" / "thesis.tex").read_text() == "years of work"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model.json").write_text("years of work")
    assert run([*arguments[:-1], str(tmp_path / "other"), "--overwrite"]) == 2
    assert "holds no model" in capsys.readouterr().err
    assert (tmp_path / "other" / "model.json").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "other"]


def test_folder_that_holds_what_is_read_is_refused(place, tmp_path, monkeypatch, capsys):
    arguments = ["fit", "t.csv", "--graph", "g.txt", *TINY, "--out", "m", "--overwrite"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text((place / "people.csv").read_text())
    (tmp_path / "g.txt").write_text(GRAPH)
    assert run(arguments) == 0
    (tmp_path / "fit.json").write_text("{}")
    for name in ("t.csv", "g.txt", "fit.json"):
        inside = tmp_path / "m" / name
        inside.write_text((tmp_path / name).read_text())
        call = [str(inside) if part == name else part for part in arguments]
        assert run(call if name in arguments else [*call, "--config", str(inside)]) == 2
        assert f"m/{name} is read, and lies in m" in capsys.readouterr().err
        assert inside.exists()
    assert run(["fit", "m/*.csv", *arguments[2:]]) == 2
    assert "is read, and lies in m" in capsys.readouterr().err


def test_routes_are_compared_and_the_best_is_kept(place, tmp_path, capsys):
    people(300).to_csv(tmp_path / "people.csv", index=False)
    out, rows = tmp_path / "routes", str(tmp_path / "people.csv")
    table = ["fit", rows, "--graph", str(place / "graph.txt"), "--preset=quick", "--epochs=2"]
    assert run([*table, "--learning-rate=0.03", "--tolerance=0.9", "--json", "--out", str(out)]) == 0
    said = json.loads(capsys.readouterr().out)["comparison"]
    kinds = {candidate["kind"] for candidate in said["candidates"]}
    assert {"unconstrained", "independence", "line", "baseline"} <= kinds
    assert said["chosen"] in said["reason"]
    kept = trained(out)
    assert kept["comparison"] == said
    effort = ["--points=20", "--interventions=6", "--draws=3", "--scm-rows=200", "--doubt=0", "--json", "--no-gate"]
    assert run(["audit", str(out), rows, "--out", str(tmp_path / "r.html"), *effort]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["vcf"]["value"] >= 0
    shown = {one["name"]: (one["loss"], one["vcf"]) for one in answer["candidates"]}
    assert shown == {one["name"]: (one["loss"], one["vcf"]) for one in said["candidates"]}
    assert [one["name"] for one in answer["candidates"] if one["chosen"]] == [said["chosen"]]
    assert {"CF1", "CF2", "protected columns left out"} <= set(shown)
    assert {pair["model"] for pair in answer["effects"]["pairs"]} == {"this model", "unconstrained"}


@pytest.mark.parametrize("more", [["--gamma", "1"], ["--penalty", "circe"], ["--refit"]])
def test_options_of_the_independence_route_are_refused_for_others(place, tmp_path, capsys, more):
    table = ["fit", str(place / "people.csv"), "--graph", str(place / "graph.txt"), "--out", str(tmp_path / "m")]
    assert run([*table, "--route", "line", *more]) == 2
    assert "are for the independence route, got --route line" in capsys.readouterr().err


@pytest.mark.parametrize("how", [["--gamma=1"], ["--gamma=1", "--no-compare"], ["--strict", "--learner=linear"]])
def test_labels_that_only_held_out_rows_show_are_counted_in_a_sentence(tmp_path, capsys, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"S": draw.integers(60, size=200), "A": draw.choice(["x", "y"], 200)})
    table.assign(Y=draw.normal(size=200)).to_csv("t.csv", index=False)
    roles = ["--graph=S -> {A Y}, A -> Y", "--outcome=Y", "--protected=A", "--categories=S"]
    assert run(["fit", "t.csv", *roles, *how, "--preset=quick", "--epochs=1", "--out=m"]) == 0
    said = capsys.readouterr().err
    assert said.count("training never saw these labels") == 1
    assert " in S (" in said


def test_new_labels_of_a_repaired_model_are_said_once_by_fit_and_by_audit(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    S, A = [*draw.integers(3, size=390), *range(90, 100)], draw.integers(2, size=400)
    table = pd.DataFrame({"S": S, "A": np.where(A, "x", "y"), "L": A + draw.normal(size=400)})
    table.assign(Y=table["L"] + draw.normal(size=400)).to_csv("t.csv", index=False)
    roles = ["--graph=S -> Y, A -> L, L -> Y", "--outcome=Y", "--protected=A", "--categories=S"]
    assert run(["fit", "t.csv", *roles, "--strict", "--learner=linear", "--preset=quick", "--out=m"]) == 0
    fitted = capsys.readouterr().err
    effort = ["--points=40", "--interventions=4", "--draws=2", "--scm-rows=100", "--doubt=0", "--no-gate"]
    assert run(["audit", "m", "t.csv", *effort]) == 0
    for said in (fitted, capsys.readouterr().err):
        assert said.count("training never saw") == 1
        assert "of which the model knows nothing: " in said


def test_the_models_that_are_compared_share_one_penalty_on_the_rows_that_judge(place, tmp_path, monkeypatch):
    prepared, penalty_on = [], CIPEstimator.penalty_on
    monkeypatch.setattr(CIPEstimator, "penalty_on", lambda *call: prepared.append(len(call[1])) or penalty_on(*call))
    call = ["fit", str(place / "people.csv"), "--graph", GRAPH, "--epochs=1", "--gamma=1", "--out", str(tmp_path / "m")]
    assert run(call) == 0
    assert len(trained(tmp_path / "m")["trials"]) == 2
    # Rows that judge both models, and rows that are kept for the audit.
    assert len(prepared) == 2
