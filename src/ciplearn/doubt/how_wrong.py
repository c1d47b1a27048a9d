"""`how_wrong`: every check on the graph and on the causal model, of so much work: the same figures on any machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ciplearn._core.arguments import first, whole
from ciplearn._core.errors import CiplearnError, InputError, InputTypeError
from ciplearn._core.rows import RandomState, as_seed
from ciplearn.causal import Verdict
from ciplearn.causal.names import Names
from ciplearn.doubt.falsification import Falsification, falsify
from ciplearn.doubt.graph_sensitivity import sensitivity
from ciplearn.doubt.hidden_confounding import HiddenConfounding, hidden_confounding
from ciplearn.evaluation.vcf import variance_of_counterfactuals
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

    An answer, which prints itself, stands under its question; a check that cannot be asked answers with the reason.

    Parameters
    ----------
    model, verdict, table
        A finished predictor, its graph and roles, and rows with all observed nodes, the outcome included.
    scm : StructuralCausalModel, optional
        The model that the audit rests on. One of `fit_scm` is asked about its mechanisms; from the same rows and seed,
        its nodes are not fitted again.
    vcf : float, optional
        The VCF that stands beside the answers, from more rows. What a check finds on its few rows for the graph and the
        model as they are is then set to it, and all else that it finds is multiplied alike: it measures ratios well.
    context, inputs, method, n_points, n_interventions, random_state
        See `variance_of_counterfactuals`.
    limit : int
        Other graphs to ask about at most, those that matter most first; the other checks do work in proportion. What is
        left out is said.

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
            answer = check(*arguments, **more)
        except CiplearnError as error:
            answers[question] = f"This could not be asked: {error}"
            return
        # One protected variable of several has a VCF of its own.
        is_another = isinstance(answer, HiddenConfounding) and len(verdict.protected) > 1
        if vcf is not None and not is_another and not isinstance(answer, Falsification) and answer.unchanged > 0:
            factor, columns = vcf / answer.unchanged, [name for name in ("vcf", "low", "high") if name in answer.table]
            scaled = answer.table.assign(**{name: factor * answer.table[name] for name in columns})
            answer = replace(answer, table=scaled) if math.isfinite(factor) else answer
        answers[question] = answer

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


@dataclass(frozen=True, eq=False)
class MechanismSensitivity:
    """The answer of `mechanism_sensitivity`.

    Attributes
    ----------
    table : DataFrame
        ``node``, ``mechanism``, ``vcf`` and ``relative``; the first row is the model as chosen.
    ambiguities, late
        Sentences on nodes whose noise is known up to its sign or order only; how many mechanisms were not asked about.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> from ciplearn.doubt import mechanism_sensitivity
    >>> people = datasets.applicants().sample(200, random_state=0)
    >>> scm = fit_scm(datasets.applicants().graph, people, random_state=0)
    >>> span = mechanism_sensitivity(lambda frame: frame["hours"], scm, people, ["sex"], n_points=30)
    >>> span.table["mechanism"].iloc[0]
    'as chosen'
    """

    table: pd.DataFrame
    ambiguities: tuple[str, ...]
    late: int = 0

    @property
    def unchanged(self) -> float:
        """VCF with the mechanisms that were chosen."""
        return float(self.table["vcf"].iloc[0])

    @property
    def interval(self) -> tuple[float, float]:
        """The smallest and largest VCF."""
        return float(self.table["vcf"].min()), float(self.table["vcf"].max())

    def __str__(self) -> str:
        (low, high), others = self.interval, len(self.table) - 1
        answer = f"Over {others} other mechanisms that fit about as well, VCF lies between {low:.3g} and {high:.3g}."
        if not others and not self.late:
            answer = f"No other mechanism fits about as well; VCF is {low:.3g}."
        if self.late:
            answer += f" {self.late} more of them {'was' if self.late == 1 else 'were'} not asked about."
        return " ".join([answer, *self.ambiguities])


def mechanism_sensitivity(
    model: Any,
    scm: EstimatedModel,
    table: pd.DataFrame,
    protected: Names,
    random_state: RandomState = 0,
    *,
    context: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    n_points: int = 300,
    n_interventions: int = 100,
    n_draws: int | None = 20,
    limit: int | None = None,
) -> MechanismSensitivity:
    """Exchange the mechanism of one descendant of A at a time for each other that predicts held-out rows as well.

    Parameters
    ----------
    model, scm, table, protected, random_state, context, inputs, method, n_points, n_interventions, n_draws
        See `variance_of_counterfactuals`; the causal model is one of `fit_scm`.
    limit : int, optional
        Ask about so many other mechanisms at most; how many are left out is said.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> from ciplearn.doubt import mechanism_sensitivity
    >>> people = datasets.applicants().sample(200, random_state=0)
    >>> scm = fit_scm(datasets.applicants().graph, people, random_state=0)
    >>> len(mechanism_sensitivity(lambda frame: frame["hours"], scm, people, ["sex"], n_points=30).interval)
    2
    """
    if not isinstance(scm, EstimatedModel):
        received = type(scm).__name__
        raise InputTypeError(f"scm must be a model of fit_scm, got {received}; nothing is open in a known one.")
    variants = [("", "as chosen", scm)]
    tried = {fit.node for fit in scm.report.nodes if len(fit.alternatives) > 1}
    for node in scm.graph.topological_order():
        if node in scm.graph.descendants(protected) and node not in scm.graph.known(protected):
            if node in tried and node not in scm.choices:
                why = f"The other mechanisms that were tried for {node} were not kept with the model's file"
                raise InputError(f"{why}; fit it anew with fit_scm.")
            variants += [(node, name, other) for name, other in scm.variants(node).items()]
    rows: list[dict[str, Any]] = []
    measured: dict[str, Any] = {"context": context, "inputs": inputs, "method": method, "n_draws": n_draws}
    measured |= {"n_points": n_points, "n_interventions": n_interventions, "random_state": as_seed(random_state)}
    for node, name, variant in [variants[0], *first(variants[1:], limit)]:
        vcf = variance_of_counterfactuals(model, variant, table, protected, **measured)
        rows.append({"node": node, "mechanism": name, "vcf": vcf.value, "relative": vcf.relative})
    ambiguities = tuple(finding.sentence for finding in scm.ambiguities)
    return MechanismSensitivity(pd.DataFrame(rows), ambiguities, late=len(variants) - len(rows))
