import random
from itertools import islice

import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import GraphError, InputError
from tests.causal.oracle import drawing, random_graph, random_split, subsets


def test_validity_and_forbidden_nodes_equal_the_definition_on_random_graphs():
    rng = random.Random(3)
    cases = {True: 0, False: 0}
    for _ in range(3000):
        graph = random_graph(rng, 7)
        x, y = random_split(rng, list(graph.nodes), 0.25, 0.25)
        if not x or not y:
            continue
        drawn = drawing(graph)
        named = drawn.forbidden(set(x), set(y)) & set(graph.nodes)
        assert graph.forbidden_nodes(x, y) == named, (graph, x, y)
        rest = [name for name in graph.observed if name not in x and name not in y]
        for z in islice(subsets(rng.sample(rest, len(rest))), 8):
            answer = graph.is_valid_adjustment(x, y, z)
            assert answer == drawn.valid(set(x), set(y), z), (graph, x, y, z)
            cases[answer] += 1
    assert min(cases.values()) > 1000


def test_proper_causal_paths_equal_the_definition_on_random_graphs():
    rng = random.Random(4)
    seen = 0
    for _ in range(1500):
        graph = random_graph(rng, 6)
        x, y = random_split(rng, list(graph.nodes), 0.3, 0.3)
        if not x or not y:
            continue
        proper = drawing(graph).proper_paths(set(x), set(y))
        # A path may run through one outcome to another; the definition of a path between two sets allows it.
        expected = {nodes for nodes, arrows in proper if set(arrows) <= {"→"}}
        found = [path.nodes for path in graph.proper_causal_paths(x, y, limit=None)]
        assert len(found) == len(set(found))
        assert set(found) == expected, (graph, x, y)
        seen += len(found)
    assert seen > 300


def test_minimal_smallest_and_canonical_sets_equal_a_search_over_all_sets():
    rng = random.Random(5)
    problems = several = 0
    for round_ in range(3000):
        graph = random_graph(rng, 7, smallest=2 if round_ % 2 else 6)
        x, y, include, exclude = random_split(rng, list(graph.nodes), 0.2, 0.2, 0.04, 0.06)
        if round_ % 2 == 0:
            # One exposure and one outcome leave the most room for different sets.
            x, y = ([name] for name in rng.sample(list(graph.nodes), 2))
            include, exclude = ([n for n in names if [n] not in (x, y)] for names in (include, exclude))
        include = [name for name in include if name not in graph.latent]
        if not x or not y:
            continue
        drawn = drawing(graph)
        free = [name for name in graph.observed if name not in {*x, *y, *include, *exclude}]
        valid = [frozenset(z | set(include)) for z in subsets(free) if drawn.valid(set(x), set(y), z | set(include))]
        minimal = {z for z in valid if not any(other < z for other in valid)}
        constraints = {"must_include": include, "must_exclude": exclude}
        found = list(graph.minimal_adjustment_sets(x, y, **constraints, limit=None))
        assert len(found) == len(set(found))
        assert set(found) == minimal, (graph, x, y, include, exclude)
        smallest = graph.smallest_adjustment_set(x, y, **constraints)
        canonical = graph.canonical_adjustment_set(x, y, **constraints)
        if valid:
            assert smallest in valid
            assert len(smallest) == min(map(len, valid))
            assert canonical in valid
        else:
            assert smallest is None
            assert canonical is None
        problems += 1
        several += len(minimal) > 1
    assert problems > 1800
    assert several > 40


def test_optimal_set_is_valid_and_closest_to_the_outcome():
    graph = CausalGraph.from_edges("A -> Y, C -> A, C -> D, D -> Y, P -> Y, I -> A")
    assert graph.optimal_adjustment_set("A", "Y") == {"D", "P"}
    assert graph.is_valid_adjustment("A", "Y", {"D", "P"})


def test_optimal_set_is_unknown_where_a_latent_node_belongs_to_it():
    graph = CausalGraph.from_edges("A -> Y, C -> A, C -> Y, P -> Y", latent=["P"])
    assert graph.optimal_adjustment_set("A", "Y") is None
    assert graph.optimal_adjustment_set("Y", "A") is None


def test_optimal_set_of_random_graphs_is_the_parents_of_causal_nodes():
    rng = random.Random(6)
    found = 0
    for _ in range(900):
        graph = random_graph(rng, 6, confounded=False)
        x, y = rng.sample(list(graph.nodes), 2)
        best = graph.optimal_adjustment_set(x, y)
        if y not in graph.descendants(x):
            assert best is None
            continue
        causal = {node for path in graph.proper_causal_paths(x, y) for node in path.nodes[1:]}
        expected = {p for node in causal for p in graph.parents(node)} - graph.forbidden_nodes(x, y) - {x}
        assert best == expected
        assert drawing(graph).valid({x}, {y}, set(best))
        found += 1
    assert found > 150


def test_mediator_is_not_an_adjustment_set():
    graph = CausalGraph.from_edges("A -> M -> Y, A -> Y")
    assert not graph.is_valid_adjustment("A", "Y", "M")
    assert graph.is_valid_adjustment("A", "Y")
    assert graph.is_valid_adjustment(["A", "M"], "Y")


def test_several_exposures_and_outcomes_are_not_paired_by_position():
    graph = CausalGraph.from_edges("A1 -> Y2, A2 -> Y1, C -> {A1 Y2}")
    assert not graph.is_valid_adjustment(["A1", "A2"], ["Y1", "Y2"])
    assert graph.is_valid_adjustment(["A1", "A2"], ["Y1", "Y2"], "C")


def test_minimal_sets_are_lazy_and_bounded():
    edges = [(f"c{i}", f"d{i}") for i in range(30)] + [(f"c{i}", "A") for i in range(30)]
    graph = CausalGraph.from_edges([*edges, *((f"d{i}", "Y") for i in range(30)), ("A", "Y")])
    assert len(list(graph.minimal_adjustment_sets("A", "Y", limit=7))) == 7
    assert len(set(islice(graph.minimal_adjustment_sets("A", "Y", limit=None), 200))) == 200


def test_no_set_is_found_where_a_latent_node_confounds():
    graph = CausalGraph.from_edges("U -> A, U -> Y, A -> Y", latent="U")
    assert list(graph.minimal_adjustment_sets("A", "Y")) == []
    assert graph.smallest_adjustment_set("A", "Y") is None


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"x": "A", "y": "Y", "z": "U"}, "'U', which is latent"),
        ({"x": "A", "y": "Y", "z": "A"}, "x and z must not overlap"),
        ({"x": "A", "y": "A"}, "x and y must not overlap"),
        ({"x": [], "y": "Y"}, "x is empty"),
        ({"x": "A", "y": "Outcom"}, "did you mean 'Outcome'"),
        ({"x": 3, "y": "Y"}, "x must be a name or a list of names"),
        ({"x": [3], "y": "Y"}, "must be a string, but 3 is of type int"),
    ],
)
def test_a_wrong_question_is_refused_in_words(question, message):
    graph = CausalGraph.from_edges("U -> A, U -> Y, A -> Y, A -> Outcome", latent="U")
    with pytest.raises(GraphError, match=message):
        graph.is_valid_adjustment(**question)


@pytest.mark.parametrize("limit", [-1, "all", 1.5, True, 2**70])
@pytest.mark.parametrize(
    "ask",
    [
        lambda graph, limit: graph.minimal_adjustment_sets("A", "Y", limit=limit),
        lambda graph, limit: graph.proper_causal_paths("A", "Y", limit=limit),
        lambda graph, limit: graph.implied_independencies(limit),
        lambda graph, limit: graph.members(limit),
        lambda graph, limit: graph.members(limit, by_parents_of="A"),
    ],
    ids=["sets", "paths", "independencies", "members", "members by parents"],
)
def test_a_wrong_limit_is_refused(ask, limit):
    with pytest.raises(InputError, match="limit must be"):
        ask(CausalGraph.from_edges("A -> Y"), limit)
