"""A linear causal model whose effects are known, and a predictor on it."""

from scipy.stats import norm

from ciplearn import CausalGraph, StructuralCausalModel
from ciplearn.scm import Additive


def linear():
    """L = 0.5 A + S + u: the total effect of A on w_a A + w_l L + w_s S is w_a + 0.5 w_l."""
    return StructuralCausalModel(
        CausalGraph.from_edges("S -> A, S -> L, A -> L"),
        {"S": Additive(), "A": Additive(lambda p: p["S"]), "L": Additive(lambda p: 0.5 * p["A"] + p["S"])},
        {node: norm() for node in "SAL"},
    )


def predictor(frame):
    return 2 * frame["A"] + 3 * frame["L"] - frame["S"]
