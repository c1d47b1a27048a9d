import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ciplearn._core.errors import GraphError, GraphSyntaxError
from ciplearn.causal import CausalGraph


def test_groups_chains_and_every_arrow_are_read():
    graph = CausalGraph.from_dagitty("dag { S -> {A L} ; A -> L -> Y <- S ; {A B} <-> {C D} }")
    assert set(graph.directed) == {("S", "A"), ("S", "L"), ("A", "L"), ("L", "Y"), ("S", "Y")}
    assert set(graph.bidirected) == {("A", "C"), ("A", "D"), ("B", "C"), ("B", "D")}


@pytest.mark.parametrize(
    "text",
    [
        "dag{A->B;B->C}",
        "dag { A -> B\n B -> C }",
        "dag {\nA -> B B -> C\n}",
        "dag name { A -> B -> C }",
        'dag "my model" {\n  bb="0,0,1,1"\n  A -> B [pos="1,2"]\n  B -> C\n}',
        "// head\ndag { /* in\nside */ A -> B # tail\n B -> C }\n// end",
        "dag { A ->\n B ;;; C <- B ; }",
        "dag { A → B ← \n A B → C }",
        "A -> B -> C",
    ],
)
def test_line_breaks_comments_and_separators_do_not_matter(text):
    assert CausalGraph.from_dagitty(text) == CausalGraph.from_edges([("A", "B"), ("B", "C")])


def test_roles_latents_and_positions_are_read():
    graph = CausalGraph.from_dagitty(
        'dag { A [exposure, pos="0,1.5"] Y [outcome] U [latent] Z [adjusted,latent] {P Q} [u] U -> {A Y} A -> Y }'
    )
    assert graph.exposures == ("A",)
    assert graph.outcomes == ("Y",)
    assert graph.adjusted == ("Z",)
    assert graph.latent == {"U", "Z", "P", "Q"}
    assert graph.positions == {"A": (0.0, 1.5)}


def test_quoted_names_may_hold_anything_on_one_line():
    graph = CausalGraph.from_dagitty(r'dag { "hours per week" -> "say \"hi\"" ; "a -> b" -> "back\\slash" }')
    assert set(graph.nodes) == {"hours per week", 'say "hi"', "a -> b", "back\\slash"}


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("dag { A -> }", 1, 12, "node name is missing"),
        ("dag { A -> B", 1, 13, "not closed"),
        ("dag {\n  A => B\n}", 2, 5, "'=> B' is not an edge|'=>' is not an edge"),
        ("dag {\n  A - B\n}", 2, 5, "is not an edge"),
        ("dag {\n  hours-per-week -> B }", 2, 8, "quote names"),
        ("dag { A ~ B }", 1, 9, "is not an edge"),
        ("dag { A -- B }", 1, 9, "write pdag"),
        ("dag { A @-> B }", 1, 9, "is not an edge"),
        ("mag { A -> B }", 1, 1, "'mag' is not read here"),
        ("dag { A [expsure] }", 1, 10, "did you mean 'exposure'"),
        ("dag { A [selected] }", 1, 10, "not known"),
        ("dag { A -> B [beta=0.3] }", 1, 15, "edge attribute 'beta'"),
        ('dag { A [pos="1"] }', 1, 14, "position is two numbers"),
        ('dag { A [pos="1,inf"] }', 1, 14, "position is two numbers"),
        ('dag { "A -> B }', 1, 7, "quoted name is not closed"),
        ("dag { /* A }", 1, 7, "comment is not closed"),
        ("dag { A -> A }", 1, 12, "No node causes itself"),
        ("dag { {} -> A }", 1, 7, "group is empty"),
        ("dag { {A -> B} -> C }", 1, 10, "names only"),
        ("dag { A -> B } C", 1, 16, "after its closing brace"),
        ("dag { A -> B } }", 1, 16, "after its closing brace"),
        ('dag { "" -> B }', 1, 7, "must not be empty"),
        ("dag { layout=1 A }", 1, 7, "attribute 'layout'"),
        ("dag { A [latent", 1, 16, "ends in the middle"),
        ("dag { A ⇒ B }", 1, 9, "cannot start a name"),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_place(text, line, column, message):
    with pytest.raises(GraphSyntaxError, match=message) as caught:
        CausalGraph.from_dagitty(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_edges_may_be_text_pairs_or_a_mixture():
    expected = CausalGraph.from_edges([("S", "A"), ("A", "Y")], bidirected=[("S", "Y")])
    assert CausalGraph.from_edges("S->A, A->Y, S<->Y") == expected
    assert CausalGraph.from_edges(["S->A", ("A", "Y")], bidirected="S <-> Y") == expected
    assert CausalGraph.from_edges((["S", "A"], ["A", "Y"]), bidirected=["Y<->S"]) == expected


def test_text_for_the_wrong_kind_of_edge_is_refused():
    with pytest.raises(GraphError, match="is not a bidirected edge"):
        CausalGraph.from_edges(bidirected="A -> B")


@pytest.mark.parametrize("edges", [("A", "B"), ["A"], {"A": ["B"]}, 7, None])
def test_a_pair_instead_of_pairs_is_refused_and_not_read_as_lonely_nodes(edges):
    with pytest.raises(GraphError, match=r"draws no edge|must be text or pairs"):
        CausalGraph.from_edges(edges)


_pieces = st.sampled_from(
    ["A", "B", "C", '"x y"', "->", "<-", "<->", "--", "{", "}", "[", "]", ";", ",", "=", "latent", "exposure", "pos",
     '"0,1"', " ", "\n", "dag", "pdag", "//", "/*", "*/", '"', "\\", "-", "é", "1"]
)  # fmt: skip


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.one_of(st.lists(_pieces, max_size=14).map(" ".join), st.lists(_pieces, max_size=10).map("".join), st.text()))
def test_any_text_is_a_graph_or_a_graph_error(text):
    for framed in (text, f"dag {{ {text} }}", f"pdag {{ {text} }}"):
        try:
            graph = CausalGraph.from_dagitty(framed)
        except GraphError:
            continue
        assert CausalGraph.from_dagitty(graph.to_dagitty()) == graph


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from("ABCDEFG"), st.sampled_from(["->", "<-", "<->"]), st.sampled_from("ABCDEFG")))
)
def test_no_edge_of_a_list_is_lost(edges):
    text = "; ".join(f"{a} {arrow} {b}" for a, arrow, b in edges)
    try:
        graph = CausalGraph.from_edges(text)
    except GraphError:
        directed = {(a, b) if arrow == "->" else (b, a) for a, arrow, b in edges if arrow != "<->"}
        assert any(a == b for a, _, b in edges) or _cyclic(directed)
        return
    for a, arrow, b in edges:
        pair = (b, a) if arrow == "<-" else (a, b)
        assert pair in graph.directed if arrow != "<->" else tuple(sorted(pair)) in graph.bidirected


def _cyclic(directed):
    remaining = {node for edge in directed for node in edge}
    while free := {node for node in remaining if not any(a in remaining and b == node for a, b in directed)}:
        remaining -= free
    return bool(remaining)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("years at school -> Y, A -> Y", 7),
        ("A -> years at school, A -> Y", 12),
        ("A -> hours per week -> Y", 12),
        ('A -> "hours per" week', 18),
        ("A -> B B -> C", 8),
        ("A -> B, years at school", 15),
        ("{years at school, A} -> Y", 8),
        ("A -> {Y; years at school}", 16),
        ("A B", 3),
    ],
)
def test_words_side_by_side_in_an_edge_list_are_refused_and_never_several_nodes(text, column):
    for read in (CausalGraph.from_edges, CausalGraph.from_text, CausalGraph.from_dagitty):
        with pytest.raises(GraphSyntaxError, match="quote names that hold spaces") as caught:
            read(text)
        assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize(
    "text",
    [
        "A -> B, C",
        "A -> B; C",
        "C\nA -> B",
        "A -> B // an edge\nC\n",
        "A ->\n B\nC",
        "A\n-> B\nC",
    ],
)
def test_lone_node_of_an_edge_list_has_a_line_or_comma_of_its_own(text):
    assert CausalGraph.from_edges(text) == CausalGraph.from_edges([("A", "B")], nodes=["C"])


def test_groups_and_quoted_names_of_an_edge_list_may_stand_side_by_side():
    expected = CausalGraph.from_edges([("A", "Y"), ("hours per week", "Y")])
    for text in ('{A "hours per week"} -> Y', '{A, "hours per week"} -> Y', '{A\n"hours per week"} -> Y'):
        assert CausalGraph.from_edges(text) == expected


def test_words_of_a_framed_model_are_nodes_as_dagitty_has_it():
    assert set(CausalGraph.from_dagitty("dag { X Y Z X -> Y }").nodes) == {"X", "Y", "Z"}


@pytest.mark.parametrize("read", [CausalGraph.from_edges, CausalGraph.from_text])
def test_the_name_of_a_file_is_not_a_node(read):
    with pytest.raises(GraphError, match=r"from_file"):
        read("folder/graph.txt")
    assert read("a.txt -> b.txt").nodes == ("a.txt", "b.txt")


TIERS = "sex, age | job, employment | savings | bad"


def test_each_tier_acts_on_all_later_ones():
    graph = CausalGraph.from_text(TIERS)
    tiers = [["sex", "age"], ["job", "employment"], ["savings"], ["bad"]]
    drawn = {(a, b) for place, tier in enumerate(tiers) for a in tier for later in tiers[place + 1 :] for b in later}
    assert set(graph.directed) == drawn
    assert graph.to_tiers() == "age, sex | employment, job | savings | bad"
    assert CausalGraph.from_text(graph.to_tiers()) == graph


@pytest.mark.parametrize(
    "text",
    [
        "a, b | c; b <-> c; d [latent]; d -> c",
        "# a comment\na, b |\n  c\nb <-> c\nd [latent]\nd -> c",
        "a,\nb\n| c\nb <-> c, d -> c, d [latent]",
        "dag { a b | c ; b <-> c d -> c d [latent] }",
        "d -> c, a, b | c; b <-> c; d [latent]",
    ],
)
def test_tiers_stand_beside_other_statements(text):
    assert CausalGraph.from_text(text) == CausalGraph.from_edges("{a b} -> c, d -> c, b <-> c", latent="d")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a | b -> c", "'->' stands in a line of tiers"),
        ("a | b [latent]", r"'\[' stands in a line of tiers"),
        ("a | {b c}", r"'\{' stands in a line of tiers"),
        ("a || b", "tier is empty"),
        ("a | ", "tier is empty"),
        ("| a", "tier is empty"),
        ("a | b | a", "No node causes itself"),
        ("a b | c", "Nothing stands between the words of 'a b'"),
        ("a | b; b -> a", "no directed cycle"),
    ],
)
def test_what_is_no_line_of_tiers_is_refused(text, message):
    with pytest.raises(GraphError, match=message):
        CausalGraph.from_text(text)


def test_only_a_graph_of_tiers_is_written_as_one():
    for text in ("a -> b -> c", "a -> {b c}, d -> c", "a <-> b"):
        with pytest.raises(GraphError, match="not those of tiers"):
            CausalGraph.from_text(text).to_tiers()
    other = CausalGraph.from_text("a, b | c; a <-> b; e; b [exposure]; h [latent]; e -- f")
    assert other.to_tiers() == "a, b | c; b [exposure]; h [latent]; a <-> b; e -- f"
    assert CausalGraph.from_text(other.to_tiers()) == other
