import json
import random
import time
from itertools import combinations, product

import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import GraphError
from ciplearn.causal import ClassVerdict
from tests.causal.oracle import drawing, random_graph


def _colliders(graph):
    joined = {frozenset(edge) for edge in (*graph.directed, *graph.bidirected, *graph.undirected)}
    heads = {*graph.directed, *graph.bidirected, *((b, a) for a, b in graph.bidirected)}
    return {
        (frozenset((a, c)), b)
        for a, b in heads
        for c, other in heads
        if b == other and a != c and frozenset((a, c)) not in joined
    }


def _members_by_hand(graph):
    found = set()
    for choice in product((False, True), repeat=len(graph.undirected)):
        directed = [(b, a) if flip else (a, b) for flip, (a, b) in zip(choice, graph.undirected, strict=True)]
        try:
            member = CausalGraph.from_edges(
                [*graph.directed, *directed], bidirected=graph.bidirected, latent=graph.latent, nodes=graph.nodes
            )
        except GraphError:
            continue
        if _colliders(member) == _colliders(graph):
            found.add(member)
    return found


def test_members_equal_a_search_over_all_orientations():
    rng = random.Random(13)
    sizes = []
    for _ in range(500):
        whole = random_graph(rng, 5)
        loose = [edge for edge in whole.directed if rng.random() < 0.6 and edge not in whole.bidirected]
        loose = [e for e in loose if tuple(reversed(e)) not in whole.bidirected]
        graph = CausalGraph.from_edges(
            [edge for edge in whole.directed if edge not in loose],
            bidirected=whole.bidirected,
            undirected=loose,
            latent=whole.latent,
            nodes=whole.nodes,
        )
        members = list(graph.members())
        assert len(members) == len(set(members))
        assert set(members) == _members_by_hand(graph), graph
        sizes.append(len(members))
    assert max(sizes) > 5


def test_markov_equivalent_members_have_the_same_separations():
    members = list(CausalGraph.from_dagitty("pdag { A -- B -- C -- D }").members())
    assert len(members) == 4
    facts = {
        drawing(m).separated({"A"}, {"C"}, {"B"}) and not drawing(m).separated({"A"}, {"C"}, set()) for m in members
    }
    assert facts == {True}


def test_criterion_over_a_class_holds_in_all():
    verdict = CausalGraph.from_dagitty("pdag { A -- B ; A -> Y ; B -> Y }").criterion("Y", "A")
    assert isinstance(verdict, ClassVerdict)
    assert verdict.holds
    assert verdict.holds_in == "all"
    assert len(verdict.members) == 2


def test_criterion_over_a_class_names_the_edge_that_decides():
    graph = CausalGraph.from_dagitty("pdag { A -- M ; A -> Y ; M -> Y }")
    verdict = graph.criterion("Y", "A", context=["A"], inputs=["A", "M"], adjustment=[])
    assert not verdict.holds
    assert verdict.holds_in == "some"
    assert verdict.deciding == (("A", "M"),)
    assert "the edge A − M decides: it holds in all with A → M and in none with M → A" in verdict.reasons[0]
    assert verdict.repairs[0].changes[0].kind == "direct edge"
    content = json.loads(json.dumps(verdict.to_dict()))
    assert content["deciding"] == [["A", "M"]]
    assert {member["holds"] for member in content["members"]} == {True, False}


def test_criterion_over_a_class_holds_in_none():
    graph = CausalGraph.from_dagitty("pdag { U [latent] U -> A ; U -> Q ; A -- B ; Q -> Y; B -> Y }")
    verdict = graph.criterion("Y", "A", context=["A"], inputs=["Q"], adjustment=[])
    assert verdict.holds_in == "none"
    assert not verdict.holds


def test_one_adjustment_set_serves_the_whole_class():
    verdict = CausalGraph.from_dagitty("pdag { A -- B ; A -> Y ; B -> Y }").criterion("Y", "A")
    assert {member.adjustment for member in verdict.members} == {verdict.adjustment}


def test_large_class_is_judged_up_to_a_bound_and_says_so():
    graph = CausalGraph.from_edges(undirected=[(f"v{i}", f"v{i + 1}") for i in range(400)], nodes=["Y"])
    verdict = graph.criterion("Y", "v0", context=["v0"], inputs=["v0"])
    assert not verdict.complete
    assert not verdict.holds
    assert "the first 256 graphs" in verdict.reasons[0]
    assert "direct some of the 400 undirected edges" in verdict.reasons[0]


def test_class_without_a_member_is_refused():
    graph = CausalGraph.from_edges(undirected=[("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")])
    assert list(graph.members()) == []
    with pytest.raises(GraphError, match="No graph directs every undirected edge"):
        graph.criterion("D", "A")


def joined(count):
    names = [f"n{i}" for i in range(count)]
    return CausalGraph(undirected=list(combinations(names, 2)))


PAIRS = [(f"a{i}", f"b{i}") for i in range(12)]
LARGE = {
    "24 nodes that are all joined": (joined(24), {"protected": ["n20", "n21"], "context": ["n1", "n20"]}, 157),
    "40 nodes that are all joined": (joined(40), {"protected": ["n4"]}, 32),
    "a set per graph": (
        CausalGraph(undirected=PAIRS, directed=[(name, "n0") for pair in PAIRS for name in pair]),
        {"protected": [a for a, _ in PAIRS], "context": ["b1"]},
        256,
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_a_large_class_is_judged_in_seconds_and_says_how_much_of_it(case):
    graph, roles, judged = LARGE[case]
    before = time.process_time()
    verdict = graph.criterion(outcome="n0", **roles)
    # The first took 54 s, the last 48 s.
    assert time.process_time() - before < 15
    assert not verdict.complete
    assert not verdict.holds
    assert len(verdict.members) == judged
    assert f"the first {judged} graphs" in verdict.findings[0].sentence
