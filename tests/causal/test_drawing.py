import xml.etree.ElementTree as ET

from hypothesis import given, settings

from ciplearn import CausalGraph
from ciplearn.causal import Path
from tests.causal.strategies import graphs

_NS = {"s": "http://www.w3.org/2000/svg"}


def _nodes(svg):
    root = ET.fromstring(svg)
    named = [g for g in root.findall(".//s:g", _NS) if g.find("s:text", _NS) is not None]
    return {g.find("s:text", _NS).text: (g.get("class"), g.find("s:rect", _NS)) for g in named}


def _lines(svg):
    return [p.get("class") for p in ET.fromstring(svg).findall("s:path", _NS) if "marker-end" in p.attrib]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(graphs())
def test_every_graph_is_drawn_as_well_formed_svg_with_all_its_nodes(graph):
    assert set(_nodes(graph.to_svg())) == set(graph.nodes)


def _roles(svg):
    return {name: role for name, (role, _) in _nodes(svg).items()}


def test_roles_of_the_text_are_shown_as_classes_without_a_verdict():
    graph = CausalGraph.from_dagitty("dag { A [exposure] Y [outcome] S [adjusted] U [latent] U -> S -> A -> L -> Y }")
    assert _roles(graph.to_svg()) == {
        "A": "node protected",
        "L": "node other",
        "S": "node given",
        "U": "node latent",
        "Y": "node outcome",
    }


def test_roles_of_a_verdict_are_shown_as_classes():
    graph = CausalGraph.from_edges("S -> A -> L -> Y, S -> Y, U -> S", latent="U")
    assert _roles(graph.to_svg(graph.criterion("Y", "A"))) == {
        "A": "node protected",
        "L": "node context",
        "S": "node given",
        "U": "node latent",
        "Y": "node outcome",
        "Ŷ": "node predictor",
    }


def test_open_paths_of_a_verdict_are_red():
    graph = CausalGraph.from_edges("H -> A -> Y")
    verdict = graph.criterion("Y", "A", context=[], inputs=["A", "H"], adjustment=[])
    assert sorted(_lines(graph.to_svg(verdict))) == ["cause", "cause open", "input", "input open"]
    assert "open path" in graph.to_svg(verdict)


def test_given_paths_are_red_without_a_verdict():
    graph = CausalGraph.from_edges("U -> A, Z -> Y, A <-> Y")
    path = graph.open_path("A", "Y")
    assert path == Path(("A", "Y"), ("↔",))
    assert sorted(_lines(graph.to_svg(paths=[path]))) == ["cause", "cause", "common open"]


def test_causes_stand_left_of_their_effects_and_no_nodes_overlap():
    graph = CausalGraph.from_edges("A->{M D R Y}, M->{D R Y}, D->{R Y}, R->Y, C->{M D R Y}, Hm->M, Hd->D, Hr->R")
    boxes = {
        name: [float(r.get(k)) for k in ("x", "y", "width", "height")]
        for name, (_, r) in _nodes(graph.to_svg()).items()
    }
    for a, b in graph.directed:
        assert boxes[a][0] + boxes[a][2] < boxes[b][0]
    # A root stands beside its first effect, not at the far left.
    assert boxes["Hm"][0] < boxes["Hd"][0] < boxes["Hr"][0]
    for a in boxes:
        for b in boxes:
            (x, y, w, h), (p, q, v, g) = boxes[a], boxes[b]
            assert a == b or x + w < p or p + v < x or y + h < q or q + g < y


def test_positions_of_the_text_are_kept():
    graph = CausalGraph.from_dagitty('dag { A [pos="0,0"] B [pos="1,0"] C [pos="0,2"] A -> B C -> B }')
    boxes = {name: (float(r.get("x")), float(r.get("y"))) for name, (_, r) in _nodes(graph.to_svg()).items()}
    assert boxes["A"][1] == boxes["B"][1] < boxes["C"][1]
    assert boxes["A"][0] == boxes["C"][0] < boxes["B"][0]


def test_names_are_escaped():
    svg = CausalGraph.from_edges([("<script>", "a & b")]).to_svg()
    assert "<script>" not in svg
    assert set(_nodes(svg)) == {"<script>", "a & b"}
