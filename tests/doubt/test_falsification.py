import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import InputError
from ciplearn.causal.statements import local_independencies
from ciplearn.doubt import falsify
from ciplearn.doubt.falsification import RankCorrelations, holm, share_that_fits_as_well

TRUE = CausalGraph.from_edges("S -> A, S -> L, A -> L, L -> Y, S -> Y, Y -> Z")
WITHOUT_AN_EDGE = CausalGraph.from_edges("S -> A, S -> L, A -> L, L -> Y, Y -> Z")


def people(n=300, seed=0):
    draw = np.random.default_rng(seed)
    s = draw.normal(size=n)
    a = s + draw.normal(size=n) > 0
    latent = np.sin(s) + a + draw.normal(size=n)
    y = latent + s + draw.normal(size=n)
    return pd.DataFrame(
        {"S": s, "A": np.where(a, "u", "v"), "L": latent, "Y": y, "Z": y + draw.normal(size=n), "other": 1.0}
    )


@pytest.fixture(scope="module")
def right():
    return falsify(TRUE, people(), n_permutations=50)


@pytest.fixture(scope="module")
def wrong():
    return WITHOUT_AN_EDGE.falsify(people(), n_permutations=50)


def test_the_basis_is_the_ordered_local_markov_property():
    found = {str(statement) for statement in local_independencies(TRUE)}
    assert found == {"Y ⊥ {A} | {L, S}", "Z ⊥ {S} | {Y}", "Z ⊥ {A} | {Y}", "Z ⊥ {L} | {Y}"}


@pytest.mark.parametrize("seed", range(30))
def test_every_statement_of_the_basis_holds_in_the_graph_and_every_separable_pair_has_one(seed):
    draw = np.random.default_rng(seed)
    names = [f"x{place}" for place in range(6)]
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
    edges = [pair for pair in pairs if draw.uniform() < 0.35]
    graph = CausalGraph(
        nodes=names,
        directed=edges,
        bidirected=[pair for pair in pairs if pair not in edges and draw.uniform() < 0.1],
        latent=[names[int(draw.integers(6))]],
    )
    found = list(local_independencies(graph))
    assert all(graph.m_separated(s.left, s.right, s.given) for s in found)
    separable = {frozenset((*s.left, *s.right)) for s in graph.implied_independencies()}
    assert {frozenset((*s.left, *s.right)) for s in found} == separable


def test_the_true_graph_is_not_refuted(right):
    assert right.refuted is False
    assert list(right.tests["statement"]) == [str(statement) for statement in right.statements]
    assert (right.tests["p_adjusted"] >= right.tests["p"]).all()
    assert right.tests["detectable"].between(0.05, 0.5).all()
    assert "no proof" in str(right)


def test_a_missing_edge_is_found_and_named(wrong):
    assert wrong.refuted is True
    assert "Y ⊥ {S} | {L}" in map(str, wrong.violated)
    assert "refuted" in str(wrong)
    assert "Y ⊥ {S} | {L}" in str(wrong)


def test_few_graphs_with_permuted_names_fit_as_well(right):
    assert right.permuted <= 0.2


def test_refuted_statements_are_drawn_in_the_picture(right, wrong):
    drawn = ElementTree.fromstring(wrong.to_svg())
    lines = [part for part in drawn.iter() if part.get("class") == "refuted"]
    # One per statement, and one in the legend.
    assert len(lines) == len(wrong.violated) + 1
    assert "independent in the graph, not in the data" in wrong.to_svg()
    assert 'class="refuted"' not in right.to_svg()
    assert wrong._repr_svg_() == wrong.to_svg()


def test_the_result_is_json(wrong):
    read = json.loads(json.dumps(wrong.to_dict(), allow_nan=False))
    assert read["refuted"] is True
    assert read["tests"][0]["statement"] == wrong.tests["statement"][0]
    assert read["sentence"] == str(wrong)


def test_same_seed_same_answer(right):
    again = TRUE.falsify(people(), n_permutations=50)
    pd.testing.assert_frame_equal(again.tests, right.tests)
    assert again.permuted == right.permuted


def test_rows_complete_in_the_columns_of_a_test_are_used():
    table = people()
    table.loc[:99, "Z"] = np.nan
    table.loc[290:, "A"] = None
    rows = TRUE.falsify(table, n_permutations=0).tests.set_index("statement")["n_rows"]
    assert rows["Y ⊥ {A} | {L, S}"] == 290
    assert rows["Z ⊥ {A} | {Y}"] == 190
    assert rows["Z ⊥ {S} | {Y}"] == 200


def test_what_is_left_untested_is_said_and_counts():
    found, every = (TRUE.falsify(people(), limit=limit) for limit in (3, None))
    assert found.tests["p"].notna().sum() == 3
    assert "1 of 4 were left untested" in str(found)
    (left,) = [s for s, p in zip(found.statements, found.tests["p"], strict=True) if np.isnan(p)]
    assert len(left.given) == max(len(statement.given) for statement in every.statements)
    assert len(every.tests) == 4


@pytest.mark.parametrize(
    ("permuted", "words"),
    [
        (0.0, "Of 100 drawings with the columns' names exchanged at random, none fit the rows as well: the rows tell"),
        (0.02, "at random, 2 fit the rows as well: the rows tell this drawing from one that is made up."),
        (0.21, "at random, 21 fit the rows as well: these tests hardly tell"),
        (0.21, "passing them says little"),
    ],
)
def test_the_share_of_shuffled_names_is_a_sentence(permuted, words):
    found = replace(TRUE.falsify(people(), n_permutations=0), permuted=permuted, n_permutations=100)
    assert words in str(found)
    assert "rank correlations" not in str(found)


def test_a_refuted_graph_is_not_said_to_pass():
    found = TRUE.falsify(people(), n_permutations=0)
    refuted = replace(found, tests=found.tests.assign(p_adjusted=0.0), permuted=0.21, n_permutations=100)
    assert "hardly tell this drawing from one that is made up." in str(refuted)
    assert "passing" not in str(refuted)


def test_a_graph_without_implications_cannot_be_judged():
    found = CausalGraph.from_edges("S -> A, S -> L, A -> L").falsify(people())
    assert found.refuted is None
    assert len(found.tests) == 0
    assert "implies no independence" in str(found)


def test_tests_without_power_cannot_judge():
    found = CausalGraph(nodes=["S", "Z"]).falsify(
        people(20, seed=4).assign(Z=np.random.default_rng(9).normal(size=20)), n_permutations=0
    )
    assert found.tests["detectable"].isna().all() or found.tests["detectable"].min() > 0.5
    assert found.refuted is None
    assert "miss even strong dependence" in str(found)


def test_members_of_a_class_share_their_statements():
    partial = CausalGraph(directed=[("S", "L"), ("A", "L"), ("L", "Z")], undirected=[("S", "Y")])
    statements = falsify(partial, people(), n_permutations=0).statements
    for member in partial.members():
        assert all(member.m_separated(s.left, s.right, s.given) for s in statements)


def test_vectors_are_tested_as_a_whole():
    table = people().rename(columns={"L": "V[0]", "Z": "V[1]"})
    found = CausalGraph.from_edges("S -> V, A -> V").falsify(table, n_permutations=5)
    assert len(found.tests) == 1


def testholm_is_as_in_the_textbook():
    assert holm(np.array([0.01, 0.04, 0.03, np.nan])) == pytest.approx([0.04, 0.09, 0.09, np.nan], nan_ok=True)


def test_rank_correlations_agree_with_the_definition_of_a_partial_correlation():
    draw = np.random.default_rng(0)
    z, e, v = draw.normal(size=(3, 400))
    table = pd.DataFrame({"a": z + e, "b": z + v, "z": z, "c": z + e + 0.3 * v})
    correlations = RankCorrelations(table, {name: (name,) for name in table})
    residual = {name: table[name] - np.polyval(np.polyfit(z, table[name], 1), z) for name in "abc"}
    for other, dependent in (("b", False), ("c", True)):
        r = np.corrcoef(residual["a"], residual[other])[0, 1]
        fisher = abs(np.arctanh(r)) * (400 - 4) ** 0.5
        assert (correlations.p_value("a", other, ["z"]) < 0.05) == (fisher > 1.96) == dependent


def test_every_permutation_of_a_graph_without_statements_fits():
    correlations = RankCorrelations(people()[["S", "Z"]], {"S": ("S",), "Z": ("Z",)})
    assert share_that_fits_as_well([], ["S", "Z"], correlations, 7, 0.05, np.random.default_rng(0)) == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (people().drop(columns=["A", "Z"]), "no column for A and Z"),
        (people(10), "at least 20 rows, got 10"),
        (people().assign(S=1.0, A="u", L=1.0, Y=1.0, Z=1.0), "has the same value, or none, in all rows"),
        ([1, 2], "must be a pandas DataFrame, got list"),
        (pd.concat([people(), people()[["A"]]], axis=1), "several columns named 'A'"),
        (people().assign(A=[[row] for row in range(len(people()))]), "Column 'A' holds lists"),
    ],
)
def test_bad_tables_are_refused(table, message):
    with pytest.raises(InputError, match=message):
        TRUE.falsify(table)


@pytest.mark.parametrize("options", [{"level": 1.5}, {"level": 0}, {"limit": -1}, {"n_permutations": -1}])
def test_bad_options_are_refused(options):
    with pytest.raises(InputError):
        TRUE.falsify(people(), **options)
