import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ciplearn import StructuralCausalModel, datasets
from ciplearn._core.errors import CiplearnError, GraphError, InputError, InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, Categories, GumbelMax, Vector
from tests.scm import models

# ---------------------------------------------------------------- sampling and actions


def test_the_same_seed_gives_the_same_rows_and_the_global_state_stays_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (models.chain().sample(50, random_state=3) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert not first.equals(models.chain().sample(50, random_state=4))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_a_generator_moves_on_between_calls():
    generator = np.random.default_rng(0)
    scm = models.chain()
    assert not scm.sample(5, random_state=generator).equals(scm.sample(5, random_state=generator))


def test_latent_nodes_never_appear_in_a_frame():
    assert list(models.hidden().sample(3, random_state=0)) == ["A", "Y"]


def test_an_action_changes_descendants_only_and_keeps_the_units():
    scm = models.chain()
    plain, acted = scm.sample(100, random_state=0), scm.do({"A": 1.5}).sample(100, random_state=0)
    assert (acted["A"] == 1.5).all()
    assert (acted["S"] == plain["S"]).all()
    noise = plain["L"] - plain["A"] ** 2 - plain["S"]
    np.testing.assert_allclose(acted["L"], 1.5**2 + plain["S"] + noise)


def test_an_action_may_be_an_array_a_function_a_shift_or_a_law():
    scm = models.chain()
    values = np.linspace(0, 1, 20)
    plain = scm.sample(20, random_state=0)
    assert (scm.do({"A": values}).sample(20, random_state=0)["A"] == values).all()
    assert (scm.do({"A": pd.Series(values, index=range(5, 25))}).sample(20, random_state=0)["A"] == values).all()
    np.testing.assert_allclose(scm.do({"A": lambda p: 2 * p["S"]}).sample(20, random_state=0)["A"], 2 * plain["S"])
    np.testing.assert_allclose(scm.do({"A": lambda p: p["A"] + 1}).sample(20, random_state=0)["A"], plain["A"] + 1)
    drawn = scm.do({"A": norm(5, 0.1)}).sample(4000, random_state=0)["A"]
    assert abs(drawn.mean() - 5) < 0.02
    own = scm.do({"A": lambda p, g: g.integers(2, size=len(p["S"])) * 1.0}).sample(50, random_state=0)["A"]
    assert set(own) == {0.0, 1.0}


def test_later_actions_win_over_earlier_ones():
    scm = models.chain().do({"A": 1.0, "L": 0.0}).do({"A": 2.0})
    rows = scm.sample(5, random_state=0)
    assert (rows["A"] == 2).all()
    assert (rows["L"] == 0).all()


def test_a_vector_is_one_node_and_several_columns():
    rows = models.labels().sample(4, random_state=0)
    assert list(rows) == ["A", "V[0]", "V[1]", "Y", "job"]
    acted = models.labels().counterfactual(rows, {"V": [1.0, 2.0]})
    assert (acted[["V[0]", "V[1]"]].to_numpy() == [1.0, 2.0]).all()


# ---------------------------------------------------------------- counterfactuals


@pytest.mark.parametrize("seed", range(5))
def test_linear_gaussian_counterfactuals_equal_the_matrix_formula(seed):
    generator = np.random.default_rng(seed)
    scm, weights, names = models.linear_gaussian(generator)
    rows = scm.sample(40, random_state=generator)
    target = int(generator.integers(len(names)))
    value = generator.normal(size=40)
    # u = (I − B) x; the acted system has row `target` of B erased and its noise set to the value.
    noise = rows[names].to_numpy() @ (np.eye(len(names)) - weights).T
    acted = weights.copy()
    acted[target] = 0
    noise[:, target] = value
    expected = noise @ np.linalg.inv(np.eye(len(names)) - acted).T
    found = scm.counterfactual(rows, {names[target]: value})[names].to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("build", [models.chain, models.labels, models.coins, models.rounded, models.hidden])
def test_a_counterfactual_at_the_observed_value_is_the_observed_row(build):
    scm = build()
    rows = scm.sample(300, random_state=1)
    again = scm.counterfactual(rows, {"A": rows["A"]}, random_state=2)
    assert list(again) == list(rows)
    for column in rows:
        if isinstance(rows[column].dtype, pd.CategoricalDtype):
            assert (again[column] == rows[column]).all()
        else:
            np.testing.assert_allclose(again[column], rows[column], atol=1e-10)


def test_counterfactual_keeps_the_index_and_leaves_the_rows_alone():
    scm = models.chain()
    rows = scm.sample(3, random_state=0).set_index(pd.Index(["a", "b", "c"], name="who"))
    before = rows.copy()
    found = scm.counterfactual(rows, {"A": 0.0})
    assert found.index.equals(rows.index)
    pd.testing.assert_frame_equal(rows, before)


def test_the_three_steps_by_hand_equal_the_one_call():
    scm = models.chain()
    rows = scm.sample(20, random_state=0)
    by_hand = scm.do({"A": 2.0}).predict(scm.abduct(rows))
    pd.testing.assert_frame_equal(by_hand, scm.counterfactual(rows, {"A": 2.0}))


def test_kept_noise_makes_non_invertible_models_exact():
    graph = CausalGraph.from_edges("A -> Y")
    scm = StructuralCausalModel(
        graph,
        {"A": Additive(), "Y": lambda p, u: p["A"] * u**2},
        {"A": norm(), "Y": norm()},
    )
    units = scm.sample_units(100, random_state=0)
    found = scm.counterfactual(units, {"A": 3.0})
    np.testing.assert_allclose(found["Y"], 3 * units.noise["Y"] ** 2)
    assert units.exact


def test_several_draws_stand_in_a_second_index_level():
    scm = models.coins()
    rows = scm.sample(4, random_state=0)
    found = scm.counterfactual(rows, {"A": "no"}, n_draws=3)
    assert found.index.names == ["row", "draw"]
    assert len(found) == 12
    assert (found["A"] == "no").all()


def test_an_outcome_may_be_left_out_but_a_cause_may_not():
    scm = models.chain()
    rows = scm.sample(5, random_state=0)
    without = scm.counterfactual(rows.drop(columns="Y"), {"A": 1.0})
    pd.testing.assert_frame_equal(without, scm.counterfactual(rows, {"A": 1.0}).drop(columns="Y"))
    with pytest.raises(InputError, match="lacks the column 'S'"):
        scm.counterfactual(rows.drop(columns="S"), {"A": 1.0})


def test_nodes_that_cannot_be_abducted_do_not_matter_where_no_action_reaches_them():
    graph = CausalGraph.from_edges("A -> Y", nodes=["B"])
    scm = StructuralCausalModel(
        graph,
        {"A": Additive(), "B": lambda p, u: u**2, "Y": Additive(lambda p: p["A"])},
        {"A": norm(), "B": norm(), "Y": norm()},
    )
    rows = scm.sample(5, random_state=0)
    assert (scm.counterfactual(rows, {"A": 0.0})["B"] == rows["B"]).all()
    with pytest.raises(InputError, match="noise of B cannot be read back"):
        scm.abduct(rows)


def test_no_rows_give_no_rows():
    scm = models.labels()
    empty = scm.sample(0, random_state=0)
    assert len(scm.counterfactual(empty, {"A": 1.0})) == 0


# ---------------------------------------------------------------- users' mistakes


def test_cyclic_equations_are_refused_with_the_cycle():
    with pytest.raises(GraphError, match="A → B"):
        CausalGraph.from_edges("A -> B, B -> A")


def one(**changes):
    parts = {
        "graph": CausalGraph.from_edges("A -> Y"),
        "equations": {"A": lambda p, u: u, "Y": lambda p, u: p["A"] + u},
        "noise": {"A": norm(), "Y": norm()},
    }
    return StructuralCausalModel(**{**parts, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"equations": {"A": lambda p, u: u}}, "Y has no equation"),
        ({"noise": {"A": norm()}}, "Y has no noise law"),
        ({"noise": {"A": norm(), "Y": "normal"}}, "noise of Y must be"),
        ({"equations": {"A": 1.0, "Y": lambda p, u: u}}, "equation of A must be a function"),
        ({"equations": {"A": Additive(), "Y": Additive(), "Q": Additive()}}, "'Q', which is not in the graph"),
        ({"inverses": {"Y": 3}}, "inverse of Y must be a function"),
        ({"kinds": {"Y": "vector"}}, "kind of Y must be"),
        ({"graph": CausalGraph.from_edges("A -> Y", bidirected=[("A", "Y")])}, "A ↔ Y is a shared cause"),
        ({"graph": "A -> Y"}, "graph must be a CausalGraph"),
        ({"noise": pd.Series([1.0, 2.0])}, "noise must map names to values"),
        ({"equations": np.zeros(0)}, "equations must map names to values"),
    ],
)
def test_a_model_that_cannot_be_built_says_why(changes, message):
    with pytest.raises(CiplearnError, match=message):
        one(**changes)


def test_a_mechanism_with_its_own_noise_takes_no_other():
    with pytest.raises(InputError, match="brings its own noise"):
        one(equations={"A": GumbelMax(["a", "b"], [0.5, 0.5]), "Y": Additive()})


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        (lambda p, u: p["B"] + u, "asks for 'B', which is not among its parents"),
        (lambda p, u: u[:2], "must return shape"),
        (lambda p, u: np.full(len(u), "x"), "declare the node's levels"),
    ],
)
def test_an_equation_that_goes_wrong_is_named(equation, message):
    scm = one(equations={"A": Additive(), "Y": equation})
    with pytest.raises(InputError, match=f"equation of Y.*{message}"):
        scm.sample(5, random_state=0)


def test_an_equation_that_is_not_finite_is_named():
    scm = one(equations={"A": Additive(), "Y": lambda p, u: np.where(p["A"] > 0, np.inf, u)})
    with pytest.raises(InputError, match=r"equation of Y returned NaN or infinity in \d of 5 rows"):
        scm.sample(5, random_state=0)


def test_rows_that_a_node_without_noise_contradicts_are_refused():
    scm = one(equations={"A": Additive(), "Y": lambda p, u: 2 * p["A"]}, noise={"A": norm(), "Y": 0})
    assert scm.counterfactual(pd.DataFrame({"A": [1.0], "Y": [2.0]}), {"A": 3.0})["Y"][0] == 6
    with pytest.raises(InputError, match="No noise of Y reproduces its observed value in 1 of 1 rows"):
        scm.counterfactual(pd.DataFrame({"A": [1.0], "Y": [2.5]}), {"A": 3.0})


@pytest.mark.parametrize("labels", [list("cabde"), [7, 3, 9, 1, 0], pd.MultiIndex.from_product([[1], list("abcde")])])
def test_values_are_matched_with_rows_by_their_labels(labels):
    rows = one().sample(5, random_state=0).set_axis(labels)
    wanted = rows["A"] + 1
    plain = one().counterfactual(rows, {"A": wanted.to_numpy()})
    assert list(plain["A"]) == list(wanted)
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3]):
        pd.testing.assert_frame_equal(one().counterfactual(rows, {"A": wanted.iloc[order]}), plain)
        pd.testing.assert_frame_equal(one().do({"A": wanted.iloc[order]}).predict(one().abduct(rows)), plain)


def test_values_of_vectors_labels_and_draws_are_matched_too():
    scm = models.labels()
    rows = scm.sample(5, random_state=0)
    vectors = rows[["V[0]", "V[1]"]]
    found = scm.counterfactual(rows, {"V": vectors[::-1], "job": rows["job"][::-1]}, n_draws=3)
    assert (found["V[1]"].to_numpy() == np.repeat(vectors["V[1]"].to_numpy(), 3)).all()
    assert (found["job"].to_numpy() == np.repeat(rows["job"].to_numpy(), 3)).all()


def test_rows_that_share_labels_take_values_in_their_order():
    rows = one().sample(4, random_state=0).set_axis([0, 0, 1, 1])
    found = one().counterfactual(rows, {"A": pd.Series([1.0, 2.0, 3.0, 4.0])})
    assert list(found["A"]) == [1, 2, 3, 4]


@pytest.mark.parametrize("labels", [list("abcde"), [0, 1, 2, 3, 3], [1, 2, 3, 4, 5]])
def test_values_with_other_labels_than_the_rows_are_refused(labels):
    rows = one().sample(5, random_state=0)
    with pytest.raises(InputError, match=r"values for A do not have the labels of the rows.*pass .*to_numpy\(\)"):
        one().counterfactual(rows, {"A": pd.Series(range(5), index=labels)})


def test_predict_takes_units_not_rows():
    with pytest.raises(InputTypeError, match="for rows use counterfactual"):
        one().predict(one().sample(3, random_state=0))


def test_a_noise_law_with_the_wrong_number_of_rows_is_named():
    with pytest.raises(InputError, match="noise of Y must give 5 rows"):
        one(noise={"A": norm(), "Y": lambda n, g: g.normal(size=3)}).sample(5, random_state=0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pd.DataFrame({"A": [1.0], "Y": [np.nan]}), "'Y' holds NaN or infinity in 1 of 1 rows"),
        (pd.DataFrame({"A": [np.inf], "Y": [1.0]}), "'A' holds NaN"),
        (pd.DataFrame({"A": [1.0], "Y": [1.0], "zip": [3]}), "'zip', which belongs to no observed node"),
        (pd.DataFrame({"A": ["x"], "Y": [1.0]}), "'A' must hold numbers"),
        (pd.DataFrame({"Y": [1.0]}), "lacks the column 'A'"),
        (np.zeros((2, 2)), "rows must be a pandas DataFrame"),
        (pd.DataFrame([[1.0, 2.0, 3.0]], columns=["A", "Y", "Y"]), "two columns named 'Y'"),
    ],
)
def test_bad_rows_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        one().counterfactual(rows, {"A": 1.0})


@pytest.mark.parametrize(
    ("interventions", "message"),
    [
        ({"B": 1.0}, "'B', which is not in the graph"),
        ({"A": "high"}, "A takes numbers"),
        ({"A": [1.0, 2.0]}, "values of shape"),
        ({"A": np.nan}, "NaN or infinity"),
        ([("A", 1)], "must map nodes to values"),
        ({"A": lambda p, g, x: 1.0}, "3 arguments"),
    ],
)
def test_bad_interventions_are_refused(interventions, message):
    rows = one().sample(5, random_state=0)
    with pytest.raises(CiplearnError, match=message):
        one().counterfactual(rows, interventions)


def test_an_intervention_outside_the_levels_names_the_levels():
    rows = models.coins().sample(5, random_state=0)
    with pytest.raises(InputError, match="A cannot be 'maybe', which is none of its levels; use one of 'no', 'yes'"):
        models.coins().counterfactual(rows, {"A": "maybe"})


def test_a_label_outside_the_levels_in_the_rows_is_refused():
    rows = models.coins().sample(5, random_state=0).astype(str)
    rows.loc[2, "X"] = "perhaps"
    with pytest.raises(InputError, match="X cannot be 'perhaps'"):
        models.coins().counterfactual(rows, {"A": "no"})


def test_a_missing_part_of_a_vector_is_named():
    rows = models.labels().sample(5, random_state=0).drop(columns="V[1]")
    with pytest.raises(InputError, match=r"lacks the column 'V\[1\]' of the vector V"):
        models.labels().counterfactual(rows, {"A": 0.0})


def test_an_inverse_that_does_not_fit_is_noticed():
    scm = one(inverses={"Y": lambda p, v: v + p["A"]})
    rows = scm.sample(5, random_state=0)
    with pytest.raises(InputError, match="inverse of Y does not fit"):
        scm.counterfactual(rows, {"A": 1.0})


@pytest.mark.parametrize("seed", [-1, 1.5, "zero", True])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(InputTypeError, match="random_state must be"):
        one().sample(3, random_state=seed)


@pytest.mark.parametrize(
    "kind", [lambda: Vector(0), lambda: Vector(10**19), lambda: Categories(["a"]), lambda: Categories("ab")]
)
def test_impossible_kinds_are_refused(kind):
    with pytest.raises(InputError):
        kind()


@pytest.mark.parametrize("counts", [{"n_draws": 10**19}, {"n_candidates": 10**19}])
def test_more_draws_than_memory_holds_are_refused(counts):
    rows = models.coins().sample(5, random_state=0)
    with pytest.raises(InputError, match=f"{next(iter(counts))} must be at most"):
        models.coins().counterfactual(rows, {"A": "no"}, **counts)


def test_the_model_prints_what_it_is():
    assert repr(models.chain().do({"A": 1.0})) == "StructuralCausalModel(4 nodes, known equations, do(A))"


def test_one_draw_of_each_row_can_be_taken_alone():
    scm = datasets.first_synthetic()
    units = scm.abduct(scm.sample(3, random_state=0), n_draws=2, random_state=0)
    taken = units.take([2, 0, 2], [1, 0, 0])
    assert (taken.n, taken.draws, list(taken.index)) == (3, 1, [2, 0, 2])
    for node, noise in units.noise.items():
        assert (taken.noise[node] == noise[[2 * 2 + 1, 0, 2 * 2]]).all()
