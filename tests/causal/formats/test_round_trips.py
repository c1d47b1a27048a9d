import networkx
import pytest
from hypothesis import HealthCheck, given, settings

from ciplearn.causal import CausalGraph
from tests.causal.strategies import graphs

WRITERS = {
    "edges": (CausalGraph.to_edges, CausalGraph.from_edges),
    "dagitty": (CausalGraph.to_dagitty, CausalGraph.from_dagitty),
    "json": (CausalGraph.to_json, CausalGraph.from_json),
    "dot": (CausalGraph.to_dot, CausalGraph.from_dot),
    "gml": (CausalGraph.to_gml, CausalGraph.from_gml),
    "networkx": (CausalGraph.to_networkx, CausalGraph.from_networkx),
}


@pytest.mark.parametrize("notation", WRITERS)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(graph=graphs())
def test_reading_what_was_written_gives_the_same_graph(notation, graph):
    write, read = WRITERS[notation]
    back = read(write(graph))
    assert back == graph
    assert back.positions == graph.positions


@pytest.mark.parametrize("notation", ["dagitty", "json", "dot", "gml", "edges"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(graph=graphs())
def test_notation_is_recognised_by_content(notation, graph):
    text = WRITERS[notation][0](graph)
    assert CausalGraph.from_text(text) == graph


@pytest.mark.parametrize("notation", ["dagitty", "json", "dot", "gml", "edges"])
def test_file_is_read_by_content_whatever_its_suffix(notation, tmp_path):
    graph = CausalGraph.from_edges("S -> A, A -> Y, A <-> Y, U -> Y", latent="U")
    path = tmp_path / "graph.unknown"
    path.write_text(WRITERS[notation][0](graph), encoding="utf-8-sig")
    assert CausalGraph.from_file(path) == graph


def test_plain_networkx_graph_is_read_and_written():
    drawn = networkx.DiGraph([("A", "B"), ("B", "C")])
    graph = CausalGraph.from_networkx(drawn)
    assert graph == CausalGraph.from_edges("A -> B -> C")
    assert type(graph.to_networkx()) is networkx.DiGraph
    assert networkx.utils.graphs_equal(graph.to_networkx(), drawn)
