import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ciplearn import audit, variance_of_counterfactuals, vcf_bounds
from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.evaluation import auditing
from ciplearn.evaluation.bounds import VCFBounds
from ciplearn.scm import Additive, StructuralCausalModel
from tests.evaluation.linear_model import linear
from tests.scm.models import norm

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "vcf_bounds.py"


@pytest.fixture(scope="module")
def rows():
    return linear().sample(700, random_state=0)


def test_the_bounds_of_a_linear_predictor_are_their_formulas(rows):
    # L = A / 2 + S + u: VCF = Var(A) / 4 = 0.5, and the noise of L adds 1 to the upper bound.
    found = vcf_bounds(lambda f: f["L"], rows, protected="A", given="S")
    assert 0.2 < found.lower_interval[0] < 0.5
    assert found.lower < 0.6
    assert found.upper == pytest.approx(1.5, rel=0.3)
    assert not found.alarm
    assert "VCF lies between" in str(found)
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_bounds_meet_where_a_and_s_determine_the_prediction(rows):
    found = vcf_bounds(lambda f: f["A"] - f["S"], rows, protected="A", given="S")
    assert found.lower == pytest.approx(rows["A"].var(), rel=0.1)
    assert found.upper == pytest.approx(rows["A"].var(), rel=0.3)


def test_a_prediction_that_follows_s_alone_is_bounded_by_next_to_nothing(rows):
    found = vcf_bounds(lambda f: np.sin(f["S"]), rows, protected="A", given="S")
    assert found.lower_interval[0] == 0
    assert found.upper < 0.01


def test_without_a_confounder_the_bounds_are_variances():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"A": rng.choice(["a", "b", "c"], 600), "u": rng.normal(size=600)})
    table["L"] = table["A"].map({"a": 0.0, "b": 1.0, "c": 3.0}) + table["u"]
    found = vcf_bounds(lambda f: f["L"], table, protected="A")
    means = table["A"].map(table.groupby("A")["L"].mean())
    assert found.lower == pytest.approx(means.var(), rel=0.05)
    assert found.upper == pytest.approx(table["L"].var(), rel=0.02)
    assert found.overlap == 1


def test_bounds_that_cross_are_not_blamed_on_overlap():
    settings = {"overlap": 0.9, "outside": 0.0, "protected": ("A",), "given": ("S",), "n_rows": 300}
    found = VCFBounds(2.0, 1.0, (1.8, 2.2), (0.8, 1.2), **settings)
    assert found.alarm
    assert "the lower one, 2, is above the upper one, 1;" in str(found)
    assert "near no row" not in str(found)


def test_lack_of_overlap_is_an_alarm_not_a_proof():
    rows = linear().sample(500, random_state=0)
    stuck = rows.assign(A=rows["S"] + 0.01 * rows["A"])
    found = vcf_bounds(lambda f: f["L"], stuck, protected="A", given="S")
    assert found.alarm
    assert "cannot be read" in str(found)


def wrong():
    """L does not follow A here; it does in the rows of `linear`."""
    return StructuralCausalModel(
        CausalGraph.from_edges("S -> A, S -> L, A -> L, L -> Y"),
        {"S": Additive(), "A": Additive(lambda p: p["S"]), "L": Additive(lambda p: p["S"]), "Y": Additive()},
        {node: norm() for node in "SALY"},
    )


def test_an_audit_says_where_a_model_contradicts_the_rows(rows):
    # Ŷ = A + L: the wrong model says Var(A) = 2, the truth is 1.5² times that.
    score = lambda f: f["A"] + f["L"]  # noqa: E731
    found = audit(score, wrong(), rows.assign(Y=rows["L"]), "Y", ["A"], n_points=200, n_interventions=20)
    assert found.vcf.value == pytest.approx(2, rel=0.2)
    assert found.bounds.contradicts(found.vcf)
    assert "less than the rows allow" in str(found)
    assert "do not trust" in found.to_dict()["bounds"]["beside_vcf"]
    right = variance_of_counterfactuals(score, linear(), rows, "A", 200, 50)
    assert not found.bounds.contradicts(right)
    assert "agrees with the rows" in found.bounds.beside(right)


def test_an_audit_estimates_bounds_when_they_are_read_and_once(rows, monkeypatch):
    asked = []
    monkeypatch.setattr(auditing, "vcf_bounds", lambda *_, **settings: asked.append(settings["random_state"]))
    found = audit(lambda f: f["L"], wrong(), rows.head(60).assign(Y=0.0), "Y", ["A"], inputs=["L"], n_points=20)
    assert not asked
    assert (found.bounds, found.bounds, len(asked)) == (None, None, 1)


def test_an_audit_has_no_bounds_where_s_is_not_valid(rows):
    scm = StructuralCausalModel(
        CausalGraph.from_edges("S -> A, S -> L, A -> L, L -> Y, U -> A, U -> Y", latent=["U"]),
        {node: Additive(lambda p: sum(p.values()) if p else 0.0) for node in "SALYU"},
        {node: norm() for node in "SALYU"},
    )
    table = scm.sample(200, random_state=0)
    found = audit(lambda f: f["L"], scm, table, "Y", ["A"], inputs=["L"], adjustment=[], n_points=20)
    assert found.bounds is None
    assert found.to_dict()["bounds"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protected": "Q"}, "protected names 'Q', which is no column"),
        ({"given": ["A"]}, "must be disjoint"),
        ({"table": [1]}, "table must be a pandas DataFrame"),
        ({"max_rows": 3}, "max_rows must be at least"),
    ],
)
def test_mistakes_are_named(rows, change, message):
    given = {"table": rows, "protected": "A", "given": "S", **change}
    with pytest.raises(InputError, match=message):
        vcf_bounds(lambda f: f["L"], **given)


def test_too_few_rows_are_named(rows):
    with pytest.raises(InputError, match="at least 50 rows, got 20"):
        vcf_bounds(lambda f: f["L"], rows.head(20), protected="A", given="S")


@pytest.mark.slow
@pytest.mark.parametrize("process", ["linear", "sign of the noise", "first case", "scenario 1"])
def test_the_truth_lies_within_the_bounds(process):
    spec = importlib.util.spec_from_file_location("vcf_bounds", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for predictor in script.PREDICTORS:
        assert script.compared(process, predictor, rows=2000, seed=0)["inside"]
