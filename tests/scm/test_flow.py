import importlib
import sys

import numpy as np
import pandas as pd
import pytest

from ciplearn import fit_scm
from ciplearn._core.errors import InputError, MissingDependencyError
from ciplearn.causal import CausalGraph
from ciplearn.scm import AdditiveNoise, MonotoneFlow

pytest.importorskip("zuko")

GRAPH = CausalGraph.from_edges("A -> Y")


@pytest.fixture(scope="module")
def rows():
    # The spread of Y depends on A, which additive noise cannot follow.
    generator = np.random.default_rng(0)
    a = generator.uniform(-1, 1, size=800)
    return pd.DataFrame({"A": a, "Y": a + np.exp(a) * generator.normal(size=800)})


@pytest.fixture(scope="module")
def fitted(rows):
    return fit_scm(GRAPH, rows, {"Y": MonotoneFlow(epochs=25)})


def test_consistency_holds(fitted, rows):
    np.testing.assert_allclose(fitted.counterfactual(rows, {"A": rows["A"]}), rows, atol=1e-8)


def test_the_spread_follows_the_parents(fitted, rows):
    found = fitted.counterfactual(rows, {"A": 0.8})["Y"] - 0.8
    truth = (rows["Y"] - rows["A"]) / np.exp(rows["A"]) * np.exp(0.8)
    additive = fit_scm(GRAPH, rows, {"Y": AdditiveNoise()}).counterfactual(rows, {"A": 0.8})["Y"] - 0.8
    assert np.abs(found - truth).mean() < 0.7 * np.abs(additive - truth).mean()


def test_a_flow_is_one_of_the_mechanisms_to_choose_from(rows):
    chosen = fit_scm(GRAPH, rows, {"Y": [AdditiveNoise(), MonotoneFlow(epochs=25)]})
    fit = next(fit for fit in chosen.report.nodes if fit.node == "Y")
    assert [other.mechanism for other in fit.alternatives] == ["additive noise", "monotone flow"]
    assert fit.mechanism == "monotone flow"
    assert fit.alternatives[1].score > fit.alternatives[0].score + 0.03


def test_labels_are_refused(rows):
    with pytest.raises(InputError, match="Y holds labels"):
        fit_scm(GRAPH, rows.assign(Y=np.where(rows["Y"] > 0, "a", "b")), {"Y": MonotoneFlow()})


def test_without_zuko_the_message_names_the_extra(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "zuko", None)
    importlib.invalidate_caches()
    with pytest.raises(MissingDependencyError, match=r"ciplearn\[scm\]"):
        fit_scm(GRAPH, rows, {"Y": MonotoneFlow()})
