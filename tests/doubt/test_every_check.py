import pandas as pd
import pytest

from ciplearn import CausalGraph, fit_scm
from ciplearn._core.errors import InputError
from ciplearn.doubt import Falsification, HiddenConfounding, MechanismSensitivity, Sensitivity, how_wrong
from tests.doubt.people import people, through

GRAPH = CausalGraph.from_edges("S -> A, S -> L, A -> L, L -> Y, S -> Y")
VERDICT = GRAPH.criterion(outcome="Y", protected=["A"])
SMALL = {"inputs": ["L"], "n_points": 20, "n_interventions": 10}


def test_every_check_is_asked_and_the_drawn_graph_is_measured_alike_in_all():
    table = people(150)
    scm = fit_scm(GRAPH, table)
    found = how_wrong(through, VERDICT, table, scm, budget=4, context=VERDICT.context, **SMALL)
    kinds = [type(answer) for answer in found.values()]
    assert kinds == [Falsification, HiddenConfounding, MechanismSensitivity, Sensitivity]
    _, hidden, mechanisms, graphs = found.values()
    drawn = graphs.table["vcf"].iloc[0]
    assert mechanisms.table["vcf"].iloc[0] == pytest.approx(drawn, rel=1e-9)
    # With noises that are not correlated the node has additive noise, which was chosen here anyway.
    assert hidden.table.set_index("rho")["vcf"][0.0] == pytest.approx(drawn, rel=1e-6)


def test_answers_stand_on_the_scale_of_the_vcf_beside_them():
    table = people()
    scm = fit_scm(GRAPH, table)
    settings = {"context": VERDICT.context, "budget": 60, **SMALL}
    own, beside = (how_wrong(through, VERDICT, table, scm, vcf=vcf, **settings).values() for vcf in (None, 7.0))
    for before, after in zip(list(own)[1:], list(beside)[1:], strict=True):
        assert after.unchanged == pytest.approx(7.0)
        ratios = before.table["vcf"] / before.unchanged
        assert after.table["vcf"].to_numpy() == pytest.approx(7 * ratios.to_numpy(), nan_ok=True)


def test_a_check_that_cannot_be_asked_says_why():
    table = people(150).assign(A=lambda frame: pd.cut(frame["A"], 3, labels=list("abc")).astype(str))
    found = how_wrong(through, VERDICT, table, budget=1e-3, **SMALL)
    said = [answer for answer in found.values() if isinstance(answer, str)]
    assert len(said) == 1
    assert "could not be asked: A has 3 labels" in said[0]


def test_a_budget_is_positive():
    with pytest.raises(InputError, match="budget"):
        how_wrong(through, VERDICT, people(150), budget=0, **SMALL)
