"""A drawing as the page sends it: read, written, repaired."""

import json

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
