"""`Audit`: everything there is to say about a finished predictor, with the predictor and the rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.choices import mapping_of
from ciplearn._core.columns import as_numbers, holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.numbers import finite
from ciplearn._core.plain_data import as_data
from ciplearn._core.random import RandomState, as_generator
from ciplearn._core.tables import checked_table
from ciplearn._core.wording import as_list
from ciplearn.causal import CausalGraph, Independence, Verdict
from ciplearn.causal.names import Names
from ciplearn.evaluation.bounds import FEWEST_ROWS, VCFBounds, vcf_bounds
from ciplearn.evaluation.conclusion import Conclusion, Floor, Limits, conclude
from ciplearn.evaluation.counterfactual_rows import (
    as_known_beforehand,
    known_by,
    known_columns,
    sample_with_every_label,
)
from ciplearn.evaluation.effects import PairedEffects, paired_effects
from ciplearn.evaluation.independence import MAX_ROWS, IndependenceTest, Sides, run_test
from ciplearn.evaluation.predictors import Predictor, enforced_statement, verdict_on
from ciplearn.evaluation.scores import MODEL, SCORE_NAMES, Unit, predictive_scores
from ciplearn.evaluation.vcf import variance_of_counterfactuals
from ciplearn.evaluation.vcf_result import VarianceOfCounterfactuals
from ciplearn.penalties import HSCIC, HSIC
from ciplearn.scm import StructuralCausalModel, fit_scm


@dataclass(frozen=True, eq=False)
class Beside:
    """A predictor that another one is compared with, measured alike.

    Attributes
    ----------
    model
    vcf : VarianceOfCounterfactuals
    scores : dict

    Examples
    --------
    >>> from ciplearn import audit, datasets
    >>> world = datasets.applicants()
    >>> people, beside = world.sample(100, random_state=0), {"usual": lambda frame: 2 * frame["training"]}
    >>> found = audit(lambda frame: frame["age"], world, people, "income", ["sex"], beside=beside, n_points=20)
    >>> found.vcf.value < found.before.vcf.value
    True
    """

    model: Any
    vcf: VarianceOfCounterfactuals
    scores: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return what was measured as JSON-ready data."""
        return {"typical": self.vcf.typical, "vcf": self.vcf.to_dict(), "scores": as_data(self.scores)}


@dataclass(frozen=True, eq=False)
class Audit:
    """The answer of `audit`.

    Attributes
    ----------
    vcf : VarianceOfCounterfactuals
    test : IndependenceTest
        Of ``statement``.
    statement : Independence
        What the model was trained to keep, about columns; where it was not, what the criterion asks for.
    enforced : bool
        Whether the model was trained to keep the statement.
    hscic : float
        The paper's penalty of the predictions, centred; HSIC where the statement has no conditioning set.
    scores : dict
        ``mse`` and ``r2``, or ``accuracy``, ``log_loss`` and, of two labels, ``auc``.
    verdict : Verdict
        The criterion behind the independence.
    scm : StructuralCausalModel
        As it was given, or estimated from graph and data.
    n_rows : int
    inputs : tuple of str
        The columns that the predictor was shown.
    method : str
        How it was asked: ``"predict"``, ``"predict_proba"``, or ``"call"`` for a function.
    model
        The predictor.
    rows : DataFrame
        As they were passed.
    beside : dict of name to Beside
        Other predictors, measured on the same rows and imagined rows; the first is what it is compared with.
    limits : Limits
        What is allowed; `conclusion` says whether it is kept.
    draws : Generator
        What `bounds` draw from when somebody asks for them.
    floor : Floor, optional
        How far two causal models of such rows disagree, where it is known: a limit below it is not called failed.

    Examples
    --------
    >>> from ciplearn import audit, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(300, random_state=0)
    >>> found = audit(lambda frame: frame["hours"], world, people, "income", ["sex"], inputs=["hours"], n_points=50)
    >>> found.conclusion.state
    'fails'
    """

    vcf: VarianceOfCounterfactuals
    test: IndependenceTest
    statement: Independence
    enforced: bool
    hscic: float
    scores: dict[str, float]
    verdict: Verdict
    scm: StructuralCausalModel
    n_rows: int
    inputs: tuple[str, ...]
    method: str
    model: Any
    rows: pd.DataFrame
    beside: dict[str, Beside]
    limits: Limits
    draws: np.random.Generator = field(repr=False)
    floor: Floor | None = None

    @cached_property
    def conclusion(self) -> Conclusion:
        """Passes, fails, useless, or cannot be told."""
        return conclude(self)

    @property
    def models(self) -> dict[str, Any]:
        """The predictor, and the one that it is compared with, by the names that results call them."""
        return {MODEL: self.model} | {name: one.model for name, one in list(self.beside.items())[:1]}

    @property
    def before(self) -> Beside | None:
        """What the predictor is compared with; None where nothing is."""
        return next(iter(self.beside.values()), None)

    @property
    def is_classifier(self) -> bool:
        """Whether scores are about labels."""
        return "accuracy" in self.scores

    @property
    def weaker(self) -> bool:
        """Whether the model was trained to keep a weaker statement than the question takes."""
        asked = self.verdict.independence
        return self.enforced and len(self.statement.right) < len(self.scm.columns(asked.right))

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of an outcome of numbers."""
        return float(as_numbers(self.rows[self.verdict.outcome]).to_numpy(dtype=np.float64).std())

    @cached_property
    def unit(self) -> Unit:
        """How amounts of a prediction are written."""
        return Unit(self.is_classifier, 1.0 if self.is_classifier else self.deviation)

    @property
    def limit(self) -> float:
        """How far a prediction may move."""
        return self.limits.effect(
            probability=self.is_classifier, deviation=0.0 if self.is_classifier else self.deviation
        )

    @property
    def typical(self) -> float:
        """√(2 VCF): how far the predictions for a row typically lie apart between two values of A as they occur."""
        return self.vcf.typical

    @property
    def typical_before(self) -> float | None:
        """The same of the predictor that it is compared with."""
        return None if self.before is None else self.before.vcf.typical

    @cached_property
    def bounds(self) -> VCFBounds | None:
        """Bounds on VCF without a causal model, where S is valid for the predictor's inputs and part of the context."""
        verdict, graph, given = self.verdict, self.verdict.graph, set(self.verdict.independence.given)
        protected = set(verdict.protected)
        read = {node for node in graph.observed if not set(self.inputs).isdisjoint(self.scm.columns([node]))}
        moved = read - protected - given
        if (
            self.n_rows < FEWEST_ROWS
            or graph.undirected
            or not given <= set(verdict.context)
            or given & graph.descendants(verdict.protected)
            or (moved and not graph.is_valid_adjustment(x=protected, y=moved, z=given))
        ):
            return None
        return vcf_bounds(
            self.model,
            known_columns(self.scm, self.rows)[0],
            self.scm.columns(verdict.protected),
            self.scm.columns(sorted(given)) if given else (),
            inputs=self.inputs,
            method=None if self.method == "call" else self.method,
            random_state=deepcopy(self.draws),
        )

    @cached_property
    def effects(self) -> PairedEffects | None:
        """Paired effects of protected values; None where there are no two to compare, as in a vector."""
        vcf = self.vcf
        columns = [self.scm.columns([name]) for name in vcf.protected]
        if any(len(each) > 1 for each in columns) or all(self.rows[each[0]].nunique() < 2 for each in columns):
            return None
        return paired_effects(
            self.models,
            self.scm,
            as_known_beforehand(self.scm, self.rows, self.verdict.outcome),
            vcf.protected,
            moved_by=self.limit,
            n_points=vcf.n_points,
            inputs=self.inputs,
            method=None if self.method == "call" else self.method,
            n_draws=max(vcf.n_draws, 10),
        )

    def pair_before(self, pair: pd.Series, measure: str) -> float | None:
        """Return what a pair of values measures for the predictor that this one is compared with."""
        if self.effects is None or self.before is None:
            return None
        table = self.effects.table
        same = table["model"] != pair["model"]
        for key in ("variable", "first", "second", "output"):
            same &= table[key] == pair[key]
        return float(table.loc[same, measure].iloc[0])

    @property
    def model_based(self) -> bool:
        """Whether the structural causal model was estimated."""
        return self.vcf.model_based

    def __str__(self) -> str:
        measured = ", ".join(f"{SCORE_NAMES[name]} {value:.4g}" for name, value in self.scores.items())
        certified = "certifies" if self.verdict.holds else "does not certify"
        return "\n".join(
            [
                f"On {self.n_rows} rows the predictor has {measured}.",
                str(self.vcf),
                *([] if self.bounds is None else [self.bounds.beside(self.vcf)]),
                f"The graph {certified} that {self.verdict.independence} makes predictions counterfactually invariant "
                f"in {as_list(self.verdict.protected)}.",
                f"{self.test} {'HSCIC' if self.statement.given else 'HSIC'} is {self.hscic:.3g}.",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready data."""
        return {
            "n_rows": self.n_rows,
            "scores": as_data(self.scores),
            "vcf": self.vcf.to_dict(),
            "bounds": self.bounds and {**self.bounds.to_dict(), "beside_vcf": self.bounds.beside(self.vcf)},
            "independence": self.verdict.independence.to_dict(),
            "statement": self.statement.to_dict(),
            "enforced": self.enforced,
            "holds": self.verdict.holds,
            "test": self.test.to_dict(),
            "hscic": self.hscic,
            "conclusion": self.conclusion.to_dict(),
            "limit": self.limit,
            "typical": self.typical,
            "before": self.before and self.before.to_dict(),
            "model_based": self.vcf.model_based,
            "text": str(self),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)


# Rows that a causal model is estimated from, and that the value of HSCIC is computed on.
_MODEL_ROWS = 50_000
_HSCIC_ROWS = 1000


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
