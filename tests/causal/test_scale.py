"""Large graphs: right answers without recursion; the bounds on time are generous, the benchmark measures."""

import random
import time

import pytest

from ciplearn import CausalGraph


def _large(size, degree=3):
    rng = random.Random(15)
    edges = [(f"v{i}", f"v{j}") for j in range(1, size) for i in rng.sample(range(max(0, j - 60), j), min(j, degree))]
    return CausalGraph.from_edges(edges)


def test_validity_and_one_minimal_set_on_a_thousand_nodes_take_less_than_a_second():
    graph = _large(1000)
    start = time.perf_counter()
    found = next(graph.minimal_adjustment_sets("v300", "v999", limit=1))
    valid = graph.is_valid_adjustment("v300", "v999", found)
    assert time.perf_counter() - start < 1.0
    assert valid
    assert not any(graph.is_valid_adjustment("v300", "v999", found - {name}) for name in found)


@pytest.mark.parametrize("shape", ["chain", "random"])
def test_five_thousand_nodes_work(shape):
    chain = CausalGraph.from_edges([(f"v{i}", f"v{i + 1}") for i in range(4999)])
    graph = chain if shape == "chain" else _large(5000)
    verdict = graph.criterion("v4999", "v0" if shape == "chain" else "v100")
    assert verdict.holds
    assert CausalGraph.from_dagitty(graph.to_dagitty()) == graph
    assert graph.to_svg().startswith("<svg")


def test_failing_verdict_of_a_large_graph_finds_its_repairs_in_seconds():
    graph = _large(1000)
    hidden = CausalGraph.from_edges([*graph.directed, ("H", "v300"), ("H", "v500")], latent=["H"])
    start = time.perf_counter()
    verdict = hidden.criterion("v999", "v300", context=["v300"], inputs=["v300", "v500"], adjustment=[])
    assert not verdict.holds
    assert verdict.to_dict()["weaker"]
    assert time.perf_counter() - start < 10.0
