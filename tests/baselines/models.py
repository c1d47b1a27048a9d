"""Structural causal models whose counterfactuals the baselines should, or should not, get right."""

import numpy as np
from scipy.stats import bernoulli, norm

from ciplearn import CausalGraph, StructuralCausalModel, variance_of_counterfactuals
from ciplearn.scm import Additive


def linear(confounded=False):
    """L = 2A + noise and Y = L + A + Z; where Z confounds, it is a cause of A and of L too."""
    z = (lambda p: p["Z"]) if confounded else (lambda p: 0.0)
    edges = "A -> L, L -> Y, A -> Y, Z -> Y" + (", Z -> A, Z -> L" if confounded else "")
    return StructuralCausalModel(
        CausalGraph.from_edges(edges),
        equations={
            "Z": Additive(),
            "A": Additive(z),
            "L": Additive(lambda p: 2 * p["A"] + z(p)),
            "Y": Additive(lambda p: p["L"] + p["A"] + p["Z"]),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(0, 0.5), "Y": norm(0, 0.1)},
    )


def orthogonal_table(scm, n):
    """Rows of `linear` whose noise of L is orthogonal to A and Z: least squares finds the true equation of L."""
    rows = scm.sample(n, random_state=0)
    causes = rows[list(scm.graph.parents("L"))].assign(one=1.0)
    mean = 2 * rows["A"] + (rows["Z"] if "Z" in causes else 0)
    noise = rows["L"] - mean
    rows["L"] = mean + noise - causes @ np.linalg.lstsq(causes, noise, rcond=None)[0]
    rows["Y"] = rows["L"] + rows["A"] + rows["Z"]
    return rows


def groups():
    """Binary A that acts on Y by itself, through M and through D; 30 % of the rows have A = 1."""
    return StructuralCausalModel(
        CausalGraph.from_edges("C -> M, A -> M, M -> Y, A -> Y, C -> Y, A -> D, D -> Y"),
        equations={
            "C": Additive(),
            "A": Additive(),
            "M": Additive(lambda p: 2 * p["A"] + p["C"]),
            "D": Additive(lambda p: -1.0 * p["A"]),
            "Y": Additive(lambda p: p["M"] + p["A"] + p["D"] + p["C"]),
        },
        noise={"C": norm(), "A": bernoulli(0.3), "M": norm(0, 0.5), "D": norm(0, 0.5), "Y": norm(0, 0.1)},
    )


def vcf(model, scm, rows):
    return variance_of_counterfactuals(model, scm, rows, protected=["A"], n_points=40, n_interventions=30).value
