"""Where the criterion certifies, independence is invariance: exact in linear Gaussian models."""

import numpy as np
import pytest

from ciplearn import variance_of_counterfactuals
from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, StructuralCausalModel
from tests.scm import models


def independent_predictor(weights, names, inputs, right, given, generator):
    """Coefficients of a linear Ŷ of `inputs` with Cov(Ŷ, right | given) = 0, or None where only Ŷ = 0 has it."""
    total = np.linalg.inv(np.eye(len(names)) - weights)
    covariance = total @ total.T
    place = {name: number for number, name in enumerate(names)}
    i, r, s = ([place[name] for name in part] for part in (inputs, right, given))
    cross = covariance[np.ix_(r, i)]
    if s:
        cross = cross - covariance[np.ix_(r, s)] @ np.linalg.solve(covariance[np.ix_(s, s)], covariance[np.ix_(s, i)])
    _, values, vectors = np.linalg.svd(cross)
    kernel = vectors[(values > 1e-10).sum() :]
    return None if not len(kernel) else generator.normal(size=len(kernel)) @ kernel


def problems(holds, wanted):
    """Random linear Gaussian models and roles with that verdict, and a predictor with the verdict's independence."""
    found = 0
    for seed in range(2000):
        generator = np.random.default_rng(seed)
        scm, weights, names = models.linear_gaussian(generator, size=6)
        order = list(generator.permutation(names))
        outcome, protected, others = order[0], order[1], order[2:]
        context = others[: int(generator.integers(len(others) + 1))]
        verdict = scm.graph.criterion(outcome, [protected], context=[protected, *context])
        if verdict.holds is not holds or not (scm.graph.children(protected)):
            continue
        statement = verdict.independence
        inputs = [name for name in names if name != outcome]
        coefficients = independent_predictor(weights, names, inputs, statement.right, statement.given, generator)
        if coefficients is None or not np.abs(coefficients[inputs.index(protected)]) > 1e-3:
            # Predictors that give A no weight at all would be no test.
            continue
        found += 1
        yield scm, protected, dict(zip(inputs, coefficients, strict=True)), generator
        if found == wanted:
            return
    raise AssertionError(f"only {found} of {wanted} problems were found")


def measured(scm, protected, coefficients, generator):
    rows = scm.sample(40, random_state=generator)
    return variance_of_counterfactuals(
        lambda frame: sum(weight * frame[name] for name, weight in coefficients.items()),
        scm,
        rows,
        [protected],
        20,
        interventions=[-1.0, 0.0, 2.0],
    ).value


def test_certified_independence_makes_vcf_zero():
    values = [measured(*problem) for problem in problems(holds=True, wanted=30)]
    assert max(values) < 1e-18


def test_uncertified_independence_does_not():
    values = [measured(*problem) for problem in problems(holds=False, wanted=30)]
    assert sum(value > 1e-6 for value in values) > 5


def test_independence_from_the_protected_variable_alone_is_not_invariance():
    # H -> A, Ŷ = A − 2H: independent of A, but H confounds.
    scm = StructuralCausalModel(
        CausalGraph.from_edges("H -> A"),
        {"H": Additive(), "A": Additive(lambda p: p["H"])},
        {"H": models.norm(), "A": models.norm()},
    )
    rows = scm.sample(4000, random_state=0)
    assert abs(np.cov(rows["A"] - 2 * rows["H"], rows["A"])[0, 1]) < 0.1
    found = variance_of_counterfactuals(lambda f: f["A"] - 2 * f["H"], scm, rows, ["A"], 500, 100)
    assert found.value == pytest.approx(2, rel=0.05)
