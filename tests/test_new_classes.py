"""A new penalty, route or learner is one class and one line of registration; every list of such kinds is complete."""

import json
import re
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from ciplearn import (
    CausalGraph,
    CIPRegressor,
    audit,
    baselines,
    compare_routes,
    fit_scm,
    load_model,
    penalties,
    save_model,
    scm,
)
from ciplearn.cli.app import run
from ciplearn.cli.commands import Plan
from ciplearn.estimators.learner import Learner
from ciplearn.estimators.networks import Perceptron
from ciplearn.kernels import Linear
from ciplearn.learners import LEARNERS
from ciplearn.penalties import PENALTIES, Operator, Penalty, Setting
from ciplearn.penalties.storage import Factor
from ciplearn.repairing.kept import load_repaired
from ciplearn.report.content import PROFILES
from ciplearn.routes import ROUTES
from ciplearn.routes.beside import _BASELINES
from ciplearn.routes.route import Candidate, Family, Route
from ciplearn.saving.folder import from_spec, to_spec
from ciplearn.scm.kinds import KEPT
from ciplearn.scm.mechanism import Mechanism
from ciplearn.workbench import recipes

GRAPH = "S -> {A X Y}, A -> X, X -> Y"
EFFORT = {"n_points": 60, "n_interventions": 10, "n_draws": 2}
ROLES = {"outcome": "Y", "protected": ["A"]}
DOCS = Path(__file__).parent.parent / "docs"


@dataclass(frozen=True)
class Covariance(Penalty):
    """Σ over columns of cov(ŷ, R)²."""

    kernel: Linear = field(default_factory=Linear)

    def _takes_codes(self):
        return True, True

    def _check_given(self, present):
        """Conditioning variables are not looked at."""

    def _build(self, rows):
        right, _ = rows.whole()
        return Operator(self.kernel, Factor((right - right.mean(dim=0)) / rows.n), Setting(), exact=True)


@dataclass(frozen=True)
class LeastSquares(Learner):
    """w·x + c by least squares."""

    name: ClassVar[str] = "least-squares"
    hidden: ClassVar[tuple[int, ...]] = ()
    device: ClassVar[str] = "cpu"
    early_stopping: ClassVar[bool] = False

    shrink: float = 0.0

    def trained(self, training):
        table, _ = training.table(self.name)
        design = np.column_stack([table, np.ones(len(table))])
        weights = np.linalg.lstsq(design, training.split.rows.target.numpy(), rcond=None)[0] * (1 - self.shrink)
        module = Perceptron(table.shape[1], (), weights.shape[1])
        module.layers[0].weight = nn.Parameter(torch.from_numpy(weights[:-1].T).float())
        module.layers[0].bias = nn.Parameter(torch.from_numpy(weights[-1]).float())
        return training.fitted(module.eval())


class UnchangedRoute(Route):
    """A predictor from inputs that the protected variables do not change."""

    name = "unchanged"
    rests_on = "the graph alone"
    how = "The model reads inputs that nothing protected acts on."

    def families(self, walk):
        def make(part):
            return self.trained(part.base(learner, part.problem.roles.unchanged))

        for learner in walk.part.learners:
            candidate = Candidate(f"unchanged, {learner}", self.name, self.rests_on, make(walk.part), make, learner)
            walk.step(1)
            yield Family.of([candidate], walk.part.problem.X.columns)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(PENALTIES, "covariance", Covariance)
    monkeypatch.setitem(LEARNERS, "least-squares", LeastSquares)
    monkeypatch.setitem(ROUTES, "unchanged", UnchangedRoute)


@pytest.fixture(scope="module")
def people():
    draw = np.random.default_rng(0)
    s, a = draw.normal(size=240), draw.integers(2, size=240)
    x = a + s + draw.normal(size=240)
    table = pd.DataFrame({"S": s, "A": np.where(a, "f", "m"), "X": x})
    return table.assign(Y=x + s + 0.3 * draw.normal(size=240))


@pytest.fixture(scope="module")
def graph():
    return CausalGraph.from_text(GRAPH)


def kept(model, folder, people):
    """Save, load, predict and audit; the model that was read back says the same."""
    save_model(model, folder)
    again = load_model(folder)
    np.testing.assert_array_equal(again.predict(people), model.predict(people))
    judge = fit_scm(CausalGraph.from_text(GRAPH), people, random_state=0)
    assert audit(again, judge, people, **ROLES, **EFFORT, random_state=0).vcf.value >= 0
    return again


def commanded(tmp_path, people, capsys, *options):
    """The same by the command line: fit, predict and audit; return what fit and audit say."""
    people.to_csv(tmp_path / "t.csv", index=False)
    table, model = str(tmp_path / "t.csv"), str(tmp_path / "model")
    call = ["fit", table, "--graph", GRAPH, "--outcome=Y", "--protected=A", "--epochs=2", "--json", "--out", model]
    assert run([*call, *options]) == 0
    fitted = json.loads(capsys.readouterr().out)
    answers = str(tmp_path / "answers.csv")
    assert run(["predict", model, table, "--out", answers]) == 0
    assert np.isfinite(pd.read_csv(answers).select_dtypes("number").to_numpy()).all()
    capsys.readouterr()
    effort = ["--points=60", "--interventions=10", "--draws=2", "--doubt=0", "--no-gate"]
    page = tmp_path / "page.html"
    assert run(["audit", model, table, *effort, "--json", "--out", str(page)]) == 0
    return fitted, json.loads(capsys.readouterr().out), page.read_text(encoding="utf-8")


def test_a_new_penalty_is_trained_with_and_kept(people, tmp_path):
    X, y = people.drop(columns="Y"), people["Y"]
    settings = {"protected": ["A"], "epochs": 30, "random_state": 0}
    model = CIPRegressor(**settings, gamma=1000.0, penalty=Covariance(), gamma_scale="outcome").fit(X, y)
    free = CIPRegressor(**settings, gamma=0.0).fit(X, y)
    follows = [abs(np.cov(one.predict(X), X["A"] == "f")[0, 1]) for one in (model, free)]
    assert follows[0] < follows[1] / 3
    assert kept(model, tmp_path / "m", people).penalty == Covariance()


def test_a_new_penalty_works_on_the_command_line(people, tmp_path, capsys):
    _, _, page = commanded(tmp_path, people, capsys, "--penalty=covariance", "--gamma=1")
    assert load_model(tmp_path / "model").penalty == Covariance()
    assert "Covariance" in page


def test_a_new_learner_is_trained_and_kept(people, graph, tmp_path):
    X, y = people.drop(columns="Y"), people["Y"]
    model = CIPRegressor(graph=graph, **ROLES, gamma=0.0, learner=LeastSquares(0.1)).fit(X, y)
    assert model.score(X, y) > 0.5
    assert kept(model, tmp_path / "m", people).learner == LeastSquares(0.1)


def test_a_new_learner_works_on_the_command_line(people, tmp_path, capsys):
    fitted, _, _ = commanded(tmp_path, people, capsys, "--learner=least-squares")
    assert {one["learner"] for one in fitted["comparison"]["candidates"]} == {"least-squares"}
    assert load_repaired(tmp_path / "model").predict(people).shape == (240,)


def test_a_new_route_is_compared_and_kept(people, graph, tmp_path):
    X, y = people.drop(columns="Y"), people["Y"]
    base = CIPRegressor(graph=graph, **ROLES, epochs=2, random_state=0)
    comparison = compare_routes(
        base, X, y, 0.99, routes=("unchanged",), learners={"linear": LEARNERS["linear"]()}, baselines=False, cv=2
    )
    assert comparison.chosen == "unchanged, linear"
    model = kept(comparison.model, tmp_path / "m", people)
    assert model.route_ == "unchanged"
    assert model.roles_.inputs == ("S",)
    assert "route unchanged" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")


def test_a_new_route_works_on_the_command_line(people, tmp_path, capsys):
    _, audited, _ = commanded(tmp_path, people, capsys, "--route=unchanged", "--tolerance=0.99")
    assert load_model(tmp_path / "model").route_ == "unchanged"
    assert audited["vcf"]["value"] == pytest.approx(0, abs=1e-12)


# Below: whatever is registered is complete. A kind that is added without one of its places fails here.

# What holds code of its own cannot be kept as data; `save_model` refuses it.
HELD_AS_CODE = {"EquationMechanism", "_DowhyMechanism"}

# Sections of the report, and how the reference tells of them.
SECTIONS = {
    "What changing": "the largest effects beside the unconstrained model",
    "Who is predicted too high or too low": "the groups that are predicted most too high or too low",
    "What it costs, and how wrong it may be": "how wrong it may be",
    "To sign": "One page to sign",
}


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def named_in_help(option):
    """The words by which the command line tells of an option of `fit`."""
    typed = {field.name: field.metadata["typer"] for field in fields(Plan)}
    return set(re.findall(r"[\w-]+", typed[option].help))


def of_library(registry):
    """What the library registers; the classes of this file aside."""
    return {name: kind for name, kind in registry.items() if getattr(kind, "__module__", "") != __name__}


def test_every_penalty_is_saved_and_stands_on_the_command_line_and_in_the_reference():
    registered = of_library(PENALTIES)
    for name, make in registered.items():
        assert from_spec(to_spec(make())) == make()
        assert f'`"{name}"`' in page("api.md")
    assert set(registered) <= named_in_help("penalty")
    public = [getattr(penalties, name) for name in penalties.__all__]
    concrete = {kind for kind in public if is_dataclass(kind) and issubclass(kind, Penalty)}
    assert concrete == {type(make()) for make in registered.values()}


def test_every_learner_is_saved_and_stands_on_the_command_line_and_in_the_reference():
    for name, kind in of_library(LEARNERS).items():
        assert kind(**json.loads(json.dumps(kind().settings))) == kind()
        assert kind.name == name
        assert re.search(rf"^   {kind.__name__}$", page("api.md"), re.MULTILINE)
    assert set(of_library(LEARNERS)) <= named_in_help("learner")
    assert {"auto", *of_library(LEARNERS)} == {*recipes.RECIPE["properties"]["learner"]["enum"]}


def test_every_route_says_how_and_stands_on_all_faces():
    for name, kind in of_library(ROUTES).items():
        assert kind.name == name
        assert kind.rests_on
        assert kind.how.format(gamma="1", penalty="HSCIC", strength="2").endswith(".")
        assert f'`"{name}"`' in page("api.md")
        assert f"`{name}`" in page("command-line.md")
    assert set(of_library(ROUTES)) <= named_in_help("route")


def test_every_baseline_beside_the_routes_stands_in_the_reference():
    for name, (kind, _, rests_on) in _BASELINES.items():
        assert getattr(baselines, name) is kind
        assert rests_on
    for name in baselines.__all__:
        assert re.search(rf"\b{name}\b", page("baselines.md")), name


def test_every_mechanism_is_kept_as_data_and_stands_in_the_reference():
    def below(kind):
        return {kind} | {each for one in kind.__subclasses__() for each in below(one)}

    fitted = {kind.__name__ for kind in below(Mechanism) if kind.__module__.startswith("ciplearn.scm.")}
    assert fitted - {*KEPT} == {"Mechanism", "LatentMechanism", *HELD_AS_CODE}
    fittable = [
        name for name in scm.__all__ if isinstance(getattr(scm, name), type) and hasattr(getattr(scm, name), "fit")
    ]
    assert {"AdditiveNoise", "Multinomial", "VariationalLatent"} <= {*fittable}
    for name in fittable:
        assert f"`{name}(" in page("counterfactuals.md"), name


def test_every_section_and_profile_of_the_report_stands_in_the_reference():
    template = resources.files("ciplearn.report").joinpath("templates/report.html").read_text(encoding="utf-8")
    headings = re.findall(r"<h2>(.*?)</h2>", template)
    for heading, (begins, told) in zip(headings, SECTIONS.items(), strict=True):
        assert begins in heading
        assert told in page("command-line.md")
    for profile in PROFILES[1:]:
        assert re.search(rf"--profile\s+{profile}", page("command-line.md"))
