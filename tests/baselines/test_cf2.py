"""CF2: residuals of descendants."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ciplearn import CausalGraph, baselines
from ciplearn._core.errors import InputError
from tests.baselines.models import linear, orthogonal_table, vcf

QUICK = {"epochs": 40, "learning_rate": 1e-2, "random_state": 0}


def fitted(scm, rows, **more):
    model = baselines.CF2(graph=scm.graph, outcome="Y", protected=["A"], **QUICK, **more)
    return model.fit(rows.drop(columns="Y"), rows["Y"])


def test_cf2_is_invariant_on_a_linear_additive_model():
    scm = linear()
    rows = orthogonal_table(scm, 400)
    model = fitted(scm, rows, regressor=LinearRegression())
    assert vcf(model, scm, rows) < 1e-10
    # Without A the noise of L and Z are left: 1.25 of the variance 10.25.
    assert model.score(rows, rows["Y"]) > 0.1


def test_cf2_on_a_alone_is_not_invariant_where_a_is_confounded_but_on_parents_it_is():
    scm = linear(confounded=True)
    rows = orthogonal_table(scm, 400)
    on_a = fitted(scm, rows, regressor=LinearRegression(), regress_on="protected")
    on_parents = fitted(scm, rows, regressor=LinearRegression())
    assert vcf(on_a, scm, rows) > 1e-3
    assert vcf(on_parents, scm, rows) < 1e-10
    assert [residual.causes.names for residual in on_parents.residuals_] == [("A", "Z")]


def test_a_stands_in_for_an_outcome_that_causes_a_descendant():
    generator = np.random.default_rng(0)
    a, z = generator.standard_normal((2, 200))
    y = a + z
    X = pd.DataFrame({"A": a, "Z": z, "L": y + z})
    roles = {"graph": CausalGraph.from_edges("A -> Y, Y -> L, Z -> L, Z -> Y"), "outcome": "Y", "protected": ["A"]}
    model = baselines.CF2(**roles, regressor=LinearRegression(), epochs=1).fit(X, y)
    assert [residual.causes.names for residual in model.residuals_] == [("Z", "A")]
    (view,) = model._views(X)
    assert abs(np.corrcoef(view["residual of L"], a)[0, 1]) < 1e-6


def test_cf2_is_not_invariant_on_the_first_synthetic_case(scm, table):
    model = fitted(scm, table)
    assert vcf(model, scm, table) > 1e-3 * table["Y"].var()


def test_residuals_of_a_number_are_those_of_the_regressor(table):
    scm = linear()
    rows = scm.sample(200, random_state=1)
    model = fitted(scm, rows, regressor=LinearRegression())
    scaled = (rows["L"] - rows["L"].min()) / (rows["L"].max() - rows["L"].min())
    expected = scaled - LinearRegression().fit(rows[["A"]], scaled).predict(rows[["A"]])
    (view,) = model._views(rows)
    np.testing.assert_allclose(view["residual of L"], expected, atol=1e-6)
    assert list(view.columns) == ["Z", "residual of L"]


def test_residuals_of_a_category_are_indicators_minus_probabilities():
    generator = np.random.default_rng(0)
    a = generator.choice(["f", "m"], 400)
    job = np.where(generator.random(400) < np.where(a == "f", 0.8, 0.3), "nurse", "smith")
    X = pd.DataFrame({"A": a, "job": job})
    y = (job == "nurse") + 0.1 * generator.standard_normal(400)
    graph = CausalGraph.from_edges("A -> job, job -> Y")
    model = baselines.CF2(graph=graph, outcome="Y", protected=["A"], **QUICK).fit(X, y)
    (view,) = model._views(X)
    assert list(view.columns) == ["residual of job=nurse", "residual of job=smith"]
    share = pd.Series(job == "nurse").groupby(a).mean()
    expected = (job == "nurse") - share[a].to_numpy()
    np.testing.assert_allclose(view["residual of job=nurse"], expected, atol=0.05)
    np.testing.assert_allclose(view.sum(axis=1), 0, atol=1e-6)


def test_regressor_and_regressed_on_are_checked(X, y, roles):
    with pytest.raises(InputError, match="regressor must have fit and predict"):
        baselines.CF2(**roles, regressor="linear").fit(X, y)
    with pytest.raises(InputError, match="regress_on must be one of parents, protected, got 'A'"):
        baselines.CF2(**roles, regress_on="A").fit(X, y)
    with pytest.raises(InputError, match="CF2 has nothing to predict from"):
        baselines.CF2(**roles, inputs=["A"]).fit(X, y)
