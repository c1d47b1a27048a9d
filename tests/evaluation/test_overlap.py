import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ciplearn import StructuralCausalModel, fit_scm, variance_of_counterfactuals
from ciplearn.causal import CausalGraph
from ciplearn.evaluation import vcf
from ciplearn.evaluation.interventions import TAIL, Support
from ciplearn.scm import Additive


def follows(spread):
    """A = S + spread · u: the smaller the spread, the fewer values of A each S has ever shown."""
    return StructuralCausalModel(
        CausalGraph.from_edges("S -> A"),
        {"S": Additive(), "A": Additive(lambda p: p["S"])},
        {"S": norm(), "A": norm(0, spread)},
    )


def test_rows_from_the_same_law_are_inside_but_for_the_tail():
    generator = np.random.default_rng(0)
    support = Support.of(pd.DataFrame(generator.normal(size=(3000, 3)), columns=list("abc")))
    fresh = pd.DataFrame(generator.normal(size=(3000, 3)), columns=list("abc"))
    assert abs((~support.holds(fresh)).mean() - TAIL) < 0.015


@pytest.mark.parametrize("columns", [3, 12])
def test_rows_far_away_are_outside(columns):
    generator = np.random.default_rng(0)
    names = [f"x{place}" for place in range(columns)]
    support = Support.of(pd.DataFrame(generator.normal(size=(500, columns)), columns=names))
    assert not support.holds(pd.DataFrame(np.full((4, columns), 9.0), columns=names)).any()
    assert support.holds(pd.DataFrame(np.zeros((1, columns)), columns=names)).all() or columns == 12


def test_a_label_never_seen_is_outside():
    rows = pd.DataFrame({"x": np.zeros(50), "t": ["a", "b"] * 25})
    support = Support.of(rows)
    assert list(support.holds(pd.DataFrame({"x": [0.0, 0.0], "t": ["a", "z"]}))) == [True, False]


def test_booleans_are_labels_and_numbers_as_objects_numbers():
    flags = pd.DataFrame({"flag": [True, False] * 25})
    text = flags.astype(str)
    assert (Support.of(flags).places == Support.of(text).places).all()
    numbers = pd.DataFrame({"x": np.linspace(0, 1, 50)})
    assert (Support.of(numbers.astype(object)).places == Support.of(numbers).places).all()


def test_constant_columns_do_no_harm():
    support = Support.of(pd.DataFrame({"x": np.ones(30)}))
    assert list(support.holds(pd.DataFrame({"x": [1.0, 2.0]}))) == [True, False]


def test_the_share_outside_grows_as_overlap_shrinks():
    shares = []
    for spread in (3.0, 0.5, 0.05):
        scm = follows(spread)
        found = variance_of_counterfactuals(lambda f: f["A"], scm, scm.sample(1500, random_state=0), ["A"], 200, 50)
        shares.append(found.overlap.share_outside)
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.5


def test_vcf_inside_and_outside_are_told_apart_and_a_sentence_says_so():
    # Ŷ is flat where there is data and steep where there is none.
    scm = follows(0.3)
    rows = scm.sample(1500, random_state=0)
    found = variance_of_counterfactuals(
        lambda f: np.where((f["A"] - f["S"]).abs() < 2, 0.0, f["A"]), scm, rows, ["A"], 200, 100
    )
    assert found.overlap.vcf_inside < 1e-20
    assert found.overlap.vcf_outside > 0.1
    assert found.overlap.matters
    assert "read the total with care" in str(found)


def test_where_nothing_is_outside_that_part_is_unknown():
    scm = follows(3.0)
    found = variance_of_counterfactuals(
        lambda f: f["A"], scm, scm.sample(50, random_state=0), ["A"], 5, interventions=[0.0, 0.1]
    )
    assert np.isnan(found.overlap.vcf_outside)
    assert found.overlap.to_dict()["vcf_outside"] is None


def test_training_rows_may_define_the_support():
    scm = follows(1.0)
    rows = scm.sample(300, random_state=0)
    far = rows + 100.0
    near, away = (
        variance_of_counterfactuals(lambda f: f["A"], scm, rows, ["A"], 50, 20, reference=reference)
        for reference in (rows, far)
    )
    assert near.overlap.share_outside < 0.3
    assert away.overlap.share_outside == 1


def test_rare_values_weigh_what_they_are_worth_where_not_all_rows_can_be_looked_up(monkeypatch):
    draw = np.random.default_rng(0)
    a = draw.choice(["a", "b", "c"], size=900, p=[0.96, 0.03, 0.01])
    label = np.where(draw.random(900) < 0.5, "u", "v")
    rows = pd.DataFrame({"A": a, "L": label})
    scm = fit_scm(CausalGraph.from_edges("A -> L"), rows, random_state=0)
    asked = {"reference": rows[rows["A"] == "a"], "n_draws": 10, "random_state": 0}

    def outside():
        found = variance_of_counterfactuals(lambda f: (f["A"] == "a") * 1.0, scm, rows, ["A"], 300, **asked)
        return found.overlap.share_outside

    assert outside() == pytest.approx((a != "a").mean(), rel=1e-6)
    monkeypatch.setattr(vcf, "_SUPPORT_ROWS", 2000)
    assert outside() == pytest.approx((a != "a").mean(), rel=1e-6)


def test_columns_far_from_the_origin_do_not_cancel():
    draw = np.random.default_rng(0)
    near = pd.DataFrame(draw.normal(size=(400, 10)), columns=list("abcdefghij"))
    far = near.assign(a=near["a"] + 1e9)
    assert Support.of(far).radius == pytest.approx(Support.of(near).radius, rel=1e-3)
    assert not Support.of(near).holds(near + 30).any()
    assert not Support.of(far).holds(far + 30).any()
