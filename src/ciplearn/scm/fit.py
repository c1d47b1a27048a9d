"""`fit_scm`: a structural causal model estimated from a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from sklearn.base import is_classifier

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.random import RandomState, as_generator
from ciplearn.causal import CausalGraph
from ciplearn.scm.kinds import Array, Categories, Kind, Scalar, Vector
from ciplearn.scm.latents import LatentPlan, plan_latents
from ciplearn.scm.mechanism import Mechanism
from ciplearn.scm.model import StructuralCausalModel
from ciplearn.scm.multinomial import Multinomial
from ciplearn.scm.regression import AdditiveNoise
from ciplearn.scm.report import FitReport, NodeFit, law_distance, notes_on
from ciplearn.scm.roots import EmpiricalRoot
from ciplearn.scm.specification import NodeSample, Score, Specification
from ciplearn.scm.table import present_nodes, read_nodes
from ciplearn.scm.variational import VariationalLatent

_MIN_ROWS = 20

# Variances of larger numbers overflow.
_LARGEST = 1e150

# One row in so many scores mechanisms that were fitted to the others.
_SCORED = 5

# Rows that the model samples for the report.
_REPORT_ROWS = 5000


class EstimatedModel(StructuralCausalModel):
    """A structural causal model whose mechanisms were estimated; all it says is model-based.

    Attributes
    ----------
    report : FitReport
        How well each mechanism fits; print it.
    """

    model_based = True
    report: FitReport

    def __init__(
        self, graph: CausalGraph, mechanisms: Mapping[str, Mechanism], kinds: Mapping[str, Kind], report: FitReport
    ) -> None:
        super().__init__(graph, mechanisms, kinds=kinds)
        self.report = report


def fit_scm(
    graph: CausalGraph,
    df: pd.DataFrame,
    mechanisms: Mapping[str, Any] | None = None,
    random_state: RandomState = 0,
) -> EstimatedModel:
    """Estimate one mechanism a node from a table.

    Parameters
    ----------
    graph : CausalGraph
        Its observed nodes are columns of the table. A latent root with one child is that child's noise. A latent root
        with several children, and a bidirected edge, gets a law of its own by `VariationalLatent`.
    df : DataFrame
        Columns of category, text or bool dtype hold labels, all others numbers; ``A[0]``, ``A[1]``, ... are a vector.
        Columns that the graph does not know are not used.
    mechanisms : mapping from node to recipe, optional
        `AdditiveNoise`, `Multinomial`, `MonotoneFlow`, or a scikit-learn regressor or classifier for an observed node;
        `VariationalLatent` for a latent one. Defaults: observed values for nodes without parents, `AdditiveNoise` for
        numbers, `Multinomial` for labels.
    random_state : int or Generator

    Returns
    -------
    EstimatedModel
        A `StructuralCausalModel` with a ``report``.
    """
    if not isinstance(graph, CausalGraph):
        raise InputTypeError(
            f"graph must be a CausalGraph, got {type(graph).__name__}; build one with CausalGraph.from_edges(...)."
        )
    asked = dict(mechanisms or {})
    plan = plan_latents(graph, asked)
    generator = as_generator(random_state)
    kinds = _kinds(df, plan.graph)
    table = _Table.read(df, plan, kinds)
    recipes = _recipes(plan, kinds, asked)
    for latent in plan.learned:
        kinds[latent] = recipes.latent[latent].kind
    rows = np.arange(table.n)
    held_out = np.sort(generator.permutation(rows)[: max(1, table.n // _SCORED)])
    trial = recipes.fit(table.take(np.setdiff1d(rows, held_out)), generator)
    scores = recipes.scores(trial, table.take(held_out), generator)
    fitted = recipes.fit(table, generator)
    report = _report(StructuralCausalModel(plan.graph, fitted, kinds=kinds), table, recipes, scores, generator)
    return EstimatedModel(plan.graph, fitted, kinds, report)


@dataclass(frozen=True)
class _Table:
    """Checked values, and who descends from whom."""

    values: dict[str, Array]
    plan: LatentPlan
    kinds: dict[str, Kind]

    @classmethod
    def read(cls, df: pd.DataFrame, plan: LatentPlan, kinds: dict[str, Kind]) -> _Table:
        present = present_nodes(df, plan.graph, kinds, "df")
        missing = [node for node in plan.graph.observed if node not in present]
        if missing:
            raise InputError(f"df lacks the column {missing[0]!r}; add it, or declare {missing[0]} latent.")
        if len(df) < _MIN_ROWS:
            raise InputError(f"df has {len(df)} rows; pass at least {_MIN_ROWS} to estimate mechanisms from.")
        return cls(read_nodes(df, kinds, present), plan, kinds)

    @property
    def n(self) -> int:
        return len(next(iter(self.values.values())))

    def take(self, rows: Array) -> _Table:
        return _Table({node: array[rows] for node, array in self.values.items()}, self.plan, self.kinds)

    def sample(self, node: str) -> NodeSample:
        """The node with its observed parents."""
        parents = tuple(parent for parent in self.plan.graph.parents(node) if parent not in self.plan.learned)
        values = {name: self.values[name] for name in (node, *parents)}
        return NodeSample(node, self.kinds[node], parents, values, self.kinds)


@dataclass(frozen=True)
class _Recipes:
    """One recipe a node that has none of its mechanism from a latent parent, one a latent node."""

    observed: dict[str, Specification]
    latent: dict[str, VariationalLatent]

    def fit(self, table: _Table, generator: Generator) -> dict[str, Mechanism]:
        fitted = {node: recipe.fit(table.sample(node), generator) for node, recipe in self.observed.items()}
        for latent, recipe in self.latent.items():
            children = {child: table.sample(child) for child in table.plan.learned[latent]}
            fitted[latent], decoded = recipe.fit(latent, children, generator)
            fitted |= decoded
        return fitted

    def scores(self, trial: Mapping[str, Mechanism], table: _Table, generator: Generator) -> dict[str, Score]:
        scores = {
            node: recipe.score(trial[node], table.sample(node), generator) for node, recipe in self.observed.items()
        }
        for latent, recipe in self.latent.items():
            for child in table.plan.learned[latent]:
                scores[child] = recipe.score(latent, trial[latent], trial[child], table.sample(child), generator)
        return scores

    def label(self, node: str, plan: LatentPlan) -> str:
        if node in self.observed:
            return self.observed[node].label
        return next(self.latent[latent].label for latent, children in plan.learned.items() if node in children)


def _kinds(df: Any, graph: CausalGraph) -> dict[str, Kind]:
    if not isinstance(df, pd.DataFrame):
        raise InputTypeError(f"df must be a pandas DataFrame, got {type(df).__name__}; pass the table.")
    kinds: dict[str, Kind] = {}
    for node in graph.observed:
        if node in df.columns:
            kinds[node] = _column_kind(df[node], node)
        else:
            size = sum(f"{node}[{place}]" in df.columns for place in range(len(df.columns)))
            kinds[node] = Vector(size) if size else Scalar()
    return kinds


def _column_kind(column: Any, node: str) -> Kind:
    if isinstance(column, pd.DataFrame):
        raise InputError(f"df has two columns named {node!r}; drop or rename one of them.")
    dtype = column.dtype
    if holds_numbers(column):
        if pd.api.types.is_numeric_dtype(dtype) and column.abs().max() > _LARGEST:
            raise InputError(f"Column {node!r} holds {column.abs().max():g}, whose square overflows; rescale it.")
        return Scalar()
    try:
        labels = column.cat.categories if isinstance(dtype, pd.CategoricalDtype) else column.dropna().unique()
    except TypeError as error:
        raise InputError(f"Column {node!r} holds lists or the like; convert them to numbers or labels.") from error
    seen = labels if isinstance(dtype, pd.CategoricalDtype) else sorted(labels, key=str)
    if len(seen) < 2:
        raise InputError(f"Column {node!r} holds {len(seen)} distinct labels; a mechanism of labels needs at least 2.")
    return Categories(seen)


def _recipes(plan: LatentPlan, kinds: Mapping[str, Kind], asked: Mapping[str, Any]) -> _Recipes:
    plan.graph.known([node for node in asked if node not in plan.absorbed], "mechanisms")
    decoded = {child: latent for latent, children in plan.learned.items() for child in children}
    latent = {node: _latent_recipe(node, asked.get(node)) for node in plan.learned}
    observed = {}
    for node in plan.graph.observed:
        if node in decoded:
            if node in asked:
                raise InputError(
                    f"{node} comes about through its latent parent {decoded[node]}; give the mechanism to "
                    f"{decoded[node]} instead."
                )
            continue
        observed[node] = _observed_recipe(node, asked.get(node), kinds[node], bool(plan.graph.parents(node)))
    return _Recipes(observed, latent)


def _latent_recipe(node: str, given: Any) -> VariationalLatent:
    if given is None:
        return VariationalLatent()
    if not isinstance(given, VariationalLatent):
        raise InputTypeError(f"{node} is latent, so its mechanism must be a VariationalLatent, got {given!r}.")
    return given


def _observed_recipe(node: str, given: Any, kind: Kind, has_parents: bool) -> Specification:
    if given is None:
        if not has_parents:
            return EmpiricalRoot()
        return Multinomial() if isinstance(kind, Categories) else AdditiveNoise()
    if isinstance(given, VariationalLatent):
        raise InputTypeError(f"{node} is observed, but a VariationalLatent makes latent nodes; draw one as its parent.")
    recipe = given
    if not isinstance(given, Specification) and hasattr(given, "fit"):
        recipe = Multinomial(given) if is_classifier(given) else AdditiveNoise(given)
    if not isinstance(recipe, Specification):
        raise InputTypeError(
            f"The mechanism of {node} must be a recipe such as AdditiveNoise(), or a scikit-learn estimator, got "
            f"{given!r}."
        )
    if not has_parents and isinstance(recipe, AdditiveNoise | Multinomial):
        raise InputError(f"{node} has no parents to be explained by; leave its mechanism out.")
    return recipe


def _report(
    model: StructuralCausalModel,
    table: _Table,
    recipes: _Recipes,
    scores: Mapping[str, Score],
    generator: Generator,
) -> FitReport:
    sampled = model.sample_units(min(table.n, _REPORT_ROWS), generator).values
    fits = tuple(
        NodeFit(
            node,
            recipes.label(node, table.plan),
            scores[node].name,
            scores[node].value,
            law_distance(table.kinds[node], node, table.values[node], sampled[node]),
        )
        for node in table.plan.graph.observed
    )
    return FitReport(fits, table.n, notes_on(table.plan.absorbed, table.plan.learned))
