import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ciplearn import StructuralCausalModel, datasets, fit_scm
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn.causal import CausalGraph
from ciplearn.evaluation import counterfactual_effect, paired_effects
from ciplearn.scm import Additive, Categories
from tests.evaluation.classifier import Squash
from tests.evaluation.linear_model import linear, predictor

STEP = {"a": 0.0, "b": 0.2, "rare": 3.0}


def people():
    """sex and group move L; the rare group moves it most."""
    return StructuralCausalModel(
        CausalGraph.from_edges("sex -> L, group -> L, S -> L"),
        {
            "sex": lambda p, u: np.where(u < 0, "f", "m"),
            "group": lambda p, u: np.array(["a", "b", "rare"])[np.digitize(u, [0.0, 2.3])],
            "S": Additive(),
            "L": Additive(lambda p: (p["sex"] == "m") * 1.0 + np.vectorize(STEP.get)(p["group"]) + p["S"]),
        },
        {node: norm() for node in ("sex", "group", "S", "L")},
        kinds={"sex": Categories(["f", "m"]), "group": Categories(["a", "b", "rare"])},
    )


@pytest.fixture(scope="module")
def rows():
    return people().sample(500, random_state=1)


def test_levels_are_enumerated_and_crossed(rows):
    found = paired_effects(lambda f: f["L"], people(), rows, ["sex", "group"], threshold=1.0)
    table = found.table
    assert list(table["variable"].value_counts().sort_index().items()) == [("group", 3), ("sex", 1), ("sex × group", 6)]
    effects = {(row.first, row.second): row.effect for row in table.itertuples()}
    assert effects["sex = f", "sex = m"] == pytest.approx(1)
    assert effects["group = a", "group = rare"] == pytest.approx(3)
    assert effects["sex = f, group = a", "sex = m, group = rare"] == pytest.approx(4)
    assert effects["sex = f, group = rare", "sex = m, group = a"] == pytest.approx(-2)


def test_a_rare_group_is_not_averaged_away(rows):
    found = paired_effects(lambda f: f["L"], people(), rows, ["sex", "group"], crossings=False)
    assert (rows["group"] == "rare").sum() < 15
    assert found.largest()["second"] == "group = rare"
    assert found.largest()["n_second"] == (rows["group"] == "rare").sum()
    assert "from group = a to group = rare, which moves prediction by 3 on average" in found.headline


def test_pairs_are_what_the_model_says_row_by_row(rows):
    models = {"steep": lambda f: f["L"], "flat": lambda f: 0.1 * f["L"]}
    found = paired_effects(models, people(), rows, "sex", threshold=0.5, rate=0.3, moved_by=0.4, n_points=500)
    before, after = (people().counterfactual(rows, {"sex": value})["L"] for value in "fm")
    steep, flat = (found.table[found.table["model"] == name].iloc[0] for name in models)
    assert steep["flips"] == pytest.approx(((before > 0.5) != (after > 0.5)).mean())
    limit = np.quantile(rows["L"], 0.7, method="inverted_cdf")
    assert steep["flips_at_equal_rate"] == pytest.approx(((before > limit) != (after > limit)).mean())
    # Shrinking buys fewer flips at the threshold, and none at an equal rate.
    assert flat["flips_at_equal_rate"] == pytest.approx(steep["flips_at_equal_rate"])
    assert (steep["moved"], flat["moved"]) == (1, 0)
    assert 0.98 < steep["moved_low"] < 1
    for key in ("effect", "moved", "flips", "flips_at_equal_rate"):
        assert steep[f"{key}_low"] <= steep[key] <= steep[f"{key}_high"]


def test_numbers_are_compared_at_quantiles_and_agree_with_the_plain_effect():
    rows = linear().sample(400, random_state=0)
    found = paired_effects(predictor, linear(), rows, "A").table
    values = rows["A"].quantile([0.1, 0.5, 0.9], interpolation="nearest").to_list()
    assert list(found["first"]) == [f"A = {values[place]:.4g}" for place in (0, 0, 1)]
    plain = counterfactual_effect(predictor, linear(), rows, {"A": values[0]}, {"A": values[2]})
    assert found["effect"].iloc[1] == pytest.approx(plain.value["prediction"])
    assert found["flips"].isna().all()
    named = paired_effects(predictor, linear(), rows, "A", values={"A": [0.0, 1.0]}).table
    assert named["effect"].tolist() == pytest.approx([3.5])


def test_one_protected_variable_may_move_another():
    # A -> B: setting A alone moves B along; crossing sets both.
    scm = StructuralCausalModel(
        CausalGraph.from_edges("A -> B"),
        {"A": Additive(), "B": Additive(lambda p: 2 * p["A"])},
        {"A": norm(), "B": norm()},
    )
    rows = scm.sample(100, random_state=0)
    found = paired_effects(lambda f: f["B"], scm, rows, ["A", "B"], values={"A": [0.0, 1.0], "B": [0.0, 5.0]}).table
    assert found.set_index("variable")["effect"].groupby("variable").first().to_dict() == pytest.approx(
        {"A": 2, "B": 5, "A × B": 5}
    )


def test_probabilities_decide_by_default_and_json_takes_it():
    rows = linear().sample(200, random_state=0)
    found = paired_effects({"one": Squash(1.0), "two": Squash(0.1)}, linear(), rows, "A")
    assert found.moved_by == 0.05
    assert found.table["flips"].notna().all()
    assert "one: the largest effect" in found.headline
    assert "of decisions flip" in str(found)
    assert json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"values": {"A": [1.0]}}, "a pair needs two"),
        ({"moved_by": -1.0}, "moved_by must not be negative"),
        ({"protected": "Q"}, "not in the graph"),
        ({"rows": pd.DataFrame([[1.0, 2.0]] * 2, columns=["A", "A"])}, "rows has several columns named 'A'"),
        ({"rows": pd.DataFrame({"S": [1.0, 2.0]})}, "lacks the protected column 'A'"),
    ],
)
def test_mistakes_are_named(settings, message):
    given = {"rows": linear().sample(20, random_state=0), "protected": "A", **settings}
    with pytest.raises(CiplearnError, match=message):
        paired_effects(lambda f: f["S"], linear(), **given)


def test_an_unknown_model_is_named(rows):
    found = paired_effects(lambda f: f["L"], people(), rows, "sex")
    with pytest.raises(InputError, match="no model named 'other'"):
        found.largest("other")


def test_values_that_differ_in_late_digits_are_told_apart():
    rows = linear().sample(60, random_state=0)
    near = [1.00001, 1.00002]
    table = paired_effects(predictor, linear(), rows, "A", values={"A": near}, n_points=10).table
    assert (table["first"][0], table["second"][0]) == ("A = 1.00001", "A = 1.00002")


def test_rows_with_several_draws_are_counted_once():
    world = datasets.applicants()
    people = world.sample(100, random_state=0)
    units = fit_scm(world.graph, people, random_state=0).abduct(people, n_draws=5, random_state=0)
    scm = fit_scm(world.graph, people, random_state=0)
    found = paired_effects(lambda frame: frame["training"], scm, units, protected=["sex"]).table.iloc[0]
    assert [found["n_first"], found["n_second"]] == [(people["sex"] == level).sum() for level in "fm"]
