"""`how_wrong`: every check on the graph and on the causal model, of so much work: the same figures on any machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ciplearn._core.arguments import whole
from ciplearn._core.errors import CiplearnError
from ciplearn._core.rows import RandomState, as_seed
from ciplearn.causal import Verdict
from ciplearn.doubt.falsification import Falsification, falsify
from ciplearn.doubt.graph_sensitivity import sensitivity
from ciplearn.doubt.hidden_confounding import HiddenConfounding, hidden_confounding
from ciplearn.doubt.mechanism_sensitivity import mechanism_sensitivity
from ciplearn.scm import StructuralCausalModel
from ciplearn.scm.estimated_model import EstimatedModel

# What else is asked per ten graphs, which take about as long together: tests of independence, nodes that a hidden cause
# acts on, other mechanisms.
_TESTS, _HIDDEN, _MECHANISMS = 50, 1, 3

# Correlations between noises; beyond them a hidden cause would outweigh all that is seen.
_RHO = (-0.5, -0.25, 0.0, 0.25, 0.5)


def how_wrong(
    model: Any,
    verdict: Verdict,
    table: pd.DataFrame,
    scm: StructuralCausalModel | None = None,
    *,
    vcf: float | None = None,
    context: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    limit: int = 20,
    n_points: int = 200,
    n_interventions: int = 50,
    random_state: RandomState = 0,
) -> dict[str, Any]:
    """Ask `falsify`, `hidden_confounding`, `mechanism_sensitivity` and `sensitivity` about one finished predictor.

    Parameters
    ----------
    model
        A finished predictor, as in `variance_of_counterfactuals`.
    verdict : Verdict
        Its graph and roles.
    table : DataFrame
        Rows with all observed nodes, the outcome included.
    scm : StructuralCausalModel, optional
        The model that the audit rests on. One of `fit_scm` is asked about its mechanisms; from the same rows and seed,
        its nodes are not fitted again.
    vcf : float, optional
        The VCF that stands beside the answers, from more rows. What a check finds on its few rows for the graph and the
        model as they are is then set to it, and all else that it finds is multiplied alike: it measures ratios well.
    context, inputs, method, n_points, n_interventions
        See `variance_of_counterfactuals`.
    limit : int
        Other graphs to ask about at most, those that matter most first; the other checks do work in proportion. What is
        left out is said.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    dict from question to answer
        An answer prints itself; a check that cannot be asked here answers with the reason.

    Examples
    --------
    >>> from ciplearn import CausalGraph, datasets
    >>> from ciplearn.doubt import how_wrong
    >>> people = datasets.applicants().sample(150, random_state=0)[["age", "hours", "income"]]
    >>> graph = CausalGraph.from_edges("age -> hours, age -> income, hours -> income")
    >>> verdict = graph.criterion(outcome="income", protected=["age"])
    >>> answers = how_wrong(lambda frame: frame["hours"], verdict, people, limit=1, n_points=20, n_interventions=10)
    >>> sorted(answers)[0]
    'Do the rows contradict the graph?'
    """
    limit = whole(limit, "limit", minimum=1)
    seed, complete = as_seed(random_state), table.dropna()
    graph = next(verdict.graph.members(1)) if verdict.graph.undirected else verdict.graph
    like = scm if isinstance(scm, EstimatedModel) else None
    measured: dict[str, Any] = {"inputs": inputs, "method": method, "random_state": seed}
    measured |= {"n_points": n_points, "n_interventions": n_interventions}
    tests, hidden, mechanisms = (max(1, count * limit // 10) for count in (_TESTS, _HIDDEN, _MECHANISMS))
    answers: dict[str, Any] = {}

    def ask(question: str, check: Any, *arguments: Any, **more: Any) -> None:
        try:
            answers[question] = _on_the_scale_of(vcf, check(*arguments, **more), verdict.protected)
        except CiplearnError as error:
            answers[question] = f"This could not be asked: {error}"

    ask("Do the rows contradict the graph?", falsify, verdict.graph, table, limit=tests, random_state=seed)
    for protected in verdict.protected:
        question = f"What if something that was not measured acts on {protected}, and on what follows from it?"
        more = {"rho": _RHO, "context": context, "limit": hidden, "like": like, **measured}
        ask(question, hidden_confounding, model, graph, complete, protected, **more)
    if like is not None:
        question = "What if a mechanism is another one that fits as well?"
        more = {"context": context, "limit": mechanisms, **measured}
        ask(question, mechanism_sensitivity, model, like, complete, verdict.protected, **more)
    roles = {name: getattr(verdict, name) for name in ("outcome", "protected", "context")}
    more = {**roles, "limit": limit, "like": like, **measured}
    ask("What if an arrow is wrong?", sensitivity, model, verdict.graph, table, **more)
    return answers


def _on_the_scale_of(vcf: float | None, answer: Any, protected: Sequence[str]) -> Any:
    """Multiply the VCF of an answer so that it is ``vcf`` where nothing is changed."""
    # One protected variable of several has a VCF of its own.
    of_another = isinstance(answer, HiddenConfounding) and len(protected) > 1
    if vcf is None or of_another or isinstance(answer, Falsification):
        return answer
    factor = vcf / answer.unchanged if answer.unchanged > 0 else float("nan")
    if not math.isfinite(factor):
        return answer
    columns = [name for name in ("vcf", "low", "high") if name in answer.table]
    return replace(answer, table=answer.table.assign(**{name: factor * answer.table[name] for name in columns}))
