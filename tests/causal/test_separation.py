import random

import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import GraphError
from tests.causal.oracle import drawing, random_graph, random_split


def test_separation_equals_enumeration_of_paths_on_random_graphs():
    rng = random.Random(1)
    cases = {True: 0, False: 0}
    for _ in range(6000):
        graph = random_graph(rng, 7)
        x, y, z = random_split(rng, list(graph.nodes), 0.25, 0.25, 0.3)
        answer = graph.m_separated(x, y, z)
        assert answer == drawing(graph).separated(set(x), set(y), set(z)), (graph, x, y, z)
        cases[answer] += 1
    assert min(cases.values()) > 1000


def test_open_path_is_open_and_absent_exactly_when_separated():
    rng = random.Random(2)
    for _ in range(600):
        graph = random_graph(rng, 6)
        x, y, z = random_split(rng, list(graph.nodes), 0.25, 0.25, 0.3)
        path = graph.open_path(x, y, z)
        assert (path is None) == graph.m_separated(x, y, z)
        if path is not None:
            assert path.nodes[0] in x
            assert path.nodes[-1] in y
            for a, arrow, b in path.edges:
                kind = {"→": (a, b) in graph.directed, "←": (b, a) in graph.directed}
                assert kind.get(arrow, (a, b) in graph.bidirected or (b, a) in graph.bidirected)


def test_collider_is_opened_by_its_descendant():
    graph = CausalGraph.from_edges("A -> C, B -> C, C -> D")
    assert graph.m_separated("A", "B")
    assert not graph.m_separated("A", "B", "D")
    assert str(graph.open_path("A", "B", "D")) == "A → C ← B"


def test_bidirected_edge_is_an_open_path():
    graph = CausalGraph.from_edges("A <-> B, B -> C")
    assert str(graph.open_path("A", "C")) == "A ↔ B → C"
    assert graph.m_separated("A", "C", "B")


def test_empty_sets_are_separated_from_everything():
    graph = CausalGraph.from_edges("A -> B")
    assert graph.m_separated([], "B")
    assert graph.m_separated([], [])


def test_overlapping_sets_are_refused_by_name():
    with pytest.raises(GraphError, match=r"x and z must not overlap, but \{A\}"):
        CausalGraph.from_edges("A -> B").m_separated("A", "B", "A")
