import random

from ciplearn import CausalGraph, Independence
from tests.causal.oracle import drawing, random_graph, subsets


def test_implied_independencies_are_true_and_none_is_missing():
    rng = random.Random(14)
    count = 0
    for _ in range(400):
        graph = random_graph(rng, 6)
        drawn = drawing(graph)
        stated = {}
        for statement in graph.implied_independencies():
            (a,), (b,), z = statement.left, statement.right, set(statement.given)
            assert drawn.separated({a}, {b}, z)
            stated[frozenset((a, b))] = len(z)
            count += 1
        for place, a in enumerate(graph.observed):
            for b in graph.observed[place + 1 :]:
                free = [name for name in graph.observed if name not in (a, b)]
                sizes = [len(z) for z in subsets(free) if drawn.separated({a}, {b}, z)]
                assert stated.get(frozenset((a, b))) == min(sizes, default=None), (graph, a, b)
    assert count > 500


def test_implied_independencies_are_statements():
    graph = CausalGraph.from_edges("A -> B -> C")
    assert list(graph.implied_independencies()) == [Independence(right="C", given="B", left="A")]
    assert [str(s) for s in graph.implied_independencies(limit=1)] == ["A ⊥ {C} | {B}"]
