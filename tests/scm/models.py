"""Small models that several tests share."""

import numpy as np
from scipy.stats import bernoulli, norm

from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, Categories, GumbelMax, Scalar, StructuralCausalModel, Vector
from ciplearn.scm.mechanism import NodeSample

CHAIN = CausalGraph.from_edges("S -> A, S -> L, A -> L, S -> Y, A -> Y, L -> Y")


def chain():
    """Nonlinear, additive, no inverse written down."""
    return StructuralCausalModel(
        CHAIN,
        equations={
            "S": lambda p, u: u,
            "A": lambda p, u: np.sin(p["S"]) + u,
            "L": lambda p, u: p["A"] ** 2 + p["S"] + 0.5 * u,
            "Y": lambda p, u: p["A"] * p["L"] + p["S"] + u,
        },
        noise={node: norm() for node in "SALY"},
    )


def linear_gaussian(generator, size=5):
    """x = B x + u on a random graph; returns the model and B."""
    names = [f"v{place}" for place in range(size)]
    weights = np.tril(generator.normal(size=(size, size)), k=-1) * (generator.uniform(size=(size, size)) < 0.7)
    edges = [(names[j], names[i]) for i in range(size) for j in range(i) if weights[i, j]]
    graph = CausalGraph.from_edges(edges, nodes=names)

    def mean(row):
        return lambda p: sum(weights[row, names.index(parent)] * values for parent, values in p.items())

    equations = {name: Additive(mean(row) if graph.parents(name) else None) for row, name in enumerate(names)}
    return StructuralCausalModel(graph, equations, {name: norm() for name in names}), weights, names


def labels():
    """Numbers, labels and a vector together."""

    def odds(p):
        scores = np.stack([p["A"], np.zeros_like(p["A"]), -p["A"]], axis=1)
        table = np.exp(scores)
        return table / table.sum(axis=1, keepdims=True)

    return StructuralCausalModel(
        CausalGraph.from_edges("A -> job, A -> V, job -> V, V -> Y, job -> Y"),
        equations={
            "A": Additive(),
            "job": GumbelMax(["cook", "nurse", "clerk"], odds),
            "V": Additive(lambda p: np.stack([p["A"], (p["job"] == "cook") + 0.0], axis=1)),
            "Y": lambda p, u: p["V"].sum(axis=1) + 2.0 * (p["job"] == "nurse") + u,
        },
        noise={"A": norm(), "V": norm(), "Y": norm()},
        kinds={"V": Vector(2)},
    )


def coins():
    """Binary nodes; where A is yes, X = A or U_X does not tell what U_X was."""
    yes = ("no", "yes")

    def word(value):
        return np.where(value, "yes", "no")

    return StructuralCausalModel(
        CausalGraph.from_edges("A -> X, X -> Y, A -> Y"),
        equations={
            "A": lambda p, u: word(u == 1),
            "X": lambda p, u: word((p["A"] == "yes") | (u == 1)),
            "Y": lambda p, u: word((p["X"] == "yes") ^ (p["A"] == "yes") ^ (u == 1)),
        },
        noise={"A": bernoulli(0.5), "X": bernoulli(0.3), "Y": bernoulli(0.2)},
        kinds={node: Categories(yes) for node in "AXY"},
    )


def rounded():
    """A threshold and a rounding: continuous noise, discrete values."""
    return StructuralCausalModel(
        CausalGraph.from_edges("A -> K, K -> B, A -> B"),
        equations={
            "A": lambda p, u: u,
            "K": lambda p, u: np.round(p["A"] + u),
            "B": lambda p, u: np.where(p["A"] + p["K"] / 2 + u > 0, 1.0, 0.0),
        },
        noise={"A": norm(), "K": norm(), "B": norm()},
    )


def hidden():
    """H is latent and moves both A and Y."""
    return StructuralCausalModel(
        CausalGraph.from_edges("H -> A, H -> Y, A -> Y", latent=["H"]),
        equations={
            "H": lambda p, u: u,
            "A": lambda p, u: p["H"] + u,
            "Y": lambda p, u: p["A"] + 2 * p["H"] + 0.5 * u,
        },
        noise={"H": norm(), "A": norm(), "Y": norm()},
    )


def sample(a, v, kind=None):
    """Rows of a node V and its one parent A, as a recipe is given them."""
    kinds = {"A": Scalar(), "V": kind or Scalar()}
    return NodeSample("V", kinds["V"], ("A",), {"A": a, "V": v}, kinds)
