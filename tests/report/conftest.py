from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

from ciplearn import CausalGraph, StructuralCausalModel, audit
from ciplearn.learning import Frontier
from ciplearn.learning.frontier import Point
from ciplearn.report import Report

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="session")
def make_report():
    """Build a report on a small model whose protected column has a name of your choice."""

    @cache
    def audited(name, weight, limits):
        graph = CausalGraph.from_edges([("S", name), ("S", "Y"), (name, "Y")])
        scm = StructuralCausalModel(
            graph,
            equations={"S": lambda p, u: u, name: lambda p, u: p["S"] + u, "Y": lambda p, u: p[name] + p["S"] + u},
            noise={"S": norm(), name: norm(), "Y": norm(0, 0.1)},
        )
        rows = scm.sample(200, random_state=0)

        def model(frame):
            return weight * frame[name] + frame["S"]

        beside = {"unconstrained": lambda frame: frame[name] + frame["S"]}
        few = {"n_points": 100, "n_interventions": 20}
        return graph, audit(model, scm, rows, "Y", [name], beside=beside, limits=limits, **few)

    def make(name="A", weight=0.5, limits=None, **changes):
        graph, found = audited(name, weight, limits)
        points = [
            Point(gamma, 0, {"loss": 1 + gamma, "score": 0.9 - gamma / 10, "penalty": 0.1 / (1 + gamma), "vcf": vcf})
            for gamma, vcf in ((0.0, 1.0), (0.5, 0.4), (2.0, 0.01))
        ]
        settings = {
            "title": f"About {name}",
            "frontier": Frontier(tuple(points)),
            "chosen": 0.5,
            "baselines": {name: (0.0, 2.0)},
            "settings": {f"ciplearn fit {name}": {"graph": graph.to_dagitty(), "note": name}},
            "next_steps": dict.fromkeys(("passes", "fails", "useless"), f"ciplearn check {name}"),
        }
        return Report.of(found, **{**settings, **changes})

    return make


class Logistic:
    """P(Y = yes) = σ(weights · columns)."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, **weights):
        self.weights = weights

    def predict_proba(self, frame):
        chance = 1 / (1 + np.exp(-sum(weight * frame[name].to_numpy() for name, weight in self.weights.items())))
        return np.column_stack([1 - chance, chance])


@pytest.fixture(scope="session")
def decisions():
    """A report on yes or no, with two protected columns of a few levels and a rare one among them."""
    graph = CausalGraph.from_edges("sex -> X, race -> X, X -> Y, sex -> Y")
    scm = StructuralCausalModel(
        graph,
        equations={
            "sex": lambda p, u: np.where(u > 0, 1.0, 0.0),
            "race": lambda p, u: np.where(u > 1.9, 2.0, np.where(u > 0.5, 1.0, 0.0)),
            "X": lambda p, u: p["sex"] + 0.5 * p["race"] + u,
            "Y": lambda p, u: p["X"] + p["sex"] + u,
        },
        noise={"sex": norm(), "race": norm(), "X": norm(), "Y": norm()},
    )
    drawn = scm.sample(400, random_state=0)
    rows = drawn.assign(Y=np.where(drawn["Y"] > 1, "yes", "no"))
    model, free = Logistic(X=1.0, sex=-1.0, race=-0.4), Logistic(X=1.0, sex=1.0)
    beside = {"unconstrained": free}
    found = audit(model, scm, rows, "Y", ["sex", "race"], n_points=60, n_interventions=20, beside=beside)
    return Report.of(found, title="Decisions", unknown={"race": 7})
