import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import bernoulli, norm

from ciplearn import StructuralCausalModel, audit, variance_of_counterfactuals
from ciplearn._core.errors import CiplearnError
from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive
from tests.evaluation.classifier import Squash
from tests.evaluation.linear_model import linear, predictor
from tests.scm import models


def crossed():
    """X = Y + A u with A = ±1: A changes X of a person, and not its law."""
    return StructuralCausalModel(
        CausalGraph.from_edges("Y -> X, A -> X"),
        {
            "Y": Additive(),
            "A": lambda p, u: 2 * u - 1,
            "X": lambda p, u: p["Y"] + p["A"] * u,
        },
        {"Y": norm(), "A": bernoulli(0.5), "X": norm()},
        inverses={"X": lambda p, x: (x - p["Y"]) / p["A"]},
    )


def test_an_empty_context_averages_over_everybody():
    scm = crossed()
    rows = scm.sample(400, random_state=0)
    score = lambda f: f["X"]  # noqa: E731
    person = variance_of_counterfactuals(score, scm, rows, "A", inputs=["X"])
    anyone = variance_of_counterfactuals(score, scm, rows, "A", inputs=["X"], context=[])
    assert person.value == pytest.approx(1, rel=0.2)
    assert anyone.value < 2e-3
    assert (person.context, person.whole_row) == (("A", "X", "Y"), True)
    assert (anyone.context, anyone.whole_row) == ((), False)
    assert "given the whole row" in str(person)
    assert "given no column" in str(anyone)
    assert anyone.to_dict()["context"] == []


def test_what_a_context_leaves_out_is_drawn_given_it(rows):
    # Ŷ = A S: given all, Var(A) E[S²]; given A and L, which are two noisy looks at S, Var(A) E[((A + L − A/2) / 3)²].
    score = lambda f: f["A"] * f["S"]  # noqa: E731
    whole, part = (
        variance_of_counterfactuals(score, linear(), rows, "A", 600, 300, context=context)
        for context in (None, ["A", "L"])
    )
    spread = rows["A"].var()
    assert whole.value == pytest.approx(spread * np.square(rows["S"]).mean(), rel=0.1)
    assert part.value == pytest.approx(spread * np.square((rows["A"] / 2 + rows["L"]) / 3).mean(), rel=0.1)
    assert (whole.n_draws, part.n_draws) == (1, 100)


def test_what_descends_from_a_context_is_drawn_from_its_mechanism(rows):
    # Given S alone, L = A / 2 + S + u has mean a' / 2 + S, and L² varies over a' by that of (a' / 2 + S)².
    found = variance_of_counterfactuals(lambda f: f["L"] ** 2, linear(), rows, "A", 600, 300, context=["S"])
    values = np.square(rows["A"].to_numpy() / 2 + rows["S"].to_numpy()[:, None]).var(axis=1, ddof=1)
    assert found.value == pytest.approx(values.mean(), rel=0.1)


def test_a_context_that_determines_what_is_read_takes_no_draws(rows):
    found = variance_of_counterfactuals(predictor, linear(), rows, "A", 50, 20, context=["S", "A", "L"])
    assert found.n_draws == 1
    assert found.value == variance_of_counterfactuals(predictor, linear(), rows, "A", 50, 20).value


def test_few_draws_do_not_make_vcf_too_large():
    scm = models.coins()
    rows = pd.DataFrame({"A": ["yes"] * 2000, "X": ["yes"] * 2000, "Y": ["no"] * 2000})
    found = variance_of_counterfactuals(
        lambda f: (f["X"] == "yes").astype(float), scm, rows, ["A"], 2000, interventions=["no", "yes"], n_draws=3
    )
    # Without the correction the three draws would add 0.3 · 0.7 / 4 / 3 = 0.0175.
    assert found.value == pytest.approx(0.35**2, abs=0.006)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"context": ["Q"]}, "context names 'Q', which is not in the graph"),
        ({"context": ["M"]}, "rows lacks the column 'M' of the context"),
        ({"threshold": "high"}, "threshold must be a number"),
        ({"threshold": 0.5, "rate": 1.5}, "rate must lie between 0 and 1"),
        ({"model": lambda f: f["M"]}, "failed for want of 'M', which is not among the columns it is shown, A, L, S"),
        ({"model": lambda f: f[["A", "L"]].to_numpy(), "threshold": 0.5}, "decides on one number per row"),
        ({"protected": "M"}, "lacks the protected column 'M'"),
    ],
)
def test_bad_contexts_and_thresholds_are_refused(rows, settings, message):
    scm = StructuralCausalModel(
        CausalGraph.from_edges("S -> A, S -> L, A -> L, L -> M"),
        {"S": Additive(), "A": Additive(), "L": Additive(), "M": Additive()},
        {node: norm() for node in "SALM"},
    )
    arguments = {"model": predictor, "protected": "A", "n_points": 20, "n_interventions": 5, **settings}
    with pytest.raises(CiplearnError, match=re.escape(message)):
        variance_of_counterfactuals(scm=scm, rows=rows, **arguments)


def test_an_audit_measures_given_the_context_of_the_criterion():
    scm = crossed()
    rows = scm.sample(300, random_state=0)
    score = lambda f: f["X"]  # noqa: E731
    nobody = audit(score, scm, rows, "Y", ["A"], context=[], inputs=["X"])
    assert nobody.verdict.holds
    assert nobody.vcf.context == ()
    assert nobody.vcf.value < 2e-3
    assert not nobody.test.rejects
    # X and A leave Y and u open: A changes what is known of X in the person, not all of it.
    default = audit(score, scm, rows, "Y", ["A"])
    assert default.vcf.context == ("A", "X")
    assert 0.3 < default.vcf.value < 0.7
    assert default.to_dict()["vcf"]["context"] == ["A", "X"]


def test_an_audit_knows_the_outcome_where_an_estimated_model_cannot_draw_it():
    rows = crossed().sample(300, random_state=0)
    found = audit(lambda f: f["X"], crossed().graph, rows, "Y", ["A"], n_points=50)
    assert found.vcf.context == ("A", "X", "Y")


def test_an_audit_decides_at_the_share_of_positive_outcomes(rows):
    labelled = rows.assign(Y=np.where(rows["L"] + np.sin(9 * rows["S"]) > 2, "yes", "no"))
    graph = CausalGraph.from_edges("S -> A, S -> L, A -> L, {S, A, L} -> Y")
    found = audit(Squash(1.0), graph, labelled, "Y", ["A"], n_points=len(rows), n_interventions=20)
    assert found.vcf.flips_at_equal_rate.rate == pytest.approx((labelled["Y"] == "yes").mean(), abs=1e-9)
    assert found.vcf.flips.threshold == 0.5
    assert found.vcf.context == ("A", "L", "S")
