import itertools
import time

import pandas as pd
import pytest

from ciplearn import CausalGraph, fit_scm
from ciplearn._core.errors import InputError
from ciplearn.doubt import (
    Falsification,
    HiddenConfounding,
    MechanismSensitivity,
    Sensitivity,
    how_wrong,
    mechanism_sensitivity,
)
from tests.doubt.people import people, through

GRAPH = CausalGraph.from_edges("S -> A, S -> L, A -> L, L -> Y, S -> Y")
VERDICT = GRAPH.criterion(outcome="Y", protected=["A"])
SMALL = {"inputs": ["L"], "n_points": 20, "n_interventions": 10}


def test_every_check_is_asked_and_the_drawn_graph_is_measured_alike_in_all():
    table = people(150)
    scm = fit_scm(GRAPH, table)
    found = how_wrong(through, VERDICT, table, scm, limit=4, context=VERDICT.context, **SMALL)
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
    settings = {"context": VERDICT.context, "limit": 3, **SMALL}
    own, beside = (how_wrong(through, VERDICT, table, scm, vcf=vcf, **settings).values() for vcf in (None, 7.0))
    for before, after in zip(list(own)[1:], list(beside)[1:], strict=True):
        assert after.unchanged == pytest.approx(7.0)
        ratios = before.table["vcf"] / before.unchanged
        assert after.table["vcf"].to_numpy() == pytest.approx(7 * ratios.to_numpy(), nan_ok=True)


def test_a_check_that_cannot_be_asked_says_why():
    table = people(150).assign(A=lambda frame: pd.cut(frame["A"], 3, labels=list("abc")).astype(str))
    found = how_wrong(through, VERDICT, table, limit=1, **SMALL)
    said = [answer for answer in found.values() if isinstance(answer, str)]
    assert len(said) == 1
    assert "could not be asked: A has 3 labels" in said[0]


def test_a_slow_machine_has_the_same_answers(monkeypatch):
    table = people(100)
    scm = fit_scm(GRAPH, table)
    quick = how_wrong(through, VERDICT, table, scm, limit=2, **SMALL)
    ticks = itertools.count(0, 1000)
    for clock in ("time", "monotonic", "perf_counter"):
        monkeypatch.setattr(time, clock, lambda: float(next(ticks)))
    slow = how_wrong(through, VERDICT, table, scm, limit=2, **SMALL)
    assert [str(answer) for answer in slow.values()] == [str(answer) for answer in quick.values()]
    assert list(quick.values())[-1].table["vcf"].notna().sum() == 3


def test_mechanisms_that_were_not_reached_are_counted():
    table = people(150)
    scm = fit_scm(GRAPH, table)
    all_, first = (mechanism_sensitivity(through, scm, table, ["A"], limit=limit, **SMALL) for limit in (None, 0))
    assert len(first.table) == 1
    assert first.late == len(all_.table) - 1 > 0
    assert f"{first.late} more of them" in str(first)


def test_a_model_of_a_file_has_lost_what_else_was_tried(tmp_path):
    table = people(200)
    scm = fit_scm(GRAPH, table, random_state=0)
    scm.save(tmp_path / "scm")
    with pytest.raises(InputError, match="tried for L were not kept with the model's file; fit it anew"):
        mechanism_sensitivity(through, type(scm).load(tmp_path / "scm"), table, ["A"], **SMALL)


def test_a_limit_is_a_whole_number_above_zero():
    for limit in (0, 1.5):
        with pytest.raises(InputError, match="limit"):
            how_wrong(through, VERDICT, people(150), limit=limit, **SMALL)


def test_a_hidden_cause_that_is_drawn_does_not_silence_the_question_about_others():
    graph = CausalGraph.from_edges("R <-> A, R -> Y, A -> L, R -> L, L -> Y")
    table = people(120).rename(columns={"S": "R"})[["R", "A", "L", "Y"]]
    verdict = graph.criterion(outcome="Y", protected=["A"])
    found = how_wrong(through, verdict, table, limit=1, **SMALL)
    hidden = next(answer for question, answer in found.items() if "was not measured" in question)
    assert hidden.drawn == ("A ↔ R",)
    assert "This leaves out what is drawn as hidden: A ↔ R." in str(hidden)
    assert list(hidden.table["node"].unique()) == ["L"]
