import time

import networkx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciplearn._core.errors import GraphError, GraphSyntaxError
from ciplearn.causal import CausalGraph


def test_dot_groups_ports_directions_and_subgraphs_are_read():
    graph = CausalGraph.from_dot(
        """strict digraph "g" {
          node [shape=box]
          S -> {A L}; A:e -> L -> Y [color=red]; Y -> T [dir=back]; A -> Y [dir=both]; P -> Q [dir=none];
          subgraph cluster_1 { M -> N; U [latent=true] }
        }"""
    )
    assert set(graph.directed) == {("S", "A"), ("S", "L"), ("A", "L"), ("L", "Y"), ("T", "Y"), ("M", "N")}
    assert graph.bidirected == (("A", "Y"),)
    assert graph.undirected == (("P", "Q"),)
    assert graph.latent == {"U"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("digraph { A -> ", "not DOT"),
        ("digraph { A } garbage", "'garbage' stands after it"),
        ("digraph { A -- B }", "not DOT"),
        ("graph { A -> B }", "not DOT"),
        ("digraph { A [latent=true }", "not DOT"),
        ("digraph { A-1 }", "not an edge"),
        ("digraph { " + "{" * 100_000, "50 deep"),
        ("digraph { A } digraph { B }", "One graph is expected"),
        ("digraph { A -> B [dir=sideways] }", "dir=sideways is not known"),
        ("digraph { edge [dir=none] A -> B }", "defaults of 'edge'"),
        ("digraph { A -> A }", "No node causes itself"),
        ("digraph { <b>bold</b> -> A }", "not DOT|not a name"),
    ],
)
def test_wrong_dot_is_refused_with_its_place(text, message):
    with pytest.raises(GraphSyntaxError, match=message) as caught:
        CausalGraph.from_dot(text)
    assert caught.value.line >= 1


def test_dot_reads_joined_names_labels_in_html_comments_and_numerals():
    graph = CausalGraph.from_dot(
        """/* drawn by hand */ DIGRAPH "my graph" {
          rankdir=LR; label=<a <b>bold</b> title>; # a comment
          "hours " + "per week" -> -1.5:n [label=<<i>x</i>>, dir="both"] [color=red]
          é -> "say \\"hi\\"" // another
          subgraph { P; Q [observed=no] } -> { R; S }
        }"""
    )
    assert graph.bidirected == (("-1.5", "hours per week"),)
    assert set(graph.directed) == {("é", 'say "hi"'), ("P", "R"), ("P", "S"), ("Q", "R"), ("Q", "S")}
    assert graph.latent == {"Q"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("{", 1, "not JSON"),
        ("[]", 1, "A graph is an object"),
        ('{\n "node": []}', 2, "did you mean 'nodes'"),
        ('{"directed": [["A"]]}', 1, "pair of names"),
        ('{"directed": "AB"}', 1, "must be an array"),
        ('{"nodes": [1]}', 1, "must be a string"),
        ('{"nodes": [],\n "nodes": []}', 1, "stands twice"),
        ('{"nodes": ["A"], "positions": {"A": [1]}}', 1, "pair of numbers"),
        ('{"nodes": ["A"], "positions": {"A": [1, NaN]}}', 1, "NaN is not a position"),
        ("[" * 100000, 1, "nested too deeply|not JSON"),
    ],
)
def test_wrong_json_is_refused_with_its_place(text, line, message):
    with pytest.raises(GraphSyntaxError, match=message) as caught:
        CausalGraph.from_json(text)
    assert caught.value.line == line


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize(
    "text",
    [
        '{{"nodes": ["A"], "positions": {{"A": [{}, 1]}}}}',
        '{{"nodes": ["A"], "directed": {}}}',
        'graph [ directed 1 node [ id 1 label "A" graphics [ x {} y 1 ] ] ]',
        'digraph {{ A [pos="{},1"] }}',
        'dag {{ A [pos="{},1"] }}',
    ],
)
def test_a_number_of_hundreds_of_digits_is_refused(text, digits):
    with pytest.raises(GraphError) as caught:
        CausalGraph.from_text(text.format("1" * digits))
    assert "set_int_max_str_digits" not in str(caught.value)


def test_a_name_of_thousands_of_digits_is_put_in_order():
    long = "x" + "9" * 5000
    assert CausalGraph.from_edges([(long, "x10"), ("x9", "x010")]).nodes == ("x9", "x010", "x10", long)


MANY = 50_000
LARGE = {
    "attributes of a node": lambda: "digraph { a [" + ",".join(f"k{i}=1" for i in range(MANY)) + "] }",
    "nodes with attributes": lambda: "digraph { " + ";".join(f"a{i} [k=1]" for i in range(MANY)) + " }",
    "groups of many": lambda: f"dag {{ {{{_names('a', 1000)}}} -> {{{_names('b', 1000)}}} }}",
    "positions": lambda: '{"positions": {' + ",".join(f'"a{i}": [1, 2]' for i in range(MANY)) + "}}",
    "names in a row": lambda: ", ".join(f"a{i}" for i in range(MANY)),
    "groups beyond many": lambda: f"dag {{ {{{_names('a', 10_000)}}} -> {{{_names('b', 10_000)}}} }}",
    "subgraphs beyond many": lambda: f"digraph {{ {{{_names('a', 10_000)}}} -> {{{_names('b', 10_000)}}} }}",
    "tiers beyond many": lambda: " | ".join(f"a{i}" for i in range(3000)),
}


def _names(letter, count):
    return " ".join(f"{letter}{i}" for i in range(count))


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] if case == "groups of many" else []) for case in LARGE]
)
def test_a_large_text_is_read_or_refused_in_seconds(case):
    text = LARGE[case]()
    before = time.process_time()
    try:
        CausalGraph.from_text(text)
        refused = ""
    except GraphError as problem:
        refused = str(problem)
    # Each took half a minute and more.
    assert time.process_time() - before < 15
    assert ("more than 1000000 edges" in refused) == ("beyond" in case)


@pytest.mark.parametrize("name", ["graph", "digraph", "dag", "strict", "node", "Graph", "version"])
@pytest.mark.parametrize("mark", ["latent", "exposure", None])
def test_a_node_named_like_a_keyword_comes_back(name, mark):
    graph = CausalGraph(nodes=(name, "x {"), directed=[(name, "x {")], latent=[name] if mark == "latent" else [])
    for text in (graph.to_edges(), graph.to_dagitty(), graph.to_dot(), graph.to_gml(), graph.to_tiers()):
        assert CausalGraph.from_text(text) == graph
    if mark:
        assert CausalGraph.from_text(f"{name} [{mark}]").nodes == (name,)


def test_gml_of_other_tools_is_read():
    graph = CausalGraph.from_gml(
        'graph [ directed 1 node [ id 0 label "U" observed "no" ] node [ id 1 label "X" ] edge [ source 0 target 1 ] ]'
    )
    assert graph == CausalGraph.from_edges("U -> X", latent="U")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph [ node [ id 0 ", "not GML"),
        ("graph [ directed 1 node [ ] ]", "not GML"),
        ('graph [ node [ id 0 label "A" ] node [ id 1 label "B" ] edge [ source 0 target 1 ] ]', "undirected networkx"),
    ],
)
def test_wrong_gml_is_refused(text, message):
    with pytest.raises(GraphError, match=message):
        CausalGraph.from_gml(text)


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        (networkx.Graph([("A", "B")]), "does not say which node causes which"),
        (networkx.DiGraph([(1, 2)]), "must be a string, but 1 is of type int"),
        (networkx.DiGraph([("A", "B"), ("B", "A")]), "no directed cycle, but A → B → A"),
        ("A -> B", "networkx graph is expected, but str"),
    ],
)
def test_wrong_networkx_graph_is_refused(drawn, message):
    with pytest.raises(GraphError, match=message):
        CausalGraph.from_networkx(drawn)


def test_unknown_marks_with_a_meaning_are_refused():
    drawn = networkx.DiGraph()
    drawn.add_edge("A", "B", kind="dashed")
    with pytest.raises(GraphError, match="has kind 'dashed'"):
        CausalGraph.from_networkx(drawn)
    with pytest.raises(GraphError, match="latent='perhaps'"):
        CausalGraph.from_dot("digraph { A [latent=perhaps] }")
    with pytest.raises(GraphError, match="role 'boss'"):
        CausalGraph.from_dot("digraph { A [roles=boss] }")


def test_empty_text_and_missing_files_are_refused(tmp_path):
    with pytest.raises(GraphError, match="text is empty"):
        CausalGraph.from_text(" \n ")
    with pytest.raises(GraphError, match="There is no file"):
        CausalGraph.from_file(tmp_path / "none.txt")
    with pytest.raises(GraphError, match="cannot be read"):
        CausalGraph.from_file(tmp_path)
    (tmp_path / "image.bin").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(GraphError, match="not UTF-8"):
        CausalGraph.from_file(tmp_path / "image.bin")
    with pytest.raises(GraphError, match="more signs than any graph"):
        CausalGraph.from_file("/dev/zero")
    with pytest.raises(GraphError, match="must be a string, but int"):
        CausalGraph.from_dagitty(3)


_dot = st.sampled_from(
    ["A", "B", "->", "--", "{", "}", "[", "]", "dir=both", ";", '"x"', "=", ":", "subgraph", "<", ","]
)
_gml = st.sampled_from(
    ["graph", "[", "]", "node", "edge", "id 0", "id 1", 'label "A"', "source 0", "target 1", "directed 1"]
)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.lists(_dot, max_size=12).map(" ".join), st.text(max_size=30)))
def test_any_dot_text_is_a_graph_or_a_graph_error(text):
    try:
        graph = CausalGraph.from_dot(f"digraph {{ {text} }}")
    except GraphError:
        return
    assert CausalGraph.from_dot(graph.to_dot()) == graph


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(st.lists(_gml, max_size=12).map(" ".join), st.text(max_size=30)))
def test_any_gml_text_is_a_graph_or_a_graph_error(text):
    for framed in (text, f"graph [ directed 1 {text} ]"):
        try:
            graph = CausalGraph.from_gml(framed)
        except GraphError:
            continue
        assert CausalGraph.from_gml(graph.to_gml()) == graph


_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(["nodes", "directed", "latent", "positions", "undirected", "x"]), _values))
def test_any_json_is_a_graph_or_a_graph_error(content):
    import json

    try:
        graph = CausalGraph.from_json(json.dumps(content))
    except GraphError:
        return
    assert CausalGraph.from_json(graph.to_json()) == graph
