"""A verdict that was saved is the verdict that was given."""

import copy
import json
import pickle
import random

import pytest

from ciplearn import CausalGraph, Verdict
from ciplearn._core.errors import InputError
from ciplearn.causal import ClassVerdict
from tests.causal.oracle import random_graph


def _read_back(verdict):
    return Verdict.from_dict(json.loads(json.dumps(verdict.to_dict())), verdict.graph)


def assert_same(again, verdict):
    assert type(again) is type(verdict)
    assert again == verdict
    assert str(again) == str(verdict)
    assert again.to_dict() == verdict.to_dict()
    assert again.repairs == verdict.repairs
    assert [str(repair) for repair in again.repairs] == [str(repair) for repair in verdict.repairs]
    assert again.weaker == verdict.weaker
    assert again.open_paths == verdict.open_paths
    assert [said.check for said in again.assumptions] == [said.check for said in verdict.assumptions]


def test_verdicts_on_random_problems_survive_json():
    rng = random.Random(21)
    failing = injective = 0
    for _ in range(600):
        graph = random_graph(rng, 6)
        observed = rng.sample(list(graph.observed), len(graph.observed))
        if len(observed) < 2:
            continue
        outcome, protected, *rest = observed
        chosen = [[name for name in rest if rng.random() < 0.6] for _ in range(3)]
        adjustment = chosen[2] if rng.random() < 0.5 else None
        verdict = graph.criterion(outcome, protected, chosen[0], chosen[1] or None, adjustment)
        assert_same(_read_back(verdict), verdict)
        failing += not verdict.holds
        injective += bool(verdict.injective)
    assert failing > 60
    assert injective > 10


def test_verdicts_on_classes_of_graphs_survive_json():
    rng = random.Random(22)
    seen = set()
    for _ in range(150):
        whole = random_graph(rng, 5, smallest=3, confounded=False)
        loose = [edge for edge in whole.directed if rng.random() < 0.5]
        graph = CausalGraph.from_edges(
            [edge for edge in whole.directed if edge not in loose], undirected=loose, nodes=whole.nodes
        )
        if not loose or next(graph.members(1), None) is None:
            continue
        outcome, protected, *rest = rng.sample(list(graph.observed), len(graph.observed))
        verdict = graph.criterion(outcome, protected, rest[:1], rest)
        again = _read_back(verdict)
        assert isinstance(again, ClassVerdict)
        assert [member.graph for member in again.members] == [member.graph for member in verdict.members]
        assert_same(again, verdict)
        seen.add(verdict.holds_in)
    assert seen == {"all", "some", "none"}


def test_names_with_arrows_survive_json():
    graph = CausalGraph.from_edges([("a → b", "A"), ("a → b", "c ← d"), ("A", "Y")])
    verdict = graph.criterion("Y", "A", context=[], inputs=["A", "c ← d"], adjustment=[])
    assert verdict.open_paths
    assert_same(_read_back(verdict), verdict)


def test_reading_back_does_not_judge_again(monkeypatch):
    verdict = CausalGraph.from_edges("H -> A -> Y").criterion("Y", "A", context=[], inputs=["A", "H"], adjustment=[])
    content = verdict.to_dict()
    for search in ("judge", "find_repairs", "find_fallbacks"):
        monkeypatch.setattr(f"ciplearn.causal.criterion.{search}", None)
    assert_same(Verdict.from_dict(content, verdict.graph), verdict)


@pytest.mark.parametrize(
    ("content", "message"),
    [({}, "KeyError: 'protected'"), ({"protected": ["B"]}, "'B', which is not in the graph"), (None, "no verdict")],
)
def test_what_is_no_verdict_on_the_graph_is_refused(content, message):
    graph = CausalGraph.from_edges("A -> Y")
    whole = graph.criterion("Y", "A").to_dict()
    with pytest.raises(InputError, match=message):
        Verdict.from_dict({**whole, **content} if content else content, graph)


def test_each_assumption_is_a_sentence_that_names_the_check_that_bears_on_it():
    graph = CausalGraph.from_edges("A -> L -> Y, L <-> Y, Q -> Y")
    verdict = graph.criterion("Y", "A", context=["A", "L"])
    checks = {said.partition(":")[0]: said.check for said in verdict.assumptions}
    assert "ciplearn check GRAPH --data TABLE" in checks["The graph is right"]
    assert "sensitivity" in checks["The graph is right"]
    assert "audit" in checks["Overlap"]
    assert "independence_test" in checks["The independence is exact"]
    assert "counterfactual_bounds" in checks["{L}"]
    assert all(isinstance(said, str) and said.sentence == said for said in verdict.assumptions)
    assert all(f"{said} Check: {said.check}" in str(verdict) for said in verdict.assumptions)
    content = json.loads(json.dumps(verdict.to_dict()))
    assert content["assumptions"] == [str(said) for said in verdict.assumptions]
    assert content["checks"] == [said.check for said in verdict.assumptions]
    assert content["keys"][:4] == ["graph", "overlap", "inputs", "exact"]


def test_assumptions_survive_pickles_and_copies_with_their_checks():
    verdict = CausalGraph.from_edges("A -> Y").criterion("Y", "A")
    for again in (pickle.loads(pickle.dumps(verdict)), copy.deepcopy(verdict)):
        assert again.assumptions == verdict.assumptions
        assert [said.check for said in again.assumptions] == [said.check for said in verdict.assumptions]
