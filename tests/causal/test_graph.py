import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given, settings

from ciplearn import CausalGraph
from ciplearn._core.errors import GraphError
from tests.causal.strategies import graphs


def test_equality_is_by_content_and_not_by_order():
    one = CausalGraph.from_edges([("A", "B"), ("B", "C")], bidirected=[("C", "A")], latent={"B"})
    other = CausalGraph.from_edges([("B", "C"), ("A", "B"), ("A", "B")], bidirected=[("A", "C")], latent=["B"])
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    assert one != CausalGraph.from_edges("A -> B -> C, A <-> C")


def test_graph_is_frozen_and_travels_by_pickle():
    graph = CausalGraph.from_dagitty('dag { A [exposure, pos="1,2"] A -> B }')
    with pytest.raises(FrozenInstanceError):
        graph.nodes = ()
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_nodes_stand_in_natural_order():
    graph = CausalGraph.from_edges([("x10", "x9"), ("x2", "x10")], nodes=["b", "B", "x1"])
    assert graph.nodes == ("B", "b", "x1", "x2", "x9", "x10")


def test_kinship_is_read_off_the_edges():
    graph = CausalGraph.from_edges("S -> A -> L -> Y, S -> Y, A <-> Y", latent="S")
    assert graph.parents("Y") == ("L", "S")
    assert graph.children("S") == ("A", "Y")
    assert graph.spouses("A") == ("Y",)
    assert graph.ancestors("L") == {"S", "A", "L"}
    assert graph.descendants(["A"]) == {"A", "L", "Y"}
    assert graph.topological_order() == ("S", "A", "L", "Y")
    assert graph.observed == ("A", "L", "Y")
    assert graph.latent == {"S"}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graphs(with_undirected=False))
def test_topological_order_puts_every_cause_before_its_effects(graph):
    place = {name: number for number, name in enumerate(graph.topological_order())}
    assert set(place) == set(graph.nodes)
    assert all(place[a] < place[b] for a, b in graph.directed)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("A", "B"), ("B", "C"), ("C", "A")], "no directed cycle, but A → B → C → A"),
        ([("A", "A")], "No node causes itself"),
        ([("A", "B", "C")], "must be a pair of names"),
        ([3], "must be a pair of names"),
        ([("A", 1)], "must be a string, but 1"),
        ([("A", "")], "must not be empty"),
        ([("A", "two\nlines")], "one printable line"),
    ],
)
def test_impossible_edges_are_refused_in_words(edges, message):
    with pytest.raises(GraphError, match=message):
        CausalGraph.from_edges(edges)


def test_undirected_edge_beside_a_directed_one_is_a_contradiction():
    with pytest.raises(GraphError, match="A − B contradicts another edge"):
        CausalGraph.from_edges("A -> B, B -- A")


def test_unknown_latent_name_suggests_the_nearest():
    with pytest.raises(GraphError, match="latent names 'Gendre', which is not in the graph; did you mean 'Gender'"):
        CausalGraph.from_edges("Gender -> Y", latent="Gendre")


def test_wrong_position_is_refused():
    with pytest.raises(GraphError, match="two finite numbers"):
        CausalGraph(nodes=("A",), positions={"A": (0.0, float("nan"))})


def test_directed_and_bidirected_edge_may_join_the_same_nodes():
    graph = CausalGraph.from_edges("A -> B, A <-> B")
    assert graph.directed == graph.bidirected == (("A", "B"),)


def test_empty_graph_is_a_graph():
    graph = CausalGraph.from_edges([])
    assert graph.nodes == graph.topological_order() == ()
    assert CausalGraph.from_dagitty("dag {}") == graph


def test_question_to_a_graph_with_undirected_edges_names_the_edge():
    with pytest.raises(GraphError, match=r"A − B has none .* members\(\)"):
        CausalGraph.from_edges("A -- B").m_separated("A", "B")


def test_long_graph_has_a_short_repr():
    graph = CausalGraph.from_edges([(f"v{i}", f"v{i + 1}") for i in range(1000)])
    assert len(repr(graph)) < 250
    assert repr(CausalGraph.from_edges("A -> B")) == "CausalGraph('A -> B')"


SLIPS = {"late": "late_payments", "agee": "age", "AGE": "age", "aeg": "age"}


@pytest.mark.parametrize(("typed", "meant"), SLIPS.items())
def test_a_name_that_is_none_is_taken_for_one_that_begins_with_it_or_is_spelt_like_it(typed, meant):
    graph = CausalGraph.from_edges("age -> late_payments, age -> ages, ages -> late_payments")
    with pytest.raises(GraphError, match=f"did you mean '{meant}'"):
        graph.parents(typed)


def test_a_name_that_is_like_none_gets_the_names_that_there_are_and_no_guess():
    graph = CausalGraph.from_edges("region_code -> age, age -> hours")
    with pytest.raises(GraphError, match="not in the graph; the nodes are age, hours, region_code"):
        graph.parents("income")
