from dataclasses import replace

import numpy as np
import pytest

from ciplearn.datasets import graphs
from reproduction import sprites as dsprites
from tests.causal.exact import BinaryModel, invariance_error

FEATURES = ["X_A⊥", "X_Y⊥", "X∧"]


@pytest.mark.parametrize(
    ("graph", "given", "right"),
    [
        (graphs.figure_a, ["S"], ("A", "L")),
        (graphs.figure_d, ["S"], ("A", "L")),
        (graphs.figure_e, ["C"], ("A", "L")),
        (graphs.figure_f, ["C"], ("A", "L", "U")),
        (graphs.adult, ["C"], ("A", "D", "M", "R")),
        (graphs.image, ["shape", "y_pos"], ("color", "orientation", "scale", "x_pos")),
    ],
)
def test_graphs_of_the_paper_hold_with_the_adjustment_set_of_the_paper(graph, given, right):
    verdict = graph().criterion(adjustment=given)
    assert verdict.holds
    assert verdict.paper_condition
    assert verdict.independence.right == right
    assert verdict.injective == ()


@pytest.mark.parametrize(
    ("graph", "given"),
    [
        (graphs.figure_a, ("S",)),
        (graphs.figure_b, ("X_A⊥",)),
        (graphs.figure_c, ("X_A⊥", "Y")),
        (graphs.figure_d, ("S",)),
        (graphs.figure_e, ("C",)),
        (graphs.figure_f, ("C", "L")),
        (graphs.adult, ("C",)),
        (graphs.adult_columns, ("native-country", "race")),
        (graphs.image, ("color", "orientation", "shape", "y_pos")),
    ],
)
def test_default_adjustment_sets_of_the_graphs_of_the_paper(graph, given):
    verdict = graph().criterion()
    assert verdict.holds
    assert verdict.adjustment == given


def test_causal_veitch_graph_fails_for_the_outcome_and_passes_for_the_predictor():
    graph = graphs.figure_b()
    assert list(graph.minimal_adjustment_sets("A", "Y")) == []
    verdict = graph.criterion(adjustment=["X_A⊥"])
    assert verdict.holds
    assert not verdict.paper_condition
    assert any("A ↔ Y is open: the common cause of A and Y is unobserved" in reason for reason in verdict.reasons)


def test_anticausal_veitch_graph_passes_given_the_outcome_and_fails_for_the_outcome():
    verdict = graphs.figure_c().criterion(context=[], adjustment=["Y"])
    assert verdict.holds
    assert not verdict.paper_condition
    assert str(verdict.independence) == "Ŷ ⊥ {A} | {Y}"
    assert any("needs it in training only" in warning for warning in verdict.warnings)


def _error_among_the_selected(verdict, seed):
    """Exact error of invariance where all rows, of the data and of the question, are selected ones."""
    model = BinaryModel.at_random(verdict.graph, np.random.default_rng(seed))
    model.weight = np.where(model.run()["selected"] == 1, model.weight, 0.0)
    return invariance_error(model, verdict)


def test_selected_rows_are_certified_given_the_outcome_and_only_then():
    graph = graphs.veitch_selection()
    verdict = graph.criterion(context=[], inputs=FEATURES, adjustment=["Y", "selected"])
    assert verdict.holds
    assert not verdict.paper_condition
    assert str(verdict.independence) == "Ŷ ⊥ {A} | {Y, selected}"
    assert max(_error_among_the_selected(verdict, seed) for seed in range(20)) < 1e-9
    alone = graph.criterion(context=[], inputs=FEATURES, adjustment=["selected"])
    assert not alone.holds
    assert any("A → selected ← Y ← X_A⊥ → Ŷ is open" in reason for reason in alone.reasons)
    assert max(_error_among_the_selected(alone, seed) for seed in range(20)) > 1e-3


def test_selected_rows_are_refused_where_the_association_is_not_purely_spurious():
    graph = graphs.veitch_selection()
    graph = replace(graph, directed=(*graph.directed, ("X∧", "Y")))
    verdict = graph.criterion(context=[], inputs=FEATURES, adjustment=["Y", "selected"])
    assert not verdict.holds
    assert max(_error_among_the_selected(verdict, seed) for seed in range(20)) > 1e-3


def test_penalty_of_the_paper_on_the_anticausal_graph_is_vacuous():
    verdict = graphs.figure_c().criterion(context=["A"], inputs=FEATURES, adjustment=FEATURES)
    assert not verdict.holds
    assert any("vacuous" in warning for warning in verdict.warnings)


def test_adult_by_columns_needs_no_injective_noise_unless_an_input_is_outside_the_context():
    graph = graphs.adult_columns()
    verdict = graph.criterion()
    assert verdict.holds
    assert verdict.protected == ("age", "sex")
    assert verdict.injective == ()
    narrower = graph.criterion(context=[name for name in verdict.context if name != "education"])
    assert not narrower.holds
    assert graph.latent == {"H_m", "H_d", "H_r"}


def test_image_graph_has_the_names_of_its_equations_and_draws_all_that_they_use():
    drawn, equations = graphs.image(), dsprites.image_latents().graph
    assert set(drawn.nodes) == set(equations.nodes) == {*dsprites.FACTORS, "Y"}
    assert set(equations.directed) <= set(drawn.directed)
