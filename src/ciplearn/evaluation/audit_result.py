"""`Audit`: everything there is to say about a finished predictor, with the predictor and the rows."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import as_numbers
from ciplearn._core.plain_data import as_data
from ciplearn._core.wording import as_list
from ciplearn.causal import Independence, Verdict
from ciplearn.evaluation.bounds import FEWEST_ROWS, VCFBounds, vcf_bounds
from ciplearn.evaluation.conclusion import Conclusion, Floor, Limits, conclude
from ciplearn.evaluation.counterfactual_rows import as_known_beforehand, known_columns
from ciplearn.evaluation.independence import IndependenceTest
from ciplearn.evaluation.paired_effects import PairedEffects, paired_effects
from ciplearn.evaluation.scores import SCORE_NAMES
from ciplearn.evaluation.vcf_result import VarianceOfCounterfactuals
from ciplearn.evaluation.wording import MODEL, Unit
from ciplearn.scm import StructuralCausalModel


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
