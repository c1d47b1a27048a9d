import json
import random

import pytest

from ciplearn import CausalGraph, Independence
from ciplearn._core.errors import GraphError, InputTypeError
from ciplearn.causal.criterion import Conditions, some_set_certifies
from ciplearn.causal.graph import read_question
from tests.causal.oracle import certifies, conditions, drawing, random_graph, subsets


def _random_problem(rng):
    while True:
        graph = random_graph(rng, 6)
        observed = rng.sample(list(graph.observed), len(graph.observed))
        if len(observed) > 1:
            break
    outcome, rest = observed[0], observed[1:]
    protected = rest[: rng.randint(1, min(2, len(rest)))]
    context = [name for name in rest if rng.random() < 0.6]
    inputs = [name for name in rest if rng.random() < 0.6]
    return graph, outcome, protected, context, inputs


def test_conditions_equal_their_wording_on_random_graphs():
    rng = random.Random(7)
    cases = {True: 0, False: 0}
    confounded = by_inputs = 0
    for _ in range(1500):
        graph, outcome, protected, context, inputs = _random_problem(rng)
        allowed = [name for name in graph.observed if name not in protected]
        for s in list(subsets(rng.sample(allowed, len(allowed))))[:10]:
            verdict = graph.criterion(outcome, protected, context, inputs, s)
            wording = conditions(graph, set(protected), set(context), tuple(inputs), s)
            found = {
                name: all(f.holds for f in verdict.findings if f.condition == name) for name in ("validity", "parents")
            }
            assert verdict.holds == certifies(wording)
            short = any(f.condition == "inputs" for f in verdict.findings)
            assert short <= wording["inputs"]
            if not short:
                assert found == {"validity": wording["validity"], "parents": wording["parents"]}, (graph, verdict)
            assert set(verdict.injective) == (set() if wording["inputs"] else wording["injective"])
            cases[verdict.holds] += 1
            confounded += bool(verdict.injective)
            by_inputs += short
    assert min(cases.values()) > 2000
    assert confounded > 100
    assert by_inputs > 500


def test_paper_condition_equals_its_wording_on_random_graphs():
    rng = random.Random(8)
    cases = {True: 0, False: 0}
    for _ in range(1200):
        graph, outcome, protected, context, inputs = _random_problem(rng)
        verdict = graph.criterion(outcome, protected, context, inputs)
        s, known, drawn = set(verdict.adjustment), {*protected, *context}, drawing(graph)
        own_noise = {
            a
            for a in drawn.latent
            if [p for p, _ in drawn.edges].count(a) == 1 and a not in {b for _, b in drawn.edges}
        }
        parents = all(a in known | own_noise for a, b in drawn.edges if b in known - set(protected))
        valid = outcome not in s and drawn.valid(known - s, {outcome}, s)
        assert verdict.paper_condition == (valid and parents), (graph, verdict)
        cases[verdict.paper_condition] += 1
    assert min(cases.values()) > 200


def test_default_adjustment_is_the_best_of_all_sets_on_random_graphs():
    rng = random.Random(9)
    kinds = {"inside": 0, "outside": 0, "outcome": 0, "inputs": 0, "none": 0}
    for _ in range(2500):
        graph, outcome, protected, context, inputs = _random_problem(rng)
        known = {*protected, *context}

        problem = (graph, set(protected), set(context), tuple(inputs))
        allowed = [name for name in graph.observed if name not in protected]
        judged = {frozenset(s): conditions(*problem, s) for s in subsets(allowed)}
        by_paths = [s for s, wording in judged.items() if wording["validity"] and wording["parents"]]
        by_inputs = [s for s, wording in judged.items() if wording["inputs"]]
        verdict = graph.criterion(outcome, protected, context, inputs)
        chosen = frozenset(verdict.adjustment)
        inside = [s for s in by_paths if s <= known]
        outside = [s for s in by_paths if outcome not in s]
        assert verdict.holds == bool(by_paths or by_inputs), (graph, verdict)
        roles = read_question(graph, outcome, protected, context, inputs, None)
        assert some_set_certifies(Conditions.of(graph, roles)) == verdict.holds
        if inside:
            kinds["inside"] += 1
            # Not only largest: every other certifying set inside the context is part of it.
            assert chosen in inside
            assert all(s <= chosen for s in inside), (graph, verdict)
        elif outside:
            kinds["outside"] += 1
            assert chosen in outside
            assert all(s & known <= chosen for s in outside)
            assert len(chosen - known) == min(len(s - known) for s in outside)
        elif by_paths:
            kinds["outcome"] += 1
            assert chosen in by_paths
        elif by_inputs:
            kinds["inputs"] += 1
            assert chosen in by_inputs
            assert all(s & known <= chosen for s in by_inputs)
            valid = any(judged[s]["validity"] for s in by_inputs if s & known == chosen & known)
            assert judged[chosen]["validity"] == valid
        else:
            kinds["none"] += 1
            # Where nothing certifies, the choice is valid at least, if anything is.
            assert judged[chosen]["validity"] == any(wording["validity"] for wording in judged.values())
    assert kinds.pop("inputs") > 15
    assert min(kinds.values()) > 60, kinds


def test_with_every_input_in_the_context_the_criterion_always_holds():
    rng = random.Random(14)
    for _ in range(300):
        graph, outcome, protected, context, _ = _random_problem(rng)
        assert graph.criterion(outcome, protected, context, inputs={*protected, *context}).holds


# -------------------------------------------------------------------------------- examples that must be refused


def test_confounder_of_the_inputs_is_seen_although_it_does_not_touch_the_outcome():
    graph = CausalGraph.from_edges("H -> A -> Y")
    verdict = graph.criterion("Y", "A", context=[], inputs=["A", "H"], adjustment=[])
    assert not verdict.holds
    assert verdict.paper_condition
    assert any("A ← H → Ŷ is open: H is not adjusted for" in reason for reason in verdict.reasons)


def test_effect_of_the_protected_variable_is_no_adjustment_set_although_valid_for_the_outcome():
    graph = CausalGraph.from_edges("A -> D, A -> Y")
    assert graph.is_valid_adjustment("A", "Y", "D")
    verdict = graph.criterion("Y", "A", context=["A"], inputs=["D"], adjustment=["D"])
    assert not verdict.holds
    assert any("vacuous" in warning for warning in verdict.warnings)


def test_protected_variable_in_the_adjustment_set_is_refused():
    with pytest.raises(GraphError, match="'A', which is protected"):
        CausalGraph.from_edges("A -> Y").criterion("Y", "A", adjustment="A")


def test_mediator_in_the_adjustment_set_is_refused_although_it_is_in_the_context():
    graph = CausalGraph.from_edges("A -> L -> Y, A -> Y")
    verdict = graph.criterion("Y", "A", context=["A", "L"], inputs=["L"], adjustment=["L"])
    assert not verdict.holds
    assert any("A → L → Ŷ" in reason for reason in verdict.reasons)


def test_parent_outside_of_everything_known_is_refused():
    graph = CausalGraph.from_edges("A -> S2 -> S1 -> L, Z -> S1", nodes=["Y"])
    verdict = graph.criterion("Y", "A", context=["A", "L"], inputs=["L", "Z"], adjustment=["S1", "S2"])
    assert not verdict.holds
    assert any(reason.startswith("Z → S1: S1 responds to A") for reason in verdict.reasons)


def test_confounded_response_is_certified_only_under_injective_total_noise():
    graph = CausalGraph.from_edges("A -> S2 -> S1 -> L, S1 <-> Q", nodes=["Y"])
    verdict = graph.criterion("Y", "A", context=["A", "L"], inputs=["L", "Q"], adjustment=["S1", "S2"])
    assert verdict.holds
    assert verdict.injective == ("S1",)
    assert any("{S1}: injective in the total noise" in assumption for assumption in verdict.assumptions)
    assert any("S1 ↔ Q" in reason for reason in verdict.reasons)


def test_latent_root_with_two_children_counts_like_a_bidirected_edge():
    drawn = CausalGraph.from_edges("A -> L -> Y, L <-> Y, Q -> Y")
    named = CausalGraph.from_edges("A -> L -> Y, H -> L, H -> Y, Q -> Y", latent="H")
    both = [graph.criterion("Y", "A", context=["A", "L"]) for graph in (drawn, named)]
    assert [verdict.holds for verdict in both] == [True, True]
    assert [verdict.injective for verdict in both] == [("L",), ("L",)]


def test_predictor_of_unaffected_inputs_is_certified_although_a_mediator_is_latent():
    graph = CausalGraph.from_edges("S->A, S->L, A->M, M->L, S->Y, L->Y, A->Y", latent="M")
    verdict = graph.criterion("Y", "A")
    assert verdict.holds
    assert str(verdict.independence) == "Ŷ ⊥ {A, L} | {S}"
    left = "the independence, under overlap, leaves a function of S alone"
    assert any(left in reason for reason in verdict.reasons)
    assert any(sentence.startswith("Overlap, on which the certificate rests") for sentence in verdict.assumptions)
    assert any("Only overlap" in warning and "M is latent" in warning for warning in verdict.warnings)
    assert verdict.open_paths == ()


def test_injective_noise_is_not_asked_for_where_the_inputs_certify():
    verdict = CausalGraph.from_edges("A -> L -> Y, L <-> Y").criterion("Y", "A")
    assert verdict.holds
    assert verdict.injective == ()
    assert any("leaves a constant" in reason for reason in verdict.reasons)


def test_input_below_the_protected_variable_is_not_certified_by_being_adjusted_for():
    graph = CausalGraph.from_edges("A -> L -> Y, A -> Y")
    assert not graph.criterion("Y", "A", inputs=["A", "L"], adjustment=["L"]).holds


def test_input_outside_the_context_asks_for_a_comparison_of_distributions():
    verdict = CausalGraph.from_edges("A -> Y, Q -> Y").criterion("Y", "A", context=[], inputs=["A", "Q"])
    assert any("also sees Q, which" in warning and "distributions" in warning for warning in verdict.warnings)


# -------------------------------------------------------------------------------- what a verdict says


def test_verdict_records_roles_and_prints_itself():
    graph = CausalGraph.from_dagitty("dag { S -> A -> L -> Y ; S -> {L Y} ; A -> Y }")
    verdict = graph.criterion(outcome="Y", protected=["A"], context=["A", "L", "S"])
    assert verdict.holds
    assert verdict.paper_condition
    assert verdict.independence == Independence(right=["L", "A"], given=["S"])
    assert (verdict.outcome, verdict.protected, verdict.adjustment) == ("Y", ("A",), ("S",))
    assert verdict.context == verdict.inputs == ("A", "L", "S")
    text = str(verdict)
    assert text.startswith(
        "Holds: a prediction that tells nothing about A and L among rows with the same S would have been the same, had "
        "A been different. That is about the drawing, not about a model: an audit judges a model.\n"
    )
    assert "  Ŷ ⊥ {A, L} | {S} makes the predictor counterfactually invariant in {A}" in text
    assert "Overlap: every value" in text
    assert "a function of S alone" in text
    assert verdict.repairs == ()
    assert verdict.weaker == ()


def test_headline_names_six_of_many_columns_in_words_and_all_in_signs():
    names = [f"L{number}" for number in range(1, 12)]
    edges = ", ".join(f"A -> {name}, {name} -> Y" for name in names)
    verdict = CausalGraph.from_edges(edges).criterion(outcome="Y", protected="A")
    words, signs = verdict.headline(), verdict.sections()[-1][1][0]
    assert words.startswith("Holds: a prediction that tells nothing about A, L1, L2, L3, L4, L5 and 6 more would have")
    assert all(name in signs for name in names)
    assert "⊥" not in words


def test_verdict_in_words_has_no_sign_and_begins_the_headline():
    verdict = CausalGraph.from_edges("S -> A, S -> L, A -> L, L -> Y").criterion(outcome="Y", protected="A")
    assert verdict.headline().startswith(f"{verdict.in_words()} That is about the drawing")
    assert not set(verdict.in_words()) & set("⊥{}|Ŷ")


def test_verdict_is_json_ready_with_all_its_parts():
    graph = CausalGraph.from_edges("U -> A, U -> L, A -> Y, L -> Y", latent="U")
    content = json.loads(json.dumps(graph.criterion("Y", "A", context=["A"], inputs=["L"], adjustment=[]).to_dict()))
    assert content["holds"] is False
    assert content["independence"]["text"] == "Ŷ ⊥ {A}"
    order = {"kind": "adjust for", "nodes": ["L"], "sentence": "adjust for {L} instead of ∅"}
    assert content["repairs"][0]["changes"] == [order]
    assert content["weaker"][-1]["implies"].startswith("parity in the data")


def test_verdict_has_no_truth_value_of_its_own():
    verdict = CausalGraph.from_edges("A -> Y").criterion("Y", "A")
    with pytest.raises(InputTypeError, match=r"ask verdict\.holds"):
        bool(verdict)


def test_context_and_inputs_default_to_all_observed_nodes_but_the_outcome():
    verdict = CausalGraph.from_edges("A -> Y, U -> Y, B -> Y", latent="U").criterion("Y", "A")
    assert verdict.context == verdict.inputs == ("A", "B")


def test_roles_in_the_text_are_defaults():
    graph = CausalGraph.from_dagitty("dag { A [exposure] Y [outcome] S [adjusted] S -> {A Y} A -> Y T -> Y }")
    verdict = graph.criterion()
    assert (verdict.protected, verdict.outcome, verdict.adjustment) == (("A",), "Y", ("S",))
    assert graph.criterion(adjustment=["S", "T"]).adjustment == ("S", "T")


def test_node_named_like_the_predictor_is_told_apart():
    verdict = CausalGraph.from_edges([("A", "Ŷ"), ("Ŷ", "Y")]).criterion("Y", "A")
    assert str(verdict.independence) == "Ŷ′ ⊥ {A, Ŷ}"


def test_empty_inputs_are_a_constant_predictor():
    verdict = CausalGraph.from_edges("A -> Y").criterion("Y", "A", inputs=[])
    assert verdict.holds
    assert any("vacuous" in warning for warning in verdict.warnings)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({}, "needs one outcome, but 0"),
        ({"outcome": "Y"}, "Nothing is protected"),
        ({"outcome": "Y", "protected": []}, "Nothing is protected"),
        ({"outcome": ["Y", "L"], "protected": "A"}, "needs one outcome, but 2"),
        ({"outcome": "Y", "protected": "Y"}, "protected names the outcome"),
        ({"outcome": "Y", "protected": "A", "context": ["A", "Y"]}, "context names the outcome"),
        ({"outcome": "Y", "protected": "A", "inputs": ["A", "Y"]}, "the predictor would see what it predicts"),
        ({"outcome": "Y", "protected": "U"}, "'U', which is latent"),
        ({"outcome": "Y", "protected": "A", "context": "U"}, "'U', which is latent"),
        ({"outcome": "Y", "protected": "A", "adjustment": "U"}, "'U', which is latent"),
        ({"outcome": "Y", "protected": "A", "inputs": "Gendr"}, "did you mean 'Gender'"),
        ({"outcome": "Y", "protected": 5}, "protected must be a name or a list of names"),
    ],
)
def test_roles_that_cannot_be_played_are_refused_in_words(roles, message):
    graph = CausalGraph.from_edges("U -> A, A -> L -> Y, U -> Y, Gender -> Y", latent="U")
    with pytest.raises(GraphError, match=message):
        graph.criterion(**roles)
