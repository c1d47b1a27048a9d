import dataclasses
import json
import sys
from functools import partial

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ciplearn import CausalGraph, datasets, sensitivity
from ciplearn._core.errors import InputError
from ciplearn._core.workers import OneProcess
from ciplearn.doubt.falsification import RankCorrelations, Refutation
from ciplearn.doubt.graph_sensitivity import _GraphQuestion, single_changes, variants_of
from tests.doubt.people import people, through

GRAPH = CausalGraph.from_edges("S -> A, S -> L, A -> L, S -> Y, L -> Y")
ROLES = {"outcome": "Y", "protected": ["A"]}


@pytest.fixture(scope="module")
def found():
    graphs = {
        "no effect": CausalGraph.from_edges("S -> A, S -> L, S -> Y, L -> Y"),
        "mediated": CausalGraph.from_edges("A -> S, S -> L, A -> L, S -> Y, L -> Y"),
    }
    return sensitivity(through, GRAPH, people(), graphs, inputs=["L"], n_points=60, n_interventions=30, **ROLES)


def test_single_changes_are_all_and_only_the_acyclic_ones():
    changes = {variant.change: variant.graph for variant in single_changes(GRAPH)}
    assert len(changes) == len(list(single_changes(GRAPH)))
    removed = {change for change in changes if change.startswith("without")}
    assert removed == {f"without {a} → {b}" for a, b in GRAPH.directed}
    reversed_ = {change for change in changes if change.endswith("reversed")}
    assert reversed_ == {"S → A reversed", "A → L reversed", "L → Y reversed"}
    assert {change for change in changes if "with A" in change and "→ Y" in change} == {"with A → Y"}
    assert "with Y → A" not in changes
    assert sum("↔" in change for change in changes) == 6


def test_vcf_follows_the_graph(found):
    vcf = found.table.set_index("change")["vcf"]
    # L moves by 2 per unit of A, and Var A = 2.
    assert vcf["as drawn"] == pytest.approx(8, rel=0.3)
    assert vcf["no effect"] == pytest.approx(0, abs=1e-9)
    # A also moves S, by 1/2.
    assert vcf["mediated"] == pytest.approx(2 * 2.5**2, rel=0.3)


def test_graphs_that_data_refute_are_marked_and_left_out_of_the_interval(found):
    refuted = found.table.set_index("change")["refuted"]
    assert dict(refuted) == {"as drawn": False, "no effect": True, "mediated": False}
    assert found.interval == (found.table["vcf"][0], found.table["vcf"][2])
    assert found.largest == "mediated"


def test_where_the_drawn_graph_is_itself_refuted_other_refuted_graphs_count_too(found):
    table = found.table.assign(refuted=[True, True, False])
    wrong = dataclasses.replace(found, table=table)
    assert wrong.interval == (table["vcf"].min(), table["vcf"].max())
    assert wrong.largest == (table["vcf"] - table["vcf"][0]).abs().groupby(table["change"]).max().idxmax()
    assert "the 2 of 2 other graphs that the rows contradict no more than the drawn one" in str(wrong)
    assert "the 1 of 2 other graphs that the rows do not contradict" in str(found)


def test_verdicts_and_their_changes_are_told(found):
    verdicts = [graph.criterion(**ROLES).holds for graph in found.graphs]
    assert list(found.table["holds"]) == verdicts
    assert found.flips == tuple(found.table["change"][found.table["holds"] != verdicts[0]])
    assert f"The verdict changes in {len(found.flips)} of 2" in str(found)


def test_the_result_is_json_and_a_tornado(found):
    mpl.use("Agg")
    read = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert read["interval"] == list(found.interval)
    axes = found.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["mediated", "no effect"]
    mpl.pyplot.close(axes.figure)


@pytest.mark.slow
def test_hidden_causes_and_processes_change_nothing_about_the_others():
    graph = CausalGraph.from_edges("A -> L, L -> Y")
    arguments = {"inputs": ["L"], "n_points": 30, "n_interventions": 10, **ROLES}
    one = sensitivity(through, graph, people(120), **arguments)
    two = sensitivity(through, graph, people(120), n_jobs=2, **arguments)
    pd.testing.assert_frame_equal(one.table, two.table)
    assert "with A ↔ L" in set(one.table["change"])
    assert one.table.set_index("change")["vcf"].notna().all()


class Watching:
    """A predictor that notes how many answers are written down when it is asked."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, frame):
        answers = self.folder / "answers"
        with (self.folder / "seen").open("a") as stream:
            stream.write(f"{len(answers.read_text().splitlines()) if answers.exists() else 0}\n")
        return through(frame)


@pytest.mark.slow
def test_answers_of_several_processes_are_written_down_as_they_come(tmp_path):
    graph = CausalGraph.from_edges("A -> L, L -> Y")
    arguments = {"inputs": ["L"], "n_points": 30, "n_interventions": 10, "file": tmp_path / "answers", **ROLES}
    found = sensitivity(Watching(tmp_path), graph, people(120), n_jobs=2, **arguments)
    seen = (tmp_path / "seen").read_text().split()
    assert max(map(int, seen)) > 0
    again = sensitivity(Watching(tmp_path), graph, people(120), n_jobs=2, **arguments)
    pd.testing.assert_frame_equal(again.table, found.table)
    # Twice to know that it is the same model, and about no graph.
    assert len((tmp_path / "seen").read_text().split()) == len(seen) + 2


def test_answers_about_another_model_are_not_taken(tmp_path):
    # Whatever reads the one or the other says the same about these rows.
    table = people(120).assign(L=lambda rows: 2 * rows["A"])
    first, same, other = (LinearRegression().fit(table[[name]], table["Y"]) for name in ("L", "L", "A"))
    arguments = {"graphs": {"none": CausalGraph.from_edges("A -> Y, L -> Y")}, "n_points": 30, **ROLES}
    ask = partial(sensitivity, graph=CausalGraph.from_edges("A -> L, L -> Y"), table=table, **arguments)
    found = ask(first, file=tmp_path / "answers")
    pd.testing.assert_frame_equal(ask(same, file=tmp_path / "answers").table, found.table)
    with pytest.raises(InputError, match="holds answers to another question"):
        ask(other, file=tmp_path / "answers")


def test_members_of_a_class_are_compared_by_default():
    graph = CausalGraph(directed=[("S", "Y"), ("L", "Y")], undirected=[("S", "A"), ("A", "L"), ("S", "L")])
    found = sensitivity(through, graph, people(150), inputs=["L"], n_points=20, n_interventions=10, **ROLES)
    assert len(found.table) == len(list(graph.members()))


def bent(n=1500):
    """L follows A along a curve that correlations of ranks do not see through."""
    draw = np.random.default_rng(3)
    a = draw.normal(size=n)
    el = np.abs(a) + 0.3 * draw.normal(size=n)
    return pd.DataFrame(
        {"A": a, "L": el, "Y": el**2 + 0.3 * draw.normal(size=n), "Z": np.exp(a) + 0.3 * draw.normal(size=n)}
    )


def test_a_true_graph_with_bent_mechanisms_is_not_refuted_and_a_wrong_one_is():
    true = CausalGraph.from_edges("A -> L, L -> Y, A -> Z")
    wrong = CausalGraph.from_edges("A -> L, A -> Y, A -> Z")
    table = bent()
    # Rank correlations alone would refute the true graph, too.
    quick = RankCorrelations(table, {name: (name,) for name in table})
    assert quick.p_value("Y", "Z", ["L"]) < 1e-3 or quick.p_value("Z", "L", ["A"]) < 1e-3
    found = sensitivity(through, true, table, {"wrong": wrong}, inputs=["L"], n_points=20, n_interventions=10, **ROLES)
    assert list(found.table["refuted"]) == [False, True]


def test_little_work_goes_to_arrows_at_the_protected_node_and_not_to_what_looks_refuted(monkeypatch):
    asked = []
    # Z is noise: arrows to and from it are neither at A nor refuted.
    answer, table = _GraphQuestion.answer, people(60).assign(Z=np.random.default_rng(1).normal(size=60))
    graph = CausalGraph.from_edges("S -> A, S -> L, A -> L, S -> Y, L -> Y, Z -> Y")
    monkeypatch.setattr(_GraphQuestion, "answer", lambda self, v, like: asked.append(v) or answer(self, v, like))
    sensitivity(through, graph, table, inputs=["L"], n_points=5, n_interventions=3, n_draws=1, **ROLES)
    refuted = Refutation(table, {name: (name,) for name in table}, 0)
    kinds = []
    for variant in asked:
        if variant.change == "as drawn":
            kinds.append("drawn")
        elif variant.hidden:
            kinds.append("hidden")
        elif refuted.suspects(variant.graph)[0]:
            kinds.append("suspect")
        else:
            kinds.append("at A" if "A" in variant.change else "elsewhere")
    order = ["drawn", "at A", "elsewhere", "suspect", "hidden"]
    assert set(kinds) == set(order)
    assert kinds == sorted(kinds, key=order.index)


def test_what_was_not_asked_about_has_a_verdict_and_no_vcf():
    found = sensitivity(
        through,
        GRAPH,
        people(60),
        {"again": GRAPH},
        inputs=["L"],
        n_points=20,
        n_interventions=10,
        limit=0,
        **ROLES,
    )
    assert found.table["vcf"].isna().tolist() == [False, True]
    assert found.table["holds"].notna().all()
    assert found.table["note"].tolist() == ["", "not among the graphs that were asked about"]
    assert "1 was not among the graphs that were asked about" in str(found)
    with pytest.raises(InputError, match="limit"):
        sensitivity(through, GRAPH, people(60), limit=-1, **ROLES)


def test_of_a_large_class_one_member_per_set_of_parents_is_compared(monkeypatch):
    graph = CausalGraph(directed=[("S", "Y"), ("L", "Y")], undirected=[("S", "A"), ("A", "L"), ("S", "L")])
    monkeypatch.setattr("ciplearn.doubt.graph_sensitivity._MOST_MEMBERS", 2)
    found = variants_of(graph, None, ["A"])
    parents = [variant.graph.parents("A") for variant in found]
    assert sorted(parents) == [(), ("L",), ("L", "S"), ("S",)]


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([CausalGraph.from_edges("S -> B")], "graph 1 is over other observed nodes"),
        ([], "graphs is empty"),
        ("S -> A", "must be a list or a dict"),
        ({"mine": "S -> A"}, "mine must be a CausalGraph, got str"),
    ],
)
def test_bad_sets_of_graphs_are_refused(graphs, message):
    with pytest.raises(InputError, match=message):
        sensitivity(through, GRAPH, people(), graphs, **ROLES)


def test_a_table_without_a_node_is_refused():
    with pytest.raises(InputError, match="no column for L"):
        sensitivity(through, GRAPH, people().drop(columns="L"), **ROLES)


def test_answers_are_kept_and_not_asked_for_again(tmp_path, found):
    asked = []

    def counted(frame):
        asked.append(len(frame))
        return frame["L"]

    graphs = {
        "no effect": CausalGraph.from_edges("S -> A, S -> L, S -> Y, L -> Y"),
        "mediated": CausalGraph.from_edges("A -> S, S -> L, A -> L, S -> Y, L -> Y"),
    }
    settings = {"inputs": ["L"], "n_points": 60, "n_interventions": 30, "file": tmp_path / "kept", **ROLES}
    first = sensitivity(counted, GRAPH, people(), dict(list(graphs.items())[:1]), **settings)
    assert first.table["change"].tolist() == found.table["change"].tolist()[:2]
    asked.clear()
    again = sensitivity(counted, GRAPH, people(), graphs, engine=OneProcess(), **settings)
    pd.testing.assert_frame_equal(again.table, found.table)
    seen = len(asked)
    sensitivity(counted, GRAPH, people(), graphs, **settings)
    # Twice to know that it is the same model, and about no graph.
    assert len(asked) == seen + 2
    with pytest.raises(InputError, match="another question"):
        sensitivity(counted, GRAPH, people(300), graphs, **settings)


def test_a_file_tells_graphs_of_one_name_apart(tmp_path):
    effect, none = GRAPH, CausalGraph.from_edges("S -> A, S -> L, S -> Y, L -> Y")
    asked = {"inputs": ["L"], "n_points": 30, "n_interventions": 10, "file": tmp_path / "answers", **ROLES}
    first = sensitivity(through, GRAPH, people(), {"other": effect}, **asked).table["vcf"].iloc[-1]
    second = sensitivity(through, GRAPH, people(), {"other": none}, **asked).table["vcf"].iloc[-1]
    assert first > 1
    assert second == 0


def test_graphs_without_a_vcf_are_not_counted_and_say_why():
    draw = np.random.default_rng(0)
    a = draw.normal(size=300)
    table = pd.DataFrame({"A": a, "L": a + draw.normal(size=300), "Y": a})
    graph = CausalGraph.from_edges("A -> L, L -> Y")

    def only_as_drawn(frame):
        # Under the other graph L does not follow A.
        constant = frame["L"].groupby(np.arange(len(frame)) // 20).transform("nunique") <= 1
        return np.where(constant, np.nan, frame["L"])

    other = CausalGraph.from_edges("L -> Y, A -> Y")
    found = sensitivity(
        only_as_drawn,
        graph,
        table,
        {"x": other},
        outcome="Y",
        protected=["A"],
        inputs=["L"],
        n_points=20,
        n_interventions=20,
    )
    assert found.table["vcf"].isna().tolist() == [False, True]
    assert "the 0 of 1 other graphs" in str(found)
    assert "For 1 VCF could not be measured: The predictor" in str(found)


def test_without_a_file_no_answer_is_kept_or_told_apart_by_its_text(monkeypatch):
    module = sys.modules["ciplearn.doubt.graph_sensitivity"]
    monkeypatch.setattr(module, "KeptAnswers", None)
    monkeypatch.delattr(module.Variant, "key")
    people = datasets.applicants().sample(100, random_state=0)[["sex", "hours", "income"]]
    graph = CausalGraph.from_edges("sex -> hours, hours -> income, sex -> income")
    asked = {"outcome": "income", "protected": ["sex"], "inputs": ["hours"], "n_points": 20, "limit": 1}
    assert sensitivity(lambda frame: frame["hours"], graph, people, **asked).table["vcf"].notna().sum() == 2
