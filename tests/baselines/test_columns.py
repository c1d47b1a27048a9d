"""Nodes and the columns that hold them."""

import numpy as np
import pytest

from ciplearn import CausalGraph, baselines, datasets, variance_of_counterfactuals
from ciplearn._core.errors import CiplearnError, GraphError, InputError
from ciplearn.baselines.base import settle_columns

GRAPH = CausalGraph.from_edges("Z -> A, A -> L, Z -> L, L -> Y, A -> Y")
VECTOR = ("Z", "A[0]", "A[1]", "A[10]", "A[2]", "L")


def settled(names=VECTOR, graph=GRAPH, outcome="Y", protected="A", context=None, inputs=None):
    return settle_columns(names, graph=graph, outcome=outcome, protected=protected, context=context, inputs=inputs)


@pytest.mark.parametrize("protected", ["A", ["A"], ["A[0]", "A[1]", "A[2]", "A[10]"], np.arange(1, 5)])
def test_vector_can_be_named_by_node_by_columns_or_by_positions(protected):
    columns = settled(protected=protected)
    assert columns.protected == ("A",)
    assert columns.of(["A"]) == ("A[0]", "A[1]", "A[2]", "A[10]")
    assert columns.inputs == ("A", "L", "Z")


@pytest.mark.parametrize("graph", [None, GRAPH])
def test_outcome_that_is_no_name_is_refused(graph):
    with pytest.raises(InputError, match="outcome must be a str, got ndarray; name the column that is predicted"):
        settled(graph=graph, outcome=np.zeros(0))


def test_vector_without_a_graph_is_a_node_where_it_is_named_so():
    columns = settled(graph=None)
    assert columns.protected == ("A",)
    assert columns.inputs == ("Z", "A", "L")
    assert settled(graph=None, protected=["A[0]"]).inputs == VECTOR


def test_part_of_a_vector_is_refused():
    with pytest.raises(InputError, match=r"'A\[0\]', one of 4 columns of the node 'A', and leaves out 'A\[1\]'"):
        settled(protected=["A[0]"])


def test_descendants_stand_after_their_causes_and_exclude_the_outcome():
    graph = CausalGraph.from_dagitty("dag { H [latent] ; A -> M -> H -> D ; Z -> D ; D -> Y -> E ; C }")
    columns = settled(names=("A", "C", "D", "E", "M", "Z"), graph=graph)
    assert columns.descendants() == ("M", "D", "E")
    assert columns.causes("D") == ("Z", "A")
    assert columns.causes("M") == ("A",)
    assert settled(names=("A", "C", "D", "M", "Z"), graph=graph, inputs=["D"]).responding() == ("M", "D")


def test_roles_in_the_graph_s_text_are_the_defaults():
    graph = CausalGraph.from_dagitty("dag { A [exposure] ; Y [outcome] ; A -> L -> Y ; Z -> Y }")
    columns = settled(names=("A", "L", "Z"), graph=graph, outcome=None, protected=None)
    assert (columns.protected, columns.outcome) == (("A",), "Y")


MISTAKES = {
    "nothing protected": ({"protected": None}, "Nothing is protected"),
    "nothing protected, no graph": ({"protected": None, "graph": None}, "No protected column was named"),
    "protected column not in X": ({"names": ("Z", "L")}, "protected column 'A' is not in X"),
    "input not in X": ({"names": ("A", "L")}, "inputs column 'Z' is not in X"),
    "name in neither": ({"protected": ["B"]}, "protected names 'B', which is not in the graph"),
    "name in other case": ({"protected": ["a"]}, "did you mean 'A'"),
    "unknown context": ({"context": ["W"]}, "context names 'W'"),
    "graph that is none": ({"graph": "A -> Y"}, "graph must be a CausalGraph"),
    "outcome among the columns": ({"names": (*VECTOR, "Y")}, "X holds the outcome 'Y'"),
    "position out of range": ({"protected": [9]}, "columns 0 to 5"),
    "something else": ({"protected": [1.5]}, "column names or positions"),
    "no inputs": ({"inputs": []}, "The predictor would see nothing"),
    "position or name": ({"names": ("1", "0"), "graph": None, "protected": [0]}, "may be the column '0' or the one at"),
    "latent": ({"graph": CausalGraph.from_edges("A -> Y, Z -> Y", latent=["A"])}, "which is latent"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_gets_one_clear_sentence(mistake):
    settings, words = MISTAKES[mistake]
    with pytest.raises(CiplearnError, match=words):
        settled(**settings)


def test_undirected_graph_is_refused_where_descent_matters(X, y):
    graph = CausalGraph.from_dagitty("pdag { A -- L ; L -> Y ; A -> Y ; Z -> Y }")
    with pytest.raises(GraphError, match="needs a direction for every edge"):
        baselines.CF1(graph=graph, outcome="Y", protected=["A"]).fit(X, y)


@pytest.mark.parametrize("baseline", baselines.__all__)
def test_every_baseline_takes_a_protected_vector(baseline):
    scm = datasets.multidimensional(3)
    rows = scm.sample(80, random_state=0)
    own = {"counterfactuals": scm} if baseline == "InvariantDirections" else {}
    roles = {"graph": scm.graph, "outcome": "Y", "protected": ["A"]}
    model = getattr(baselines, baseline)(**roles, **own, epochs=1, random_state=0)
    model.fit(rows.drop(columns="Y"), rows["Y"])
    found = variance_of_counterfactuals(model, scm, rows, protected=["A"], n_points=5, n_interventions=5)
    # These read nothing that the vector moves; all others do.
    assert (found.value == 0) == (baseline in ("CF1", "InvariantDirections"))
    assert np.isfinite(found.value)
