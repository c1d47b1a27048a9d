"""Large graphs: right answers without recursion, and no more work than the size of the graph asks for."""

import random

import pytest

from ciplearn import CausalGraph
from ciplearn.causal import dag
from ciplearn.causal.criterion import Conditions, search_limit


def _large(size, degree=3):
    rng = random.Random(15)
    edges = [(f"v{i}", f"v{j}") for j in range(1, size) for i in rng.sample(range(max(0, j - 60), j), min(j, degree))]
    return CausalGraph.from_edges(edges)


def _counted(monkeypatch, holder, name):
    """Count the calls of a function; for a generator, its steps."""
    original, counts = getattr(holder, name), {"calls": 0, "steps": 0}

    def counting(*arguments):
        counts["calls"] += 1
        result = original(*arguments)
        return result if not hasattr(result, "__next__") else stepping(result)

    def stepping(steps):
        for step in steps:
            counts["steps"] += 1
            yield step

    monkeypatch.setattr(holder, name, counting)
    return counts


def test_validity_on_a_thousand_nodes_is_one_walk_that_meets_each_node_at_most_twice(monkeypatch):
    graph = _large(1000)
    found = next(graph.minimal_adjustment_sets("v300", "v999", limit=1))
    counts = _counted(monkeypatch, dag, "_walk")
    assert graph.is_valid_adjustment("v300", "v999", found)
    assert counts["calls"] == 1
    assert counts["steps"] <= 2 * len(graph.nodes)


def test_minimal_set_on_a_thousand_nodes_loses_validity_with_any_node_left_out():
    graph = _large(1000)
    found = next(graph.minimal_adjustment_sets("v300", "v999", limit=1))
    assert found
    assert not any(graph.is_valid_adjustment("v300", "v999", found - {name}) for name in found)


@pytest.mark.parametrize("shape", ["chain", pytest.param("random", marks=pytest.mark.slow)])
def test_five_thousand_nodes_work(shape):
    chain = CausalGraph.from_edges([(f"v{i}", f"v{i + 1}") for i in range(4999)])
    graph = chain if shape == "chain" else _large(5000)
    verdict = graph.criterion("v4999", "v0" if shape == "chain" else "v100")
    assert verdict.holds
    assert CausalGraph.from_dagitty(graph.to_dagitty()) == graph
    assert graph.to_svg().startswith("<svg")


def test_searches_of_a_large_graph_judge_no_more_than_their_limit(monkeypatch):
    graph = _large(1000)
    seen = [f"v{number}" for number in range(500, 900, 50)]
    # Every input shares a cause of its own with v300: three changes mend three of them.
    confounded = CausalGraph.from_edges(graph.directed, bidirected=[("v300", name) for name in seen])
    counts = _counted(monkeypatch, Conditions, "of")
    verdict = confounded.criterion("v999", "v300", context=["v300"], inputs=seen, adjustment=[])
    assert not verdict.holds
    assert counts["calls"] == 1
    assert verdict.repairs == ()
    assert verdict.weaker
    limit = search_limit(confounded)
    assert limit < counts["calls"] <= 2 * (limit + 2)
