"""Public calls of the library, each with arguments with which it works."""

import numpy as np
import pandas as pd
import torch
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

import ciplearn
from ciplearn import CausalGraph, baselines, datasets, doubt, kernels, scm
from ciplearn.routes import compare_routes
from ciplearn.sources import open_source

GRAPH = CausalGraph.from_text("S -> {A L Y}, A -> L -> Y, A -> Y")
N = 60


def _table():
    draw = np.random.default_rng(0)
    S, L, noise = draw.normal(size=(3, N))
    A = np.where(draw.random(N) < 0.5, "x", "y")
    return pd.DataFrame({"S": S, "A": A, "L": L + (A == "x"), "Y": S + L + noise})


TABLE = _table()
X, Y = TABLE[["S", "A", "L"]], TABLE["Y"]
LABELS = pd.Series(np.where(Y > 0, "yes", "no"), name="Y")
EVENTS = pd.DataFrame({"A": [0, 1] * 20, "Y": [0, 0, 1, 1] * 10})
LAW = EVENTS.value_counts(normalize=True).rename("probability").reset_index()
ROLES = {"graph": GRAPH, "outcome": "Y", "protected": ["A"]}
TRAINING = {**ROLES, "hidden": (4,), "epochs": 1, "batch_size": 16, "random_state": 0}
SETTINGS = {"n_points": 10, "n_interventions": 4, "random_state": 0}


MODEL = scm.fit_scm(GRAPH, TABLE)


def model(frame):
    """Add up the numbers of a row."""
    return frame.select_dtypes("number").sum(axis=1).to_numpy(dtype=float)


def estimator(kind, **more):
    """Fit an estimator with settings, and predict."""

    def call(X, y, rows, **given):
        fitted = kind(**given).fit(X, y)
        return fitted.predict(rows)

    return call, {**TRAINING, "X": X, "y": Y, "rows": X, **more}


def known_model(equations, noise, n):
    return scm.StructuralCausalModel(CausalGraph.from_text("A -> Y"), equations, noise).sample(n, random_state=0)


def penalty(kind):
    def call(right, given, predictions, **parts):
        return kind(**parts).prepare(right, given)(predictions)

    return call


def kernel(kind):
    def call(x, **parts):
        return kind(**parts)(x)

    return call


SQUARE = torch.linspace(0, 1, 20).reshape(10, 2)
CONDITIONAL = {
    "right": SQUARE,
    "given": SQUARE.flip(0),
    "predictions": SQUARE[:, :1],
    "kernel": kernels.Gaussian(1.0),
    "ridge": 0.01,
}

# Name -> a function, and arguments with which it works. Those named in `NEEDED` come from `good`.
CALLS = {
    "CIPRegressor": estimator(
        ciplearn.CIPRegressor,
        context=None,
        inputs=None,
        adjustment=None,
        independence=None,
        gamma=1.0,
        gamma_scale="auto",
        penalty=None,
        on_violation="raise",
        missing="error",
        counterfactuals=None,
        module=None,
        invariant_path=None,
        learning_rate=0.01,
        weight_decay=0.0,
        schedule="cosine",
        early_stopping=False,
        validation_fraction=0.1,
        patience=2,
        checkpoint=None,
        device="cpu",
        mixed_precision=False,
    ),
    "CIPClassifier": estimator(ciplearn.CIPClassifier, gamma=1.0, inputs=None, context=None, missing="drop", y=LABELS),
    "CF1": estimator(baselines.CF1, estimator=None, task="auto", inputs=None),
    "CF2": estimator(baselines.CF2, estimator=LinearRegression(), regressor=None, regress_on="parents", task="auto"),
    "PSCF": estimator(baselines.PSCF, unfair_edges=None, baseline=None, gamma=1.0, n_latents=2, n_draws=2),
    "Augmented": estimator(baselines.Augmented, copies=2, estimator=None),
    "CausallyAugmented": estimator(baselines.CausallyAugmented, copies=2, keep_residuals=True),
    "InvariantDirections": estimator(baselines.InvariantDirections, counterfactuals=MODEL, tolerance=0.001),
    "NaivePredictor": estimator(baselines.NaivePredictor, task="auto", missing="drop"),
    "StraightLine": estimator(baselines.StraightLine, share=0.1),
    "Veitch": estimator(baselines.Veitch, gamma=1.0, penalty=None, direction="auto"),
    "GammaSearch": (
        lambda X, y, rows, **given: ciplearn.GammaSearch(**given).fit(X, y).predict(rows),
        {
            "estimator": ciplearn.CIPRegressor(**TRAINING),
            "tolerance": 0.1,
            "scoring": None,
            "low": 0.1,
            "high": 1.0,
            "max_trials": 2,
            "validation_fraction": 0.3,
            "cv": None,
            "X": X,
            "y": Y,
            "rows": X,
        },
    ),
    "frontier": (
        ciplearn.frontier,
        {
            "model": ciplearn.CIPRegressor(**TRAINING),
            "X": X,
            "y": Y,
            "gammas": [0.0, 1.0],
            "seeds": [0],
            "test": (X, Y),
            "test_fraction": 0.3,
            "measures": None,
            "n_jobs": 1,
        },
    ),
    "compare_routes": (
        compare_routes,
        {
            "estimator": ciplearn.CIPRegressor(**TRAINING),
            "X": X,
            "y": Y,
            "tolerance": 0.1,
            "scoring": None,
            "routes": ("independence", "line"),
            "gammas": [1.0],
            "shares": [0.5],
            "baselines": False,
        },
    ),
    "repair": (
        ciplearn.repair,
        {
            "model": model,
            "table": TABLE,
            "graph": GRAPH,
            "outcome": "Y",
            "protected": ["A"],
            "scm": None,
            "inputs": None,
            "random_state": 0,
        },
    ),
    "audit": (
        ciplearn.audit,
        {
            "model": model,
            "scm": None,
            "table": TABLE,
            "outcome": "Y",
            "protected": ["A"],
            "context": None,
            "adjustment": None,
            "n_draws": None,
            "interventions": None,
            "inputs": ["S", "A", "L"],
            "method": None,
            "reference": None,
            "threshold": None,
            **SETTINGS,
        },
    ),
    "audit of a graph": (
        ciplearn.audit,
        {"model": model, "scm": GRAPH, "table": TABLE, "outcome": "Y", "protected": ["A"], **SETTINGS},
    ),
    "variance_of_counterfactuals": (
        ciplearn.variance_of_counterfactuals,
        {
            "model": model,
            "scm": None,
            "rows": TABLE,
            "protected": ["A"],
            "context": None,
            "interventions": None,
            "inputs": None,
            "method": None,
            "n_draws": None,
            "reference": None,
            "threshold": None,
            "rate": None,
            "n_jobs": 1,
            **SETTINGS,
        },
    ),
    "counterfactual_effect": (
        ciplearn.counterfactual_effect,
        {"model": model, "scm": None, "rows": TABLE, "first": {"A": "x"}, "second": {"A": "y"}, "n_draws": 2},
    ),
    "flip_rate": (
        ciplearn.flip_rate,
        {"model": lambda rows: rows["L"] > 0, "scm": None, "rows": TABLE, "first": {"A": "x"}, "second": {"A": "y"}},
    ),
    "group_scores": (
        ciplearn.group_scores,
        {"model": model, "rows": TABLE, "outcome": "Y", "groups": ["A"], "threshold": None, "inputs": None},
    ),
    "paired_effects": (
        ciplearn.paired_effects,
        {
            "model": model,
            "scm": None,
            "rows": TABLE,
            "protected": ["A"],
            "values": None,
            "threshold": None,
            "rate": None,
            "moved_by": None,
            "n_points": 10,
        },
    ),
    "vcf_bounds": (
        ciplearn.vcf_bounds,
        {"model": model, "table": TABLE, "protected": ["A"], "given": ["S"], "inputs": None, "max_rows": 100},
    ),
    "independence_test": (
        ciplearn.independence_test,
        {
            "y_hat": Y.to_numpy(),
            "right": X["L"].to_numpy(),
            "given": X["S"].to_numpy(),
            "n_bootstrap": 19,
            "max_rows": 100,
            "random_state": 0,
        },
    ),
    "fit_scm": (
        lambda graph, table, mechanisms, rows, do, n: scm.fit_scm(graph, table, mechanisms).counterfactual(
            rows, do, n_draws=n
        ),
        {"graph": GRAPH, "table": TABLE, "mechanisms": None, "rows": TABLE, "do": {"A": "x"}, "n": 2},
    ),
    "counterfactual": (
        lambda scm, rows, interventions, n_draws, random_state: scm.counterfactual(
            rows, interventions, n_draws=n_draws, random_state=random_state
        ),
        {"scm": None, "rows": TABLE, "interventions": {"A": "x"}, "n_draws": 2, "random_state": 0},
    ),
    "sample": (
        lambda scm, interventions, n, random_state: scm.do(interventions).sample(n, random_state=random_state),
        {"scm": None, "interventions": {"A": "x"}, "n": 5, "random_state": 0},
    ),
    "StructuralCausalModel": (
        known_model,
        {
            "equations": {"A": lambda p, u: u, "Y": lambda p, u: p["A"] + u},
            "noise": {"A": norm(), "Y": norm()},
            "n": 5,
        },
    ),
    "falsify": (
        doubt.falsify,
        {"graph": GRAPH, "table": TABLE, "level": 0.05, "n_permutations": 5, "limit": 2, "random_state": 0},
    ),
    "counterfactual_bounds": (
        ciplearn.counterfactual_bounds,
        {
            "graph": CausalGraph.from_text("A -> Y"),
            "probabilities": LAW,
            "event": {"Y": 1},
            "do": {"A": 1},
            "given": {"A": 0, "Y": 0},
        },
    ),
    "sensitivity": (
        ciplearn.sensitivity,
        {
            "model": model,
            "graph": GRAPH,
            "table": TABLE,
            "graphs": None,
            "outcome": "Y",
            "protected": ["A"],
            "limit": 1,
            "n_jobs": 1,
            **SETTINGS,
        },
    ),
    "hidden_confounding": (
        doubt.hidden_confounding,
        {
            "model": model,
            "graph": GRAPH,
            "table": TABLE,
            "protected": "A",
            "nodes": None,
            "rho": [0.0, 0.3],
            "limit": 1,
            **SETTINGS,
        },
    ),
    "mechanism_sensitivity": (
        doubt.mechanism_sensitivity,
        {"model": model, "scm": None, "table": TABLE, "protected": ["A"], **SETTINGS},
    ),
    "criterion": (
        lambda graph, **roles: graph.criterion(**roles).to_dict(),
        {"graph": GRAPH, "outcome": "Y", "protected": ["A"], "context": None, "inputs": None, "adjustment": None},
    ),
    "from_edges": (CausalGraph.from_edges, {"directed": "A -> Y", "bidirected": (), "latent": (), "nodes": ()}),
    "from_text": (CausalGraph.from_text, {"text": "A -> Y"}),
    "from_dot": (CausalGraph.from_dot, {"text": "digraph { A -> Y }"}),
    "from_gml": (CausalGraph.from_gml, {"text": GRAPH.to_gml()}),
    "from_json": (CausalGraph.from_json, {"text": GRAPH.to_json()}),
    "separation": (
        lambda x, y, z: (GRAPH.m_separated(x, y, z), GRAPH.open_path(x, y, z), GRAPH.is_valid_adjustment(x, y, z)),
        {"x": "A", "y": "Y", "z": ["S"]},
    ),
    "Independence": (ciplearn.Independence, {"right": ["A"], "given": ["S"], "left": "Ŷ"}),
    "Gaussian": (kernel(ciplearn.Gaussian), {"lengthscale": "median", "columns": None, "x": SQUARE}),
    "Laplace": (kernel(ciplearn.Laplace), {"lengthscale": 0.3, "columns": None, "x": SQUARE}),
    "Linear": (kernel(ciplearn.Linear), {"columns": None, "x": SQUARE}),
    "Categorical": (kernel(ciplearn.Categorical), {"mismatch": 0.0, "columns": None, "x": SQUARE}),
    "Sum": (lambda part, x: ciplearn.Sum(part, kernels.Linear())(x), {"part": kernels.Gaussian(), "x": SQUARE}),
    "Product": (lambda part, x: ciplearn.Product(part, kernels.Linear())(x), {"part": kernels.Linear(), "x": SQUARE}),
    "HSIC": (
        lambda right, predictions, **parts: ciplearn.HSIC(**parts).prepare(right)(predictions),
        {"right": SQUARE, "predictions": SQUARE[:, :1], "kernel": kernels.Gaussian(1.0), "exact_rows": 2048},
    ),
    "HSCIC": (penalty(ciplearn.HSCIC), CONDITIONAL),
    "ResidualHSCIC": (penalty(ciplearn.ResidualHSCIC), CONDITIONAL),
    "CIRCE": (penalty(ciplearn.CIRCE), CONDITIONAL),
    "FrontierDisplay": (
        lambda frontier, **given: ciplearn.FrontierDisplay.from_frontier(frontier, **given),
        {"frontier": None, "cost": "loss", "violation": None, "baselines": None, "chosen": None, "beside": None},
    ),
    "Report": (
        lambda profile, **given: ciplearn.Report(**given).to_html(profile),
        {
            "audit": None,
            "title": "A title",
            "frontier": None,
            "chosen": None,
            "rule": "",
            "individuals": None,
            "profile": "decision",
        },
    ),
    "load_adult": (
        datasets.load_adult,
        {"path": "nowhere", "missing": "drop", "allow_download": False},
    ),
    "multidimensional": (
        lambda size, n: datasets.multidimensional(size).sample(n, random_state=0),
        {"size": 2, "n": 3},
    ),
    "load_model": (ciplearn.load_model, {"folder": "nowhere", "module": None, "device": "cpu"}),
    "open_source": (open_source, {"table": TABLE}),
    "Frontier.from_csv": (ciplearn.Frontier.from_csv, {"path": "nowhere"}),
}

# Calls that read a file, which here is none.
READING = ("load_adult", "load_model", "Frontier.from_csv", "open_source")
# Methods: the object itself is as it should be.
METHODS = ("counterfactual", "sample", "criterion")
NEEDED = {"scm", "frontier", "audit"}
AS_TABLES = {"X": X, "rows": TABLE, "table": TABLE, "reference": TABLE, "probabilities": LAW, "test": X}
AS_COLUMNS = ("y", "y_hat", "right", "given", "predictions", "x")
