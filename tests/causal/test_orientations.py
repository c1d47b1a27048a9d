from itertools import combinations, product

import numpy as np
import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import GraphError

CHAIN = CausalGraph.from_edges("A -> B, B -> C")


def at_random(seed, size=5):
    draw = np.random.default_rng(seed)
    names = draw.permutation([f"x{place}" for place in range(size)]).tolist()
    edges = [pair for pair in combinations(names, 2) if draw.uniform() < 0.55]
    return CausalGraph(nodes=sorted(names), directed=edges)


def same_independencies(graph):
    """Every graph with the same adjacencies that implies the same separations, by brute force."""
    observed = graph.nodes
    questions = [
        (a, b, z)
        for a, b in combinations(observed, 2)
        for size in range(len(observed) - 1)
        for z in combinations([name for name in observed if name not in (a, b)], size)
    ]
    answers = [graph.m_separated(*question) for question in questions]
    for turned in product((False, True), repeat=len(graph.directed)):
        edges = [(b, a) if turn else (a, b) for (a, b), turn in zip(graph.directed, turned, strict=True)]
        try:
            other = CausalGraph(nodes=observed, directed=edges)
        except GraphError:
            continue
        if [other.m_separated(*question) for question in questions] == answers:
            yield other


@pytest.mark.parametrize("seed", range(12))
def test_the_class_of_a_graph_is_all_graphs_with_its_independencies(seed):
    graph = at_random(seed, size=4 if seed < 6 else 5)
    expected = {frozenset(other.directed) for other in same_independencies(graph)}
    found = graph.equivalence_class()
    assert {frozenset(member.directed) for member in found.members()} == expected
    agreed = set.intersection(*map(set, expected))
    assert set(found.directed) == agreed


@pytest.mark.parametrize("seed", range(12))
def test_one_member_per_choice_of_parents_and_none_is_left_out(seed):
    found = at_random(seed).equivalence_class()
    every = {frozenset(member.directed): member for member in found.members()}
    for node in found.nodes:
        chosen = list(found.members(by_parents_of=node))
        assert all(frozenset(member.directed) in every for member in chosen)
        parents = [frozenset(member.parents(node)) for member in chosen]
        assert len(set(parents)) == len(parents)
        assert set(parents) == {frozenset(member.parents(node)) for member in every.values()}


def test_a_directed_graph_is_its_only_member_and_a_limit_is_kept():
    assert list(CHAIN.members(by_parents_of=["A"])) == [CHAIN]
    undirected = CHAIN.equivalence_class()
    assert not undirected.directed
    assert len(list(undirected.members(1, by_parents_of="B"))) == 1


def test_hidden_causes_have_no_class_here():
    with pytest.raises(GraphError, match="hidden causes"):
        CausalGraph(directed=[("A", "B")], bidirected=[("B", "C")]).equivalence_class()
    with pytest.raises(GraphError, match="by_parents_of names 'D'"):
        list(CHAIN.members(by_parents_of="D"))
