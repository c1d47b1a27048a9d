"""A drawing as the page sends it: read, written, repaired."""

import json
from dataclasses import replace

import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn.workbench.document import Document
from tests.workbench.graphs import twenty


@pytest.mark.parametrize("name", sorted(twenty()))
def test_graph_survives_the_way_to_the_page_and_back(name):
    graph = twenty()[name]
    again = Document.read(json.loads(json.dumps(Document(graph).to_dict())))
    assert again.graph == graph
    assert dict(again.graph.positions) == dict(graph.positions)


def test_there_are_twenty_graphs():
    assert len(twenty()) == 20


@pytest.mark.parametrize("name", ["figure a", "figure c", "adult", "M-bias", "napkin", "partial", "figure b"])
def test_every_repair_leads_to_a_drawing_that_holds(name):
    document = Document(twenty()[name])
    verdict = document.verdict()
    for repair in verdict.repairs:
        repaired = document.repaired(verdict, repair.changes).verdict()
        assert repaired.holds
        assert repaired.independence == repair.independence


def test_repairs_of_edges_between_the_same_nodes_are_told_apart():
    graph = CausalGraph.from_dagitty("dag { A [exposure] Y [outcome] A -> L L -> Y A <-> L }")
    document = Document(graph, context=("A", "L"))
    verdict = document.verdict()
    for repair in verdict.repairs:
        assert document.repaired(verdict, repair.changes).verdict().holds


def test_measuring_a_common_cause_adds_a_node_that_is_not_in_the_context():
    document = Document(twenty()["napkin"])
    verdict = document.verdict()
    measured = [repair for repair in verdict.repairs if any(change.kind == "measure" for change in repair.changes)]
    for repair in measured:
        repaired = document.repaired(verdict, repair.changes)
        new = set(repaired.graph.nodes) - set(document.graph.nodes)
        assert new
        assert new.isdisjoint(repaired.context or ())


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"graph": {"nodes": ["A"]}, "strange": 1},
        {"graph": {"nodes": [1]}},
        {"graph": {"nodes": ["A"]}, "context": "A"},
        {"graph": {"nodes": ["A"]}, "context": ["B"]},
        {"graph": {"nodes": ["A"], "latent": ["A"]}, "inputs": ["A"]},
        {"graph": {"nodes": ["A"]}, "kinds": {"A": "vector"}},
        {"graph": {"directed": [["A", "B"], ["B", "A"]]}},
    ],
)
def test_what_is_no_document_gets_one_sentence(content):
    with pytest.raises(CiplearnError) as caught:
        Document.read(content)
    assert str(caught.value)


def test_unknown_change_is_refused_in_words():
    from ciplearn.causal.verdict import Change

    document = Document(twenty()["figure a"])
    with pytest.raises(InputError, match="cannot apply 'paint'"):
        document.repaired(document.verdict(), (Change("paint", ("A",), "paint A"),))


def test_fingerprint_tells_edges_roles_kinds_and_tables_apart_and_not_places_or_orders():
    text = "dag {{ A [exposure] Y [outcome] S -> {{A Y}} A -> L -> Y {} }}"
    drawn = Document(CausalGraph.from_dagitty(text.format("")))
    mark = drawn.fingerprint("one")
    moved = CausalGraph.from_dagitty('dag { Y [outcome] A -> L -> Y S -> {Y A} A [exposure,pos="3,4"] }')
    assert Document(moved).fingerprint("one") == mark
    assert Document(replace(moved, adjusted=drawn.verdict().adjustment)).fingerprint("one") == mark, "the same set"
    others = [
        Document(CausalGraph.from_dagitty(text.format("A -> Y"))),
        Document(CausalGraph.from_dagitty(text.format("A <-> Y"))),
        Document(CausalGraph.from_dagitty(text.format("S [exposure]"))),
        Document(CausalGraph.from_dagitty(text.format("L [latent]"))),
        Document(drawn.graph, context=("A",)),
        Document(drawn.graph, inputs=("L",)),
        Document(drawn.graph, kinds={"L": "category"}),
    ]
    marks = {mark, drawn.fingerprint("two"), *(other.fingerprint("one") for other in others)}
    assert len(marks) == 2 + len(others)

    def parts(other, table="one"):
        pairs = zip(mark.split("-"), other.fingerprint(table).split("-"), strict=True)
        return [place for place, (one, two) in enumerate(pairs) if one != two]

    assert parts(drawn, "two") == [3]
    assert parts(others[-1]) == [2]
    assert parts(others[4]) == [1]
    assert 0 in parts(others[0])
