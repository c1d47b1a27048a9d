"""`audit`: everything there is to say about a finished predictor, in one result with the predictor and the rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import finite, mapping_of
from ciplearn._core.columns import as_numbers, checked_table, holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.plain_data import as_data
from ciplearn._core.rows import RandomState, as_generator
from ciplearn._core.wording import as_list
from ciplearn.causal import CausalGraph, Independence, Verdict
from ciplearn.causal.names import Names
from ciplearn.evaluation.bounds import FEWEST_ROWS, VCFBounds, vcf_bounds
from ciplearn.evaluation.conclusion import Conclusion, Floor, Limits, conclude
from ciplearn.evaluation.counterfactual_rows import (
    as_known_beforehand,
    known_by,
    known_columns,
    nodes_in,
    sample_with_every_label,
)
from ciplearn.evaluation.effects import PairedEffects, paired_effects
from ciplearn.evaluation.independence import MAX_ROWS, IndependenceTest, Sides, run_test
from ciplearn.evaluation.predictors import Predictor, enforced_statement, verdict_on
from ciplearn.evaluation.regression import Variable
from ciplearn.evaluation.scores import MODEL, SCORE_NAMES, Unit, predictive_scores
from ciplearn.evaluation.vcf import variance_of_counterfactuals
from ciplearn.evaluation.vcf_result import VarianceOfCounterfactuals
from ciplearn.penalties import HSCIC, HSIC
from ciplearn.scm import StructuralCausalModel, fit_scm


@dataclass(frozen=True, eq=False)
class Beside:
    """A predictor that another one is compared with: ``model``, ``vcf`` and ``scores``, measured alike.

    >>> from ciplearn import audit, datasets
    >>> world = datasets.applicants()
    >>> people, beside = world.sample(100, random_state=0), {"usual": lambda frame: 2 * frame["training"]}
    >>> result = audit(lambda frame: frame["age"], world, people, "income", ["sex"], beside=beside, n_points=20)
    >>> result.vcf.value < result.before.vcf.value
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
    vcf, test
        VCF, and the test of ``statement``.
    statement, enforced
        What the model was trained to keep, about columns; where it was not, what the criterion asks for.
    hscic : float
        The paper's penalty of the predictions, centred; HSIC where nothing is conditioned on.
    scores : dict
        ``mse`` and ``r2``, or ``accuracy``, ``log_loss`` and, of two labels, ``auc``.
    verdict, scm
        The criterion behind the independence, and the causal model as it was given or estimated.
    inputs, method
        The columns that the predictor was shown, and how: ``"predict"``, ``"predict_proba"``, or ``"call"``.
    model, rows, n_rows
        The predictor, the table that was passed, and how many rows it has.
    beside : dict of name to Beside
        Other predictors, measured on the same rows and imagined rows; the first is what it is compared with.
    limits, draws
        What is allowed, and what `bounds` draw from when somebody asks for them.
    floor : Floor, optional
        How far two causal models of such rows disagree, where it is known: a limit below it is not called failed.

    Examples
    --------
    >>> from ciplearn import audit, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(300, random_state=0)
    >>> audit(lambda frame: frame["hours"], world, people, "income", ["sex"], n_points=50).conclusion.state
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
    def predictors(self) -> dict[str, Predictor]:
        """The predictor and the one that it is compared with, by the names that results call them."""
        models = {MODEL: self.model} | {name: one.model for name, one in list(self.beside.items())[:1]}
        return {name: Predictor(model, self.method, self.inputs) for name, model in models.items()}

    @property
    def models(self) -> dict[str, Any]:
        """The same, as they were passed."""
        return {name: predictor.model for name, predictor in self.predictors.items()}

    @property
    def before(self) -> Beside | None:
        """What the predictor is compared with, if anything."""
        return next(iter(self.beside.values()), None)

    @property
    def is_classifier(self) -> bool:
        """Whether scores are about labels."""
        return "accuracy" in self.scores

    @property
    def weaker(self) -> bool:
        """Whether the model was trained to keep a weaker statement than the question takes."""
        certified = self.scm.columns(self.verdict.independence.right)
        return self.enforced and len(self.statement.right) < len(certified)

    @cached_property
    def unit(self) -> Unit:
        """How amounts of a prediction are written: in points, or on the scale of the outcome's standard deviation."""
        return Unit(self.is_classifier, 1.0 if self.is_classifier else self.deviation)

    @property
    def deviation(self) -> float:
        """The standard deviation of an outcome of numbers."""
        return float(as_numbers(self.rows[self.verdict.outcome]).to_numpy(dtype=np.float64).std())

    @property
    def limit(self) -> float:
        """How far a prediction may move."""
        return self.limits.effect(probability=self.is_classifier, deviation=self.unit.scale)

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
        moved = set(nodes_in(self.scm, self.inputs)) - protected - given
        if self.n_rows < FEWEST_ROWS or graph.undirected or not given <= set(verdict.context):
            return None
        if given & graph.descendants(protected):
            return None
        if moved and not graph.is_valid_adjustment(x=protected, y=moved, z=given):
            return None
        table = known_columns(self.scm, self.rows)[0]
        a, s = self.scm.columns(verdict.protected), self.scm.columns(sorted(given)) if given else ()
        return vcf_bounds(self.predictors[MODEL], table, a, s, random_state=deepcopy(self.draws))

    @cached_property
    def effects(self) -> PairedEffects | None:
        """Paired effects of protected values; None where there are no two to compare, as in a vector."""
        vcf = self.vcf
        columns = [self.scm.columns([name]) for name in vcf.protected]
        if any(len(each) > 1 for each in columns) or all(self.rows[each[0]].nunique() < 2 for each in columns):
            return None
        rows, n_draws = as_known_beforehand(self.scm, self.rows, self.verdict.outcome), max(vcf.n_draws, 10)
        return paired_effects(
            self.predictors, self.scm, rows, vcf.protected, moved_by=self.limit, n_points=vcf.n_points, n_draws=n_draws
        )

    def pair_before(self, pair: pd.Series, measure: str) -> float | None:
        """Return what a pair of values measures for the predictor that this one is compared with."""
        if self.effects is None or self.before is None:
            return None
        table, keys = self.effects.table, ["variable", "first", "second", "output"]
        same = (table["model"] != pair["model"]) & (table[keys] == pair[keys]).all(axis=1)
        return float(table.loc[same, measure].iloc[0])

    @property
    def tested(self) -> str:
        """What the test says of the statement."""
        return self.test.about(f"the prediction {self.statement.in_words()}")

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
                f"{self.tested} {'HSCIC' if self.statement.given else 'HSIC'} is {self.hscic:.3g}.",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready data."""
        names = ("n_rows", "scores", "vcf", "statement", "enforced", "test", "hscic", "conclusion", "limit", "typical")
        data = {name: getattr(self, name) for name in (*names, "before", "model_based")}
        data |= {"independence": self.verdict.independence, "holds": self.verdict.holds, "text": str(self)}
        data["bounds"] = self.bounds and {**self.bounds.to_dict(), "beside_vcf": self.bounds.beside(self.vcf)}
        return {name: as_data(value) for name, value in data.items()}

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)


# Rows that a causal model is estimated from, and that the value of HSCIC is computed on.
_MODEL_ROWS, _HSCIC_ROWS = 50_000, 1000


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
        context was named, also for a model that enforces a weaker statement. Where the causal model cannot say how
        likely a context's values are, a point is known by the observed ancestors of its context, too, which can only
        make VCF larger; ``vcf.context`` says so.
    verdict : Verdict, optional
        By default the one that the model carries for this graph; else the criterion is asked.
    n_points, n_interventions, n_draws, random_state, interventions, inputs, method, reference, threshold
        See `variance_of_counterfactuals`. Decisions are also compared at the share of positives that the outcome has.
    beside, limits, floor
        See `Audit`.

    Examples
    --------
    >>> from ciplearn import audit, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(300, random_state=0)
    >>> result = audit(lambda frame: 2 * frame["training"], world, people, "income", ["sex", "age"], n_points=50)
    >>> result.verdict.holds, result.vcf.value > 1
    (True, True)
    """
    generator = as_generator(random_state)
    checked_table(table, "table")
    if threshold is not None:
        threshold = finite(threshold, "threshold")
    if not isinstance(scm, StructuralCausalModel | CausalGraph):
        received = type(scm).__name__
        raise InputTypeError(f"scm must be a StructuralCausalModel or a CausalGraph, got {received}; pass one of them.")
    graph = scm if isinstance(scm, CausalGraph) else scm.graph
    roles = {"outcome": outcome, "protected": protected, "context": context, "adjustment": adjustment}
    if verdict is None:
        verdict = verdict_on(model, graph, roles)
    elif any(role is not None for role in roles.values()):
        raise InputError("Both a verdict and roles were given; pass the verdict, or roles to judge anew.")
    if verdict.outcome not in table.columns:
        raise InputError(f"table lacks the outcome {verdict.outcome!r}, which the score needs; add the column.")
    rows = table
    if isinstance(scm, CausalGraph):
        scm = fit_scm(graph, sample_with_every_label(table, _MODEL_ROWS, generator), random_state=generator)
    table, ignored = known_columns(scm, table)
    columns = [column for column in table.columns if column != verdict.outcome]
    predictor = Predictor.of(model, columns, inputs, method, ignored)
    shown, truth = predictor.inputs, table[verdict.outcome]
    # The share of positive outcomes, where the predictor decides about them.
    classes, rate = getattr(model, "classes_", None), None
    if predictor.method == "predict_proba" and classes is not None and len(classes) == 2:
        rate = float((truth == classes[1]).mean())
    elif threshold is not None and holds_numbers(truth):
        rate = float((truth > threshold).mean())
    others = mapping_of(beside, "beside")
    asked: dict[str, Any] = {"interventions": interventions, "inputs": shown, "method": method, "n_draws": n_draws}
    asked |= {"reference": reference, "threshold": threshold, "rate": rate, "context": known_by(verdict, scm, table)}
    models, numbers = {MODEL: model, **others}, (n_points, n_interventions)
    vcf = variance_of_counterfactuals(models, scm, table, verdict.protected, *numbers, generator, **asked)
    answers = predictor.in_blocks(table)
    tested = np.arange(len(table))
    if len(table) > MAX_ROWS:
        tested = np.sort(generator.choice(len(table), MAX_ROWS, replace=False))
    kept = enforced_statement(model)
    statement = kept or Independence(*map(scm.columns, (verdict.independence.right, verdict.independence.given)))
    right, given = (table[list(names)].iloc[tested] for names in (statement.right, statement.given))
    sides = Sides.of(predictor.numbers(answers)[tested], right, given if statement.given else None)
    compared = {}
    for name, one in others.items():
        another = Predictor(one, predictor.method, shown)
        compared[name] = Beside(one, vcf[name], predictive_scores(another, another.in_blocks(table), truth))
    return Audit(
        vcf=vcf[MODEL],
        test=run_test(sides, generator),
        statement=statement,
        enforced=kept is not None,
        hscic=_hscic(*vars(sides.sampled(_HSCIC_ROWS, generator)).values()),
        scores=predictive_scores(predictor, answers, truth),
        verdict=verdict,
        scm=scm,
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


def _hscic(left: Variable, right: Variable, given: Variable | None) -> float:
    kernels: dict[str, Any] = {"kernel": left.kernel.resolve(left.rows), "right_kernel": right.kernel}
    if given is None:
        return float(HSIC(**kernels)(left.rows, right.rows))
    return float(HSCIC(**kernels, given_kernel=given.kernel, centre=True)(left.rows, right.rows, given.rows))
