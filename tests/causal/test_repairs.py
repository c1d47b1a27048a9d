import random

import pytest

from ciplearn.causal import CausalGraph, Change, Independence, Repair
from tests.causal.oracle import random_graph


def _kinds(verdict):
    return {(change.kind, change.nodes) for repair in verdict.repairs for change in repair.changes}


def test_latent_confounder_may_be_measured_argued_away_or_kept_out_of_the_inputs():
    graph = CausalGraph.from_edges("U -> A, U -> Q, A -> Y, Q -> Y", latent="U")
    verdict = graph.criterion("Y", "A", context=["A"], inputs=["A", "Q"], adjustment=[])
    assert [(c.kind, c.nodes) for c in verdict.repairs[0].changes] == [("adjust for", ("Q",))]


def test_repairs_of_a_hidden_common_cause_name_it():
    graph = CausalGraph.from_edges("A -> M -> L -> Y, U -> M, U -> Q, Z -> U, A -> Q -> Y", latent=["U"])
    verdict = graph.criterion("Y", "A", context=["A", "M", "L"], inputs=["M", "L", "Q"])
    assert not verdict.holds
    kinds = _kinds(verdict)
    assert ("measure", ("U",)) in kinds
    assert ("drop edge", ("U", "M")) in kinds
    assert any("Measure U: then Ŷ ⊥" in str(repair) for repair in verdict.repairs)


def test_bidirected_edge_may_be_measured_or_argued_away():
    graph = CausalGraph.from_edges("A -> Y, A <-> B, B -> C, C <-> A, C -> Y", nodes=["B"])
    verdict = graph.criterion("Y", "A", context=["A"], inputs=["A", "B"], adjustment=[])
    assert not verdict.holds
    assert verdict.repairs
    latent = CausalGraph.from_edges("A -> L, L -> Y, A -> Q -> Y, L <- P, P <-> Q", latent=["P"])
    stuck = latent.criterion("Y", "A", context=["L"], inputs=["L", "Q"])
    assert not stuck.holds
    assert ("drop edge", ("P", "L")) in _kinds(stuck)
    assert ("drop common cause", ("P", "Q")) in _kinds(stuck)


def test_an_input_outside_the_context_may_join_it():
    graph = CausalGraph.from_edges("A -> Q -> Y, A <-> Q")
    verdict = graph.criterion("Y", "A", context=[], inputs=["Q"])
    assert not verdict.holds
    assert ("add to context", ("Q",)) in _kinds(verdict)


def test_every_repair_of_random_graphs_is_true_and_none_is_needed_where_it_holds():
    rng = random.Random(11)
    repaired = failing = 0
    for _ in range(1500):
        graph = random_graph(rng, 6)
        observed = rng.sample(list(graph.observed), len(graph.observed))
        if len(observed) < 3:
            continue
        roles = {
            "outcome": observed[0],
            "protected": observed[1:2],
            "context": [name for name in observed[1:] if rng.random() < 0.6],
            "inputs": [name for name in observed[1:] if rng.random() < 0.8],
        }
        verdict = graph.criterion(**roles)
        if verdict.holds:
            assert verdict.repairs == ()
            continue
        failing += 1
        sizes = {len(repair.changes) for repair in verdict.repairs}
        assert len(sizes) <= 1
        for repair in verdict.repairs:
            changed, parts = graph, dict(roles)
            for change in repair.changes:
                changed, parts = _applied(change, changed, parts)
            again = changed.criterion(**parts)
            assert again.holds, (graph, repair)
            assert again.independence == repair.independence
            repaired += 1
    assert failing > 30
    assert repaired > 60


def _applied(change, graph, parts):
    from dataclasses import replace

    node = change.nodes[0]
    if change.kind == "measure" and len(change.nodes) == 1:
        return replace(graph, latent=graph.latent - {node}), parts
    if change.kind == "measure":
        cause = f"common cause of {change.nodes[0]} and {change.nodes[1]}"
        kept = tuple(pair for pair in graph.bidirected if pair != change.nodes)
        added = tuple((cause, end) for end in change.nodes)
        return replace(graph, bidirected=kept, directed=(*graph.directed, *added)), parts
    if change.kind == "drop edge":
        return replace(graph, directed=tuple(e for e in graph.directed if e != change.nodes)), parts
    if change.kind == "drop common cause":
        return replace(graph, bidirected=tuple(e for e in graph.bidirected if e != change.nodes)), parts
    role = "inputs" if change.kind == "drop from inputs" else "context"
    names = [name for name in parts[role] if name != node] + [node] * (change.kind == "add to context")
    return graph, {**parts, role: names}


def test_failing_verdict_says_what_a_penalty_can_still_buy():
    graph = CausalGraph.from_edges("A -> M, M -> L, L -> Y, U -> M, U -> V, V -> U2, A -> Q", latent=["M"])
    verdict = graph.criterion("Y", "A", context=["A", "L"], inputs=["A", "L", "Q"])
    assert not verdict.holds
    first, last = verdict.weaker[0], verdict.weaker[-1]
    assert "counterfactual invariance in {A} with respect to {A}, a smaller context" in first.implies
    assert first.independence.right == ("A",)
    assert last.implies.startswith("parity in the data")
    assert any("an intervention on" in fallback.implies for fallback in verdict.weaker)


def test_certified_smaller_context_is_truly_certified():
    rng = random.Random(12)
    seen = 0
    for _ in range(800):
        graph = random_graph(rng, 6)
        if len(graph.observed) < 3:
            continue
        outcome, protected, *rest = rng.sample(list(graph.observed), len(graph.observed))
        verdict = graph.criterion(outcome, protected, [name for name in rest if rng.random() < 0.6])
        for fallback in verdict.weaker:
            if "smaller context" in fallback.implies:
                known = {*fallback.independence.right, *fallback.independence.given}
                again = graph.criterion(outcome, protected, known - {outcome}, None, fallback.independence.given)
                assert again.holds
                seen += 1
    assert seen > 10


def test_three_changes_of_a_repair_have_one_and_between_them():
    changes = tuple(Change("measure", (name,), f"measure {name}") for name in "HUV")
    repair = Repair(changes, Independence("A"))
    assert str(repair) == "Measure H, measure U and measure V: then Ŷ ⊥ {A} suffices."


@pytest.mark.parametrize(
    ("kind", "nodes", "graph", "context", "inputs"),
    [
        ("measure", ("U",), {"latent": frozenset()}, ("A",), ("A", "L")),
        (
            "measure",
            ("A", "L"),
            {"bidirected": (), "nodes": ("A", "L", "U", "Y", "common cause of A and L")},
            ("A",),
            ("A", "L"),
        ),
        ("drop edge", ("U", "A"), {"directed": (("A", "L"), ("L", "Y"))}, ("A",), ("A", "L")),
        ("drop common cause", ("A", "L"), {"bidirected": ()}, ("A",), ("A", "L")),
        ("direct edge", ("U", "Y"), {"undirected": ()}, ("A",), ("A", "L")),
        ("adjust for", ("L",), {"adjusted": ("L",)}, ("A",), ("A", "L")),
        ("add to context", ("L",), {}, ("A", "L"), ("A", "L")),
        ("drop from context", ("A",), {}, (), ("A", "L")),
        ("drop from inputs", ("A",), {}, ("A",), ("L",)),
    ],
)
def test_change_does_to_graph_and_roles_what_it_says(kind, nodes, graph, context, inputs):
    loose = [("U", "Y")] if kind == "direct edge" else []
    drawn = CausalGraph.from_edges("U -> A -> L -> Y, A <-> L", latent=["U"], undirected=loose)
    change = Change(kind, nodes, "")
    after, *roles = change.applied(drawn, ("A",), ("A", "L"))
    assert roles == [context, inputs]
    assert {name: getattr(after, name) for name in graph} == graph
    assert ("U", "Y") in after.directed or kind != "direct edge"
    assert after != drawn or not graph
