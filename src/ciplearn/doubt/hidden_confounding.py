"""`hidden_confounding`: VCF if an unobserved cause moved a protected variable and another node [kilbertus2019].

Let B = f(pa) + U_B, and let U_A be what the parents of A leave of A. If the two noises have correlation ρ and are
jointly normal, then

    E[B | pa, A, pa_A] = f(pa) + ρ (σ_B / σ_A) U_A,

so that for each ρ the mechanism f is a regression of B − ρ (σ_B / σ_A) U_A on the parents of B. Data cannot tell ρ:
they fit every value of it alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import finite, non_negative, of_kind, one_of, several, whole
from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import GraphError, InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.rows import RandomState, as_generator, as_seed
from ciplearn._core.wording import as_list
from ciplearn.causal import CausalGraph
from ciplearn.doubt.falsification import table_columns
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.regression import Menu, Regression, Variable
from ciplearn.evaluation.vcf import variance_of_counterfactuals
from ciplearn.scm import AdditiveNoise, fit_scm
from ciplearn.scm.estimated_model import EstimatedModel
from ciplearn.scm.location_scale import Identity, Link

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = (-0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6)
_DRAWS = 20  # draws of a covariate from its own law, over which its part in a node is averaged
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class HiddenConfounding:
    """The answer of `hidden_confounding`.

    Attributes
    ----------
    table : DataFrame
        Per node and ρ: ``node``, ``rho``, ``vcf``, ``relative``.
    benchmarks : DataFrame
        Per node and observed common cause: ``node``, ``covariate``, ``rho``, the correlation that the noises would have
        if the covariate were not in the table.
    late, drawn : tuple of str
        Nodes that were not asked about, and hidden causes of the graph, which are left out of this.

    Examples
    --------
    >>> from ciplearn import CausalGraph, datasets
    >>> from ciplearn.doubt import hidden_confounding
    >>> people = datasets.applicants().sample(200, random_state=0)[["age", "hours", "income"]]
    >>> graph = CausalGraph.from_edges("age -> hours, age -> income, hours -> income")
    >>> hidden_confounding(lambda frame: frame["hours"], graph, people, "age", rho=[0, 0.2], n_points=30).protected
    'age'
    """

    table: pd.DataFrame
    benchmarks: pd.DataFrame
    protected: str
    late: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()

    @property
    def unchanged(self) -> float:
        """VCF without a hidden cause; NaN where ρ = 0 was not asked for."""
        alone = self.table.loc[self.table["rho"] == 0, "vcf"]
        return float(alone.iloc[0]) if len(alone) else math.nan

    def crossing(self, threshold: float, measure: str = "vcf") -> dict[str, float]:
        """Return per node the ρ nearest to zero at which ``"vcf"`` or ``"relative"`` crosses a threshold, else NaN.

        Between the values of ρ that were tried the root of the measure is taken as straight: ρ moves effects, and VCF
        is a mean of their squares.
        """
        one_of(measure, "measure", ("vcf", "relative"))
        threshold = non_negative(threshold, "threshold")
        return {
            str(node): _crossing(
                curve["rho"].to_numpy(), np.sqrt(curve[measure].clip(lower=0).to_numpy()) - math.sqrt(threshold)
            )
            for node, curve in self.table.groupby("node", sort=False)
        }

    def __str__(self) -> str:
        sentences = [
            f"If a hidden cause correlated the noises of {self.protected} and {node} by {curve['rho'].min():g} to "
            f"{curve['rho'].max():g}, VCF would lie between {curve['vcf'].min():.3g} and {curve['vcf'].max():.3g}."
            for node, curve in self.table.groupby("node", sort=False)
        ]
        if len(self.benchmarks):
            strongest = self.benchmarks.loc[self.benchmarks["rho"].abs().idxmax()]
            sentences.append(
                f"For comparison, {strongest['covariate']} would correlate the noises of {self.protected} and "
                f"{strongest['node']} by {strongest['rho']:.2g} if it were hidden."
            )
        if self.late:
            sentences.append(f"{as_list(self.late)} {'was' if len(self.late) == 1 else 'were'} not asked about.")
        if self.drawn:
            sentences.append(f"This leaves out what is drawn as hidden: {as_list(self.drawn)}.")
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        return fields_as_data(self, "late", "drawn", sentence=str(self))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw VCF over ρ, one curve per node, with a mark where an observed covariate would stand."""
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1] if ax is None else ax
        for node, curve in self.table.groupby("node", sort=False):
            axes.plot(curve["rho"], curve["vcf"], marker="o", label=str(node))
        for row in self.benchmarks.itertuples():
            axes.axvline(row.rho, linestyle=":", color="grey")
            axes.annotate(str(row.covariate), (row.rho, axes.get_ylim()[1]), rotation=90, va="top", ha="right")
        axes.set_xlabel(f"correlation ρ of the noises of {self.protected} and the node")
        axes.set_ylabel("VCF")
        axes.legend()
        return axes


def hidden_confounding(
    model: Any,
    graph: CausalGraph,
    table: pd.DataFrame,
    protected: str,
    nodes: Sequence[str] | None = None,
    rho: Sequence[float] = _GRID,
    random_state: RandomState = 0,
    *,
    context: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    n_points: int = 300,
    n_interventions: int = 100,
    n_draws: int | None = 20,
    limit: int | None = None,
    like: EstimatedModel | None = None,
) -> HiddenConfounding:
    """Measure VCF for a range of correlations between the noises of a protected node and of others, one at a time.

    Parameters
    ----------
    model, table
        A finished predictor, and complete rows.
    graph : CausalGraph
        Bidirected edges and latent nodes without causes are left out of this, which is said: a hidden cause is what is
        varied.
    protected : str
        A node of numbers, or of two labels: the second in the order of the alphabet counts as 1.
    nodes : list of str, optional
        Nodes of numbers with parents whose noise may be correlated with that of A. Default: the children of A that hold
        numbers.
    rho : list of float
        Correlations strictly between −1 and 1.
    context, inputs, method, n_points, n_interventions, n_draws, random_state
        See `variance_of_counterfactuals`.
    limit, like
        Ask about so many nodes at most, those first that move the model most; the others are named. See `sensitivity`.

    Examples
    --------
    >>> from ciplearn import CausalGraph, datasets
    >>> from ciplearn.doubt import hidden_confounding
    >>> people = datasets.applicants().sample(200, random_state=0)[["age", "hours", "income"]]
    >>> graph = CausalGraph.from_edges("age -> hours, age -> income, hours -> income")
    >>> hidden_confounding(lambda frame: frame["hours"], graph, people, "age", rho=[0, 0.2], n_points=30).unchanged > 0
    True
    """
    limit = None if limit is None else whole(limit, "limit", minimum=1)
    of_kind(graph, CausalGraph, "graph", "build one with CausalGraph.from_edges(...)")
    graph.known_observed((protected,), "protected")
    graph, drawn = _without_hidden_causes(graph)
    rho = [finite(value, "A correlation") for value in several(rho, "rho")]
    beyond = next((value for value in rho if not -1 < value < 1), None)
    if beyond is not None:
        raise InputError(f"A correlation lies strictly between -1 and 1, got {beyond!r}; pass for example rho=[0.3].")
    chosen = _nodes(graph, table, protected, nodes)
    generator, seed = as_generator(random_state), as_seed(random_state)
    base = fit_scm(graph, table, random_state=seed if like is None else None, like=like)
    left = _residuals(table, protected, base.columns(graph.parents(protected)), generator)
    if limit is not None and limit < len(chosen):
        predictor = Predictor.of(model, list(table.columns), inputs, method)
        moved = {node: _moved(predictor, base, table.head(n_points), node) for node in chosen}
        chosen = tuple(sorted(chosen, key=moved.__getitem__, reverse=True))
    rows, varied = [], chosen[:limit]
    measured: dict[str, Any] = {"context": context, "inputs": inputs, "method": method, "n_draws": n_draws}
    measured |= {"n_points": n_points, "n_interventions": n_interventions, "random_state": seed}
    additive = {node: _AdditiveNode(base, table, node) for node in varied}
    for node, value in product(varied, rho):
        scm = additive[node].model(left, value)
        vcf = variance_of_counterfactuals(model, scm, table, [protected], **measured)
        rows.append({"node": node, "rho": value, "vcf": vcf.value, "relative": vcf.relative})
    benchmarks = [
        {
            "node": node,
            "covariate": covariate,
            "rho": _if_hidden(additive[node], table, protected, covariate, generator),
        }
        for node in varied
        for covariate in graph.parents(node)
        if covariate in graph.parents(protected)
    ]
    compared = pd.DataFrame(benchmarks, columns=["node", "covariate", "rho"])
    return HiddenConfounding(pd.DataFrame(rows), compared, protected, chosen[len(varied) :], drawn)


def _moved(predictor: Predictor, base: EstimatedModel, rows: pd.DataFrame, node: str) -> float:
    """How far predictions move, in mean square, where a node is higher by its deviation, and what follows from it."""
    values = rows[node].astype(float)
    higher = base.counterfactual(rows, {node: values + values.std()})
    asked = (predictor(one) for one in (rows, rows.assign(**higher)))
    return float(np.square(np.subtract(*asked)).mean())


def _without_hidden_causes(graph: CausalGraph) -> tuple[CausalGraph, tuple[str, ...]]:
    """The graph without bidirected edges and latent nodes, and what these were."""
    for node in graph.latent:
        if graph.parents(node):
            raise GraphError(f"{node} is latent and has causes, so that it cannot be left out; draw it as observed.")
    drawn = (*(f"{a} ↔ {b}" for a, b in graph.bidirected), *sorted(graph.latent))
    directed = tuple((a, b) for a, b in graph.directed if a not in graph.latent)
    return replace(graph, nodes=graph.observed, directed=directed, bidirected=(), latent=frozenset()), drawn


def _nodes(graph: CausalGraph, table: pd.DataFrame, protected: str, asked: Sequence[str] | None) -> tuple[str, ...]:
    held = table_columns(graph, table)
    named = () if asked is None else graph.known_observed(asked, "nodes")
    for node in (protected, *named):
        if node not in table:
            why = f"{node} is a vector of {len(held[node])} columns, and a correlation is between two numbers"
            raise InputError(f"{why}; draw a node per column.")
    for node in named:
        if node == protected or not graph.parents(node) or not holds_numbers(table[node]):
            raise InputError(f"{node} must be another node of numbers with parents, so that its noise can be varied.")
    children = [node for node in graph.children(protected) if node in table and holds_numbers(table[node])]
    if asked is None and not children:
        raise InputError(f"{protected} has no child that holds numbers; name nodes.")
    return named or tuple(children)


def _as_numbers(column: pd.Series, name: str) -> Array:  # (n,)
    if holds_numbers(column):
        return column.to_numpy(dtype=float)
    # Sorted: the sign of a correlation must not hang on the order of the rows.
    codes, levels = pd.factorize(column.astype(str), sort=True)
    if len(levels) != 2:
        raise InputError(f"{name} has {len(levels)} labels; a correlation of its noise needs numbers or two labels.")
    return codes.astype(float)


def _residuals(table: pd.DataFrame, name: str, parents: Sequence[str], generator: np.random.Generator) -> Array:
    """What a regression of a column on the columns of its parents leaves, mean zero."""
    values = _as_numbers(table[name], name)
    centred = values - values.mean()
    if not parents:
        return centred
    menu = Menu(Variable.of(table[list(parents)], "parents"), generator)
    return Regression.of(Variable.of(centred, "value").rows, menu).residuals[:, 0].numpy() * centred.std()


class _AdditiveNode:
    """The mechanism of a node with additive noise, and what it must be if that noise goes with what A has left."""

    def __init__(self, base: EstimatedModel, table: pd.DataFrame, node: str) -> None:
        parents = base.graph.parents(node)
        self.base, self.node, self.link = base, node, _link_of(base, node)
        self.alone = CausalGraph((*parents, node), directed=tuple((parent, node) for parent in parents))
        self.rows = table[list(base.columns((*parents, node)))]
        self.fitted = self._fit(self.rows)

    def _fit(self, rows: pd.DataFrame) -> EstimatedModel:
        # The seed of the model: without a correlation additive noise is what it was there.
        return fit_scm(self.alone, rows, {self.node: AdditiveNoise(link=self.link)}, self.base.seed)

    def model(self, left: Array, rho: float) -> EstimatedModel:
        """Return the model in which the noise of the node has correlation ρ with what A has left."""
        fitted, node = self.fitted, self.node
        if rho != 0:
            spread = float(np.std(fitted.abduct(self.rows).noise[node]))
            # The noise keeps 1 − ρ² of its variance once A's is known.
            moved = rho / math.sqrt(1 - rho**2) * spread * left / left.std()
            rest = self.link.back(self.link.forward(self.rows[node].to_numpy(dtype=float)) - moved)
            fitted = self._fit(self.rows.assign(**{node: rest}))
        return self.base.replaced({node: fitted.mechanisms[node]})


def _link_of(base: EstimatedModel, node: str) -> Link:
    """The scale of the mechanism that was chosen: on that of logarithms an amount stays positive."""
    if node not in base.choices:
        return Identity()
    recipe = base.choices[node].chosen.recipe
    return getattr(getattr(recipe, "base", None) or recipe, "link", Identity())


def _if_hidden(
    one: _AdditiveNode, table: pd.DataFrame, protected: str, covariate: str, generator: np.random.Generator
) -> float:
    """The correlation of the noises of A and of a node to which a common cause would be added, were it not seen."""
    base, node, link = one.base, one.node, one.link
    graph = base.graph
    rest = [parent for parent in graph.parents(protected) if parent != covariate]
    mine = _residuals(table, protected, base.columns(rest), generator)
    # On one scale with the noise, whatever the mechanism: what the covariate does joins it by addition.
    additive = one.model(mine, 0.0)
    columns = {parent: parent if parent in table else base.columns([parent]) for parent in graph.parents(node)}
    held = {parent: table[names].to_numpy() for parent, names in columns.items()}
    others = ({**held, covariate: generator.permutation(held[covariate])} for _ in range(_DRAWS))
    imagined = [additive.counterfactual(table, other)[node].to_numpy(dtype=float) for other in others]
    average = np.mean([link.forward(values) for values in imagined], axis=0)
    noise = np.asarray(additive.abduct(table).noise[node], dtype=float).reshape(len(table), -1)[:, 0]
    joined = noise + link.forward(_as_numbers(table[node], node)) - average
    return float(np.corrcoef(mine, joined)[0, 1])


def _crossing(rho: Array, above: Array) -> float:
    order = np.argsort(rho)
    rho, above = rho[order], above[order]
    crossings = [float(r) for r, a in zip(rho, above, strict=True) if a == 0]
    for before in np.flatnonzero(above[:-1] * above[1:] < 0):
        step = above[before] / (above[before] - above[before + 1])
        crossings.append(float(rho[before] + step * (rho[before + 1] - rho[before])))
    return min(crossings, key=abs, default=math.nan)
