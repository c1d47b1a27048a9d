import random
import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

from hypothesis import given, settings

from ciplearn import CausalGraph
from ciplearn.causal import Path, layout
from ciplearn.causal.layout import boxes
from ciplearn.datasets import graphs as graphs_of_the_paper
from tests.causal.oracle import random_graph
from tests.causal.strategies import graphs

_NS = {"s": "http://www.w3.org/2000/svg"}


def _groups(svg):
    """Full name -> the element of each node."""
    named = [g for g in ET.fromstring(svg).findall(".//s:g", _NS) if g.find("s:title", _NS) is not None]
    return {g.find("s:title", _NS).text: g for g in named}


def _nodes(svg):
    return {name: (g.get("class"), g.find("s:rect", _NS)) for name, g in _groups(svg).items()}


def _label(group):
    return [line.text for line in group.findall("s:text/s:tspan", _NS)]


def _seen(svg):
    return {name for name, g in _groups(svg).items() if g.find("s:circle", _NS) is not None}


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


def test_readers_who_see_no_picture_are_told_the_graph():
    told = CausalGraph.from_text("sex -> {hours pay}, age -> pay, age <-> hours").to_svg()
    assert 'aria-label="causal graph: age acts on pay; sex acts on hours and pay; age and hours have a common' in told
    assert "sex | job | hours, pay" in CausalGraph.from_text("sex | job | hours, pay").to_svg()
    assert 'aria-label="causal graph"' in CausalGraph(nodes=["sex"]).to_svg()


# -------------------------------------------------------------------------------- wide graphs


def _wide(rng, size, hidden=0.1):
    names = [f"variable {number}" if number % 3 else f"v{number}" for number in range(size)]
    pairs = list(combinations(names, 2))
    return CausalGraph.from_edges(
        [pair for pair in pairs if rng.random() < 2.0 / size],
        bidirected=[pair for pair in pairs if rng.random() < hidden * 10 / size],
        nodes=names,
    )


def _points(data):
    """Points along a path of moves, horizontal lines and cubic curves, close to each other."""
    words = re.findall(r"[MHC]|-?\d+\.\d", data)
    here, found, place = (0.0, 0.0), [], 0
    while place < len(words):
        command, count = words[place], {"M": 2, "H": 1, "C": 6}[words[place]]
        numbers = [float(word) for word in words[place + 1 : place + 1 + count]]
        place += 1 + count
        if command == "C":
            p, q, r, s = here, *zip(numbers[::2], numbers[1::2], strict=True)
            for step in range(41):
                u, v = step / 40, 1 - step / 40
                found.append([v**3 * p[i] + 3 * v * v * u * q[i] + 3 * v * u * u * r[i] + u**3 * s[i] for i in (0, 1)])
        elif command == "H":
            found += [[here[0] + (numbers[0] - here[0]) * step / 40, here[1]] for step in range(41)]
            numbers = [numbers[0], here[1]]
        here = (numbers[-2], numbers[-1])
    return found


def test_no_line_of_a_wide_graph_runs_through_a_node():
    rng = random.Random(31)
    lines = common = 0
    for _ in range(25):
        graph = _wide(rng, rng.randint(10, 18))
        svg = graph.to_svg()
        boxes = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for _, r in _nodes(svg).values()]
        for path in ET.fromstring(svg).findall("s:path", _NS):
            if "marker-end" not in path.attrib:
                continue
            lines += 1
            common += path.get("class") == "common"
            for x, y in _points(path.get("d")):
                # Sides are round: a line touches its own node up to four units inside the bounds.
                assert not any(a + 5 < x < a + w - 5 and b < y < b + h for a, b, w, h in boxes), graph
    assert lines > 300
    assert common > 50


def test_inputs_of_the_predictor_are_dots_in_a_wide_graph_and_edges_on_demand():
    verdict = graphs_of_the_paper.adult_columns().criterion()
    svg = verdict.graph.to_svg(verdict)
    assert "input" not in _lines(svg)
    assert "Ŷ" not in _groups(svg)
    assert _seen(svg) == set(verdict.inputs)
    asked = verdict.graph.to_svg(verdict, prediction_edges=True)
    assert _seen(asked) == set()
    assert "Ŷ" in _groups(asked)
    # One edge from each frame, one from each node outside of frames.
    assert _lines(asked).count("input") == 5
    small = CausalGraph.from_edges("S -> A -> Y").criterion("Y", "A")
    assert _lines(small.graph.to_svg(small)).count("input") == 2
    assert _seen(small.graph.to_svg(small, prediction_edges=False)) == {"A", "S"}


def test_open_paths_into_the_predictor_are_drawn_in_a_wide_graph_too():
    graph = CausalGraph.from_edges([("H", "A"), ("A", "Y"), *((f"z{i}", "Y") for i in range(8))])
    verdict = graph.criterion("Y", "A", context=[], inputs=["A", "H"], adjustment=[])
    svg = graph.to_svg(verdict)
    assert _lines(svg).count("input open") == 1
    assert "input" not in _lines(svg)
    assert _seen(svg) == {"A", "H"}


def test_nodes_with_the_same_causes_and_effects_share_a_frame_and_no_edge_is_lost():
    rng = random.Random(32)
    framed = 0
    for _ in range(200):
        plain = random_graph(rng, 6)
        copies = {name: [f"{name} {number}" for number in range(rng.randint(1, 3))] for name in plain.nodes}
        graph = CausalGraph.from_edges([(x, y) for a, b in plain.directed for x in copies[a] for y in copies[b]])
        roles = {name: rng.choice("ab") for name in graph.nodes}
        apart = {name for name in graph.nodes if rng.random() < 0.1}
        parts = boxes(graph, roles, apart, {})
        assert sorted(name for box in parts for name in box.members) == sorted(graph.nodes)
        box_of = {name: box for box in parts for name in box.members}
        between = {(box_of[a].name, box_of[b].name) for a, b in graph.directed}
        for box in parts:
            framed += box.framed
            assert len({roles[name] for name in box.members}) == 1
            assert not box.framed or apart.isdisjoint(box.members)
        # An edge between two boxes stands for one between each two of their members.
        meant = {(x, y) for a, b in between for x in box_of[a].members for y in box_of[b].members}
        assert meant == set(graph.directed)
    assert framed > 100


def test_adult_is_drawn_with_seventeen_arrows_instead_of_forty_one():
    graph = graphs_of_the_paper.adult_columns()
    assert len(graph.directed) == 41
    svg = graph.to_svg(graph.criterion())
    assert sorted(_lines(svg)) == ["cause"] * 17 + ["common"]
    assert svg.count('class="block"') == 3 + 1  # three frames and the key


TIERS = (
    "sex, age, foreign | job, employment, residence, housing | property, telephone, dependants | "
    "amount, duration, purpose, history | savings, checking | bad"
)


def test_a_graph_of_tiers_has_a_frame_per_tier_and_arrows_to_the_next():
    graph = CausalGraph.from_text(f"{TIERS}\nsex <-> age")
    assert (len(graph.nodes), len(graph.directed)) == (17, 117)
    verdict = graph.criterion(outcome="bad", protected=["sex", "age"])
    svg = graph.to_svg(verdict)
    assert sorted(_lines(svg)) == ["cause"] * 5 + ["common"]
    assert svg.count('class="block"') == 5
    assert "acts on all that follow" in svg
    assert _nodes(svg)["sex"][0] == "node protected"
    # With a row per arrow missing it is no longer one of tiers, and every arrow is drawn.
    less = CausalGraph(directed=[edge for edge in graph.directed if edge != ("sex", "bad")])
    assert len(_lines(less.to_svg())) > 15
    assert "acts on all that follow" not in less.to_svg()
    # What a path shows must be an arrow of its own.
    path = CausalGraph.from_text(TIERS).open_path(["sex"], ["bad"])
    assert "acts on all that follow" not in CausalGraph.from_text(TIERS).to_svg(paths=[path])
    assert "cause open" in CausalGraph.from_text(TIERS).to_svg(paths=[path])


def test_long_names_are_wrapped_or_cut_and_keep_their_title():
    wrapped, cut = "neighbourhood_deprivation_index", "pneumonoultramicroscopicsilicovolcanoconiosis"
    drawn = _groups(CausalGraph.from_edges([(wrapped, cut), ("age", cut)]).to_svg())
    assert _label(drawn[wrapped]) == ["neighbourhood_", "deprivation_index"]
    assert _label(drawn[cut]) == ["pneumonoultramic…"]
    assert _label(drawn["age"]) == ["age"]
    assert max(float(g.find("s:rect", _NS).get("width")) for g in drawn.values()) < 170


def test_swaps_never_add_a_crossing():
    rng = random.Random(33)
    fewer = 0
    for _ in range(60):
        rows = [[f"{column}.{place}" for place in range(6)] for column in range(3)]
        chains = [[a, b] for x, y in pairwise(rows) for a in x for b in y if rng.random() < 0.3]
        left, right = layout._neighbours(rows, chains)
        before = layout._crossings(rows, right)
        layout._swap_neighbours(rows, left, right)
        after = layout._crossings(rows, right)
        assert after <= before
        fewer += after < before
    assert fewer > 50
