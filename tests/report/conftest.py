import numpy as np
import pandas as pd
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

    def make(name="A", **changes):
        graph = CausalGraph.from_edges([("S", name), ("S", "Y"), (name, "Y")])
        scm = StructuralCausalModel(
            graph,
            equations={"S": lambda p, u: u, name: lambda p, u: p["S"] + u, "Y": lambda p, u: p[name] + p["S"] + u},
            noise={"S": norm(), name: norm(), "Y": norm(0, 0.1)},
        )
        rows = scm.sample(200, random_state=0)

        def model(frame):
            return 0.5 * frame[name] + frame["S"]

        found = audit(model, scm, rows, "Y", [name], n_points=50, n_interventions=20)
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
        }
        return Report(audit=found, model=model, rows=rows, **{**settings, **changes})

    return make


@pytest.fixture(scope="session")
def labels():
    rng = np.random.default_rng(0)
    return pd.Series(rng.choice(list("abcdefghij"), 500))
