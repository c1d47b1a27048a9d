"""`audit`: everything there is to say about a finished predictor, in one result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import finite, mapping_of
from ciplearn._core.columns import checked_table, holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.rows import RandomState, as_generator
from ciplearn.causal import CausalGraph, Independence, Verdict
from ciplearn.causal.names import Names, nodes_of
from ciplearn.evaluation.audit_result import Audit, Beside
from ciplearn.evaluation.conclusion import Floor, Limits
from ciplearn.evaluation.counterfactual_rows import (
    context_that_can_be_drawn_from,
    known_columns,
    sample_with_every_label,
)
from ciplearn.evaluation.encoding import Sides
from ciplearn.evaluation.independence import MAX_ROWS, run_test
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.scores import predictive_scores
from ciplearn.evaluation.vcf import variance_of_counterfactuals
from ciplearn.evaluation.wording import MODEL
from ciplearn.penalties import HSCIC, HSIC
from ciplearn.scm import StructuralCausalModel, fit_scm

# Rows that a causal model is estimated from, and that the value of HSCIC is computed on.
_MODEL_ROWS = 50_000
_HSCIC_ROWS = 1000

_ROLES = ("outcome", "protected", "context", "inputs", "adjustment")


def audit(
    model: Any,
    scm: StructuralCausalModel | CausalGraph,
    table: pd.DataFrame,
    outcome: str | None = None,
    protected: Names | None = None,
    *,
    context: Names | None = None,
    adjustment: Names | None = None,
    verdict: Verdict | None = None,
    n_points: int = 1000,
    n_interventions: int = 500,
    n_draws: int | None = None,
    random_state: RandomState = 0,
    interventions: Any = None,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    reference: pd.DataFrame | None = None,
    threshold: float | None = None,
    beside: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    floor: Floor | None = None,
) -> Audit:
    """Measure a finished predictor: variance of counterfactuals, test, HSCIC and predictive score.

    Parameters
    ----------
    model
        Anything with ``predict_proba`` or ``predict``, or a function of a frame; it never sees the outcome.
    scm : StructuralCausalModel or CausalGraph
        With a graph alone, a model is estimated from the data by `fit_scm`, and the result says so.
    table : DataFrame
        Rows that the predictor was not trained on, outcome included; columns that the graph does not know are ignored.
    outcome, protected, context, adjustment
        Roles, as in `CausalGraph.criterion`. By default those the model was trained with, if it knows them for this
        graph, or those written in the graph's text. VCF is measured given the context: the whole row, unless another
        context was named. A model that enforces a weaker statement is asked the same question. Where the causal model
        cannot say how likely a context's values are, a point is known by the observed ancestors of its context, too,
        which can only make VCF larger; ``vcf.context`` says so.
    verdict : Verdict, optional
        What the criterion said already. By default the verdict that the model carries for this graph; else the
        criterion is asked.
    n_points, n_interventions, n_draws, random_state, interventions, inputs, method, reference, threshold
        See `variance_of_counterfactuals`. Decisions are also compared at the share of positives that the outcome has.
    beside : mapping from name to model, optional
        Other predictors to measure on the same rows; the first is what results are compared with.
    limits : Limits, optional
        What is allowed.
    floor : Floor, optional
        How far two causal models of such rows disagree; what cannot be told for that is not called failed.

    Examples
    --------
    >>> from ciplearn import audit, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(300, random_state=0)
    >>> model = lambda frame: 2 * frame["training"] + 15
    >>> found = audit(model, world, people, "income", ["sex", "age"], inputs=["training"], n_points=50)
    >>> found.verdict.holds, found.vcf.value > 1
    (True, True)
    """
    generator = as_generator(random_state)
    checked_table(table, "table")
    if threshold is not None:
        threshold = finite(threshold, "threshold")
    if not isinstance(scm, StructuralCausalModel | CausalGraph):
        raise InputTypeError(
            f"scm must be a StructuralCausalModel or a CausalGraph, got {type(scm).__name__}; pass one of them."
        )
    graph = scm if isinstance(scm, CausalGraph) else scm.graph
    roles = {"outcome": outcome, "protected": protected, "context": context, "adjustment": adjustment}
    if verdict is None:
        verdict = verdict_on(model, graph, roles)
    elif any(role is not None for role in roles.values()):
        raise InputError("Both a verdict and roles were given; pass the verdict, or roles to judge anew.")
    if verdict.outcome not in table.columns:
        raise InputError(f"table lacks the outcome {verdict.outcome!r}, which the score needs; add the column.")
    rows, known = table, scm
    if isinstance(known, CausalGraph):
        known = fit_scm(graph, sample_with_every_label(table, _MODEL_ROWS, generator), random_state=generator)
    table, ignored = known_columns(known, table)
    columns = [column for column in table.columns if column != verdict.outcome]
    predictor = Predictor.of(model, columns, inputs, method, ignored)
    shown = predictor.inputs
    others = mapping_of(beside, "beside")
    vcf = variance_of_counterfactuals(
        {MODEL: model, **others},
        known,
        table,
        verdict.protected,
        n_points,
        n_interventions,
        generator,
        context=known_by(verdict, known, table),
        interventions=interventions,
        inputs=shown,
        method=method,
        n_draws=n_draws,
        reference=reference,
        threshold=threshold,
        rate=_base_rate(predictor, table[verdict.outcome], threshold),
    )
    answers, truth = predictor.in_blocks(table), table[verdict.outcome]
    places = np.arange(len(table))
    if len(table) > MAX_ROWS:
        places = np.sort(generator.choice(len(table), MAX_ROWS, replace=False))
    tested = table.iloc[places]
    kept = enforced_statement(model)
    statement = kept or Independence(
        known.columns(verdict.independence.right), known.columns(verdict.independence.given)
    )
    right = tested[list(statement.right)]
    given = tested[list(statement.given)] if statement.given else None
    sides = Sides.of(predictor.numbers(answers)[places], right, given)
    compared = {}
    for name, one in others.items():
        asked = Predictor(one, predictor.method, shown)
        compared[name] = Beside(one, vcf[name], predictive_scores(asked, asked.in_blocks(table), truth))
    return Audit(
        vcf=vcf[MODEL],
        test=run_test(sides, generator),
        statement=statement,
        enforced=kept is not None,
        hscic=_hscic(sides.sampled(_HSCIC_ROWS, generator)),
        scores=predictive_scores(predictor, answers, truth),
        verdict=verdict,
        scm=known,
        n_rows=len(table),
        inputs=shown,
        method=predictor.method,
        model=model,
        rows=rows,
        beside=compared,
        limits=limits or Limits(),
        floor=floor,
        draws=deepcopy(generator),
    )


def verdict_on(model: Any, graph: CausalGraph, roles: dict[str, Any]) -> Verdict:
    """Return the verdict for roles that were named, or else the one that the model carries for this graph.

    Where the model carries none, or one on another graph, its roles are judged; where it has no roles that fit, those
    written in the graph's text.
    """
    if any(role is not None for role in roles.values()):
        return graph.criterion(**roles)
    trained = getattr(model, "best_estimator_", model)
    verdict = getattr(trained, "verdict_", None)
    if isinstance(verdict, Verdict):
        if _parts(verdict.graph) == _parts(graph):
            return verdict
        roles = {role: getattr(verdict, role) for role in _ROLES}
    elif hasattr(trained, "graph") and hasattr(trained, "protected"):
        columns = tuple(str(name) for name in getattr(trained, "feature_names_in_", ()))
        roles = {role: _nodes(getattr(trained, role, None), columns, graph, role) for role in _ROLES[1:]}
        roles["outcome"] = trained.outcome
    named = {node for names in roles.values() for node in ([names] if isinstance(names, str) else names or ())}
    return graph.criterion(**roles if named <= set(graph.nodes) else {})


def enforced_statement(model: Any) -> Independence | None:
    """Return the independence, about columns, that a model was trained to keep; None where it was not."""
    trained = getattr(model, "best_estimator_", model)
    penalised = (getattr(trained, "gamma_", None) or 0) > 0
    statement = getattr(trained, "independence_", None) if penalised else None
    return statement if isinstance(statement, Independence) else None


def _parts(graph: CausalGraph) -> tuple[Any, ...]:
    # Roles written in a source text do not count: an estimated model does not keep them.
    return graph.nodes, graph.directed, graph.bidirected, graph.undirected, graph.latent


def _nodes(named: Any, columns: tuple[str, ...], graph: CausalGraph, role: str) -> tuple[str, ...] | None:
    """Return the nodes that names, or positions in the table the model was fitted on, stand for."""
    if named is None:
        return None
    entries = [named] if isinstance(named, str | Integral) else list(named)
    names = [
        columns[entry] if isinstance(entry, Integral) and entry < len(columns) else str(entry) for entry in entries
    ]
    return nodes_of(names, graph.nodes, columns, role)


def known_by(verdict: Verdict, scm: StructuralCausalModel, table: pd.DataFrame) -> tuple[str, ...]:
    """The nodes that a point is known by: the context of the criterion, or more where the model cannot do with it."""
    observed = set(scm.graph.observed)
    present = {node for node in observed if table.columns.isin(scm.columns([node])).any()}
    # By default the context is everything but the outcome, and then what the table has is enough.
    everything = observed - {verdict.outcome} <= set(verdict.context)
    context = [node for node in verdict.context if node in present or not everything]
    return context_that_can_be_drawn_from(scm, table, context)


def _base_rate(predictor: Predictor, truth: pd.Series, threshold: float | None) -> float | None:
    """The share of positive outcomes, where the predictor decides about them."""
    classes = getattr(predictor.model, "classes_", None)
    if predictor.method == "predict_proba" and classes is not None and len(classes) == 2:
        return float((truth == classes[1]).mean())
    if threshold is not None and holds_numbers(truth):
        return float((truth > threshold).mean())
    return None


def _hscic(sides: Sides) -> float:
    left, right, given = sides.left, sides.right, sides.given
    kernel = left.kernel.resolve(left.rows)
    if given is None:
        return float(HSIC(kernel=kernel, right_kernel=right.kernel)(left.rows, right.rows))
    penalty = HSCIC(kernel=kernel, right_kernel=right.kernel, given_kernel=given.kernel, centre=True)
    return float(penalty(left.rows, right.rows, given.rows))
