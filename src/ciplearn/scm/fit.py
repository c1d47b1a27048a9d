"""`fit_scm`: a structural causal model estimated from a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from ciplearn._core.arguments import mapping_of, of_kind
from ciplearn._core.columns import as_numbers, holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.rows import RandomState, as_seed
from ciplearn._core.workers import on_one_thread
from ciplearn.causal import CausalGraph
from ciplearn.scm.estimate import Memory, NodeEstimate, estimate_latent, estimate_node, estimate_root
from ciplearn.scm.estimated_model import EstimatedModel
from ciplearn.scm.kinds import Array, Categories, Kind, Scalar, Vector, present_nodes
from ciplearn.scm.location_scale import AdditiveNoise
from ciplearn.scm.mechanism import JointNoise, MechanismRecipe, NodeSample
from ciplearn.scm.multinomial import Multinomial
from ciplearn.scm.report import FitReport
from ciplearn.scm.variational import VariationalLatent

_MIN_ROWS = 20

# Variances of larger numbers overflow.
_LARGEST = 1e150

# More labels than this, of which most stand in one row, are names: each has too few rows to learn from.
_FEW_LABELS = 20


@on_one_thread
def fit_scm(
    graph: CausalGraph,
    table: pd.DataFrame,
    mechanisms: Mapping[str, Any] | None = None,
    random_state: RandomState = 0,
    *,
    like: EstimatedModel | None = None,
) -> EstimatedModel:
    """Estimate one mechanism per node from a table.

    For each node several mechanisms are fitted to four fifths of the rows, at most 20 000, and scored on the rest, by
    the continuous ranked probability score for numbers and by the log probability for labels. The node gets the
    simplest of those within two standard errors of the best whose noise passes a test of independence from the parents,
    or the simplest of all where none does, fitted again to all rows; for counts, and values that many rows share,
    quantiles come first. The report shows all scores and the nodes whose noise still depends on their parents.

    Parameters
    ----------
    graph : CausalGraph
        Its observed nodes are columns of the table. A latent root with one child is that child's noise. Nodes that
        bidirected edges join are drawn together as observed where none of them has a cause in the graph; else they
        share one latent node, which like a latent root with several children gets a law by `VariationalLatent`.
    table : DataFrame
        Columns of category, text or bool dtype hold labels, all others numbers; ``A[0]``, ``A[1]``, ... are a vector.
        Columns that the graph does not know are not used. A row counts for the nodes that have all their values in it.
    mechanisms : mapping from node to recipe or list of recipes, optional
        For an observed node `AdditiveNoise`, `LocationScale`, `SimultaneousQuantiles`, `Multinomial`, `MonotoneFlow`,
        or a scikit-learn regressor or classifier; a list of them, from simple to flexible, to choose from;
        `VariationalLatent` for a latent node. Defaults: observed values for nodes without parents; `Multinomial` for
        labels; for numbers additive noise, location-scale noise (both also on a log or logit scale where the values
        allow it) and simultaneous quantiles.
    random_state : int, Generator, RandomState or None
        The draws of a node depend on it, on the node and on its parents, and on no other node. None takes that of
        ``like``, where there is one.
    like : EstimatedModel, optional
        A model fitted before, for example of another variant of the graph: a node whose column, parents, recipe and
        random state are the same is not fitted again. The model is what it would have been without ``like``.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> world = datasets.applicants()
    >>> people = world.sample(400, random_state=0)
    >>> scm = fit_scm(world.graph, people)
    >>> scm.trustworthy, scm.counterfactual(people, {"sex": "m"})["region"].equals(people["region"])
    (True, True)
    """
    of_kind(graph, CausalGraph, "graph", "build one with CausalGraph.from_edges(...)")
    if like is not None and not isinstance(like, EstimatedModel):
        raise InputTypeError(f"like must be a model of fit_scm, got {type(like).__name__}; leave it out.")
    named = mapping_of(mechanisms, "mechanisms")
    plan = plan_latents(graph, named)
    rows = _Table(table, plan)
    observed, latent = _recipes(plan, named)
    memory: Memory = {} if like is None else like.memory
    seed = like.seed if like is not None and random_state is None else as_seed(random_state)
    estimates: dict[str, NodeEstimate] = {}
    for node, recipes in observed.items():
        parents = plan.graph.parents(node)
        key = (node, parents, repr(recipes), seed, rows.digest((node, *parents)))
        if key not in memory:
            sample, generator = rows.samples([node])[node], np.random.default_rng(_seeds(seed, node, *parents))
            memory[key] = {node: estimate_node(sample, recipes, generator) if parents else estimate_root(sample)}
        estimates |= memory[key]
    for node, children in plan.learned.items():
        families = tuple((child, plan.graph.parents(child)) for child in children)
        columns = sorted({name for child, parents in families for name in (child, *parents)} - {node})
        group = (node, families, repr(latent[node]), seed, rows.digest(columns))
        if group not in memory:
            generator = np.random.default_rng(_seeds(seed, node, repr(families)))
            memory[group] = estimate_latent(node, rows.samples(children), latent[node], generator)
        estimates |= memory[group]
    fits = tuple(fit for node in plan.graph.observed if (fit := estimates[node].fit) is not None)
    return EstimatedModel(
        plan.graph,
        {node: estimate.mechanism for node, estimate in estimates.items()},
        rows.kinds | {node: recipe.kind for node, recipe in latent.items()},
        FitReport(fits, rows.n, (*plan.notes(), *rows.notes())),
        choices={node: estimate.choice for node, estimate in estimates.items() if estimate.choice is not None},
        joint_noise=tuple(JointNoise(rows.of(nodes)) for nodes in plan.together),
        memory=memory,
        seed=seed,
    )


def _seeds(seed: int, *names: str) -> list[int]:
    """A seed for numpy that depends on some names, the same on every machine."""
    digest = blake2b("\0".join(names).encode(), digest_size=16).digest()
    return [seed, *np.frombuffer(digest, dtype=np.uint32).tolist()]


class _Table:
    """Checked values, and which of them the table has."""

    def __init__(self, table: pd.DataFrame, plan: LatentPlan) -> None:
        self.kinds, self.plan, self.n = _kinds(table, plan.graph), plan, len(table)
        nodes = present_nodes(table, plan.graph, self.kinds, "table")
        if missing := [node for node in plan.graph.observed if node not in nodes]:
            raise InputError(f"table lacks the column {missing[0]!r}; add it, or declare {missing[0]} latent.")
        if self.n < _MIN_ROWS:
            raise InputError(f"table has {self.n} rows; pass at least {_MIN_ROWS} to estimate mechanisms from.")
        self.values: dict[str, Array] = {}
        self.present: dict[str, Array] = {}  # (n,), boolean
        self.digests: dict[str, bytes] = {}
        for node in nodes:
            kind, columns = self.kinds[node], table[list(self.kinds[node].columns(node))]
            present = columns.notna().all(axis=1).to_numpy()
            if present.sum() < _MIN_ROWS:
                raise InputError(
                    f"Column {columns.columns[0]!r} holds NaN in {int((~present).sum())} of {self.n} rows, which "
                    f"leaves fewer than {_MIN_ROWS}; drop the column, or impute it."
                )
            # Gaps hold a value of another row, and no sample takes them.
            values = kind.read(columns if present.all() else columns.ffill().bfill(), node)
            summary = blake2b(repr(kind).encode(), digest_size=16)
            summary.update(np.ascontiguousarray(kind.codes(values, node)).tobytes())
            summary.update(present.tobytes())
            self.values[node], self.present[node], self.digests[node] = values, present, summary.digest()

    def digest(self, nodes: Sequence[str]) -> bytes:
        return b"".join(self.digests[node] for node in nodes)

    def samples(self, nodes: Sequence[str]) -> dict[str, NodeSample]:
        """Some nodes with their observed parents, on the rows that hold all of them."""
        graph, latent = self.plan.graph, self.plan.graph.latent
        parents = {node: tuple(parent for parent in graph.parents(node) if parent not in latent) for node in nodes}
        values = self.of([name for node in nodes for name in (node, *parents[node])])
        return {node: NodeSample(node, self.kinds[node], parents[node], values, self.kinds) for node in nodes}

    def of(self, nodes: Sequence[str]) -> dict[str, Array]:
        rows = np.logical_and.reduce([self.present[node] for node in nodes])
        if rows.sum() < _MIN_ROWS:
            why = f"Only {int(rows.sum())} of {self.n} rows hold all of {', '.join(nodes)}"
            raise InputError(f"{why}; at least {_MIN_ROWS} are needed, so impute some of the columns.")
        return {node: self.values[node][rows] for node in nodes}

    def notes(self) -> Iterator[str]:
        for node, present in self.present.items():
            if lacking := int((~present).sum()):
                yield f"{node} is missing in {lacking} of {self.n} rows, which it and its children are fitted without."


def _kinds(table: Any, graph: CausalGraph) -> dict[str, Kind]:
    if not isinstance(table, pd.DataFrame):
        raise InputTypeError(f"table must be a pandas DataFrame, got {type(table).__name__}; pass the table.")
    kinds: dict[str, Kind] = {}
    for node in graph.observed:
        if node in table.columns:
            kinds[node] = _column_kind(table[node], node)
        else:
            size = sum(f"{node}[{i}]" in table.columns for i in range(len(table.columns)))
            kinds[node] = Vector(size) if size else Scalar()
    return kinds


def _column_kind(column: Any, node: str) -> Kind:
    if isinstance(column, pd.DataFrame):
        raise InputError(f"table has two columns named {node!r}; drop or rename one of them.")
    if holds_numbers(column):
        if (largest := as_numbers(column).abs().max()) > _LARGEST:
            raise InputError(f"Column {node!r} holds {largest:g}, whose square overflows; rescale it.")
        return Scalar()
    is_categorical = isinstance(column.dtype, pd.CategoricalDtype)
    try:
        seen = column.cat.categories if is_categorical else sorted(column.dropna().unique(), key=str)
    except TypeError as error:
        raise InputError(f"Column {node!r} holds lists or the like; convert them to numbers or labels.") from error
    if len(seen) < 2:
        raise InputError(
            f"Column {node!r} holds {'the one label ' + repr(seen[0]) if len(seen) else 'no label'} in all "
            f"{len(column)} rows, and a causal model cannot tell what would change it; leave it out of the graph, or "
            "pass rows in which it varies."
        )
    occurring = column.nunique()
    if occurring > max(_FEW_LABELS, column.notna().sum() / 2):
        raise InputError(
            f"Column {node!r} has {occurring} different labels in {column.notna().sum()} rows: it looks like free text "
            "or an identifier; leave it out of the graph, or group its values."
        )
    return Categories(seen)


def _recipes(
    plan: LatentPlan, asked: Mapping[str, Any]
) -> tuple[dict[str, tuple[MechanismRecipe, ...] | None], dict[str, VariationalLatent]]:
    """What to try for each observed node that no latent parent makes, None for the defaults; and for latent nodes."""
    plan.graph.known([node for node in asked if node not in plan.absorbed], "mechanisms")
    decoded = {child: latent for latent, children in plan.learned.items() for child in children}
    recipes: dict[str, tuple[MechanismRecipe, ...] | None] = {}
    for node in [node for node in plan.graph.observed if node not in decoded or node in asked]:
        given = asked.get(node)
        if node in decoded:
            why = f"{node} comes about through its latent parent {decoded[node]}"
            raise InputError(f"{why}; give the mechanism to {decoded[node]}.")
        if given is not None and not plan.graph.parents(node):
            raise InputError(f"{node} has no parents to be explained by; leave its mechanism out.")
        several = given if isinstance(given, list | tuple) else [given]
        if not several:
            raise InputError(f"The list of mechanisms for {node} is empty; name at least one, or leave {node} out.")
        recipes[node] = None if given is None else tuple(_recipe(node, recipe) for recipe in several)
    latents = {node: VariationalLatent() if asked.get(node) is None else asked[node] for node in plan.learned}
    for node, recipe in latents.items():
        if not isinstance(recipe, VariationalLatent):
            raise InputTypeError(f"{node} is latent, so its mechanism must be a VariationalLatent, got {recipe!r}.")
    return recipes, latents


def _recipe(node: str, given: Any) -> MechanismRecipe:
    if isinstance(given, VariationalLatent):
        raise InputTypeError(f"{node} is observed, but a VariationalLatent makes latent nodes; draw one as its parent.")
    if isinstance(given, MechanismRecipe):
        return given
    if hasattr(given, "fit"):
        return Multinomial(given) if is_classifier(given) else AdditiveNoise(given)
    raise InputTypeError(
        f"The mechanism of {node} must be a recipe such as AdditiveNoise(), or a scikit-learn estimator, got {given!r}."
    )


@dataclass(frozen=True)
class LatentPlan:
    """A graph without bidirected edges, and the latent nodes that need a law.

    In the graph, latent roots that are one child's noise are gone; nodes that bidirected edges join have one latent
    root, unless all of them are roots otherwise.
    """

    graph: CausalGraph
    absorbed: dict[str, str]  # the latent roots that are gone, with their child
    learned: dict[str, tuple[str, ...]]  # the latent nodes that stay, with their children
    together: tuple[tuple[str, ...], ...] = ()  # roots that bidirected edges join: their joint law is what was seen

    def notes(self) -> Iterator[str]:
        """Say what became of latent nodes and bidirected edges."""
        for latent, child in self.absorbed.items():
            yield f"{latent} is part of the noise of {child}, its only child."
        for latent, children in self.learned.items():
            yield f"{latent} is a latent law learned with {', '.join(children)}; data cannot confirm it."
        for nodes in self.together:
            yield (
                f"{', '.join(nodes)} share hidden causes and have no others: they are drawn together as observed, and "
                "an action on one leaves the others as they are."
            )


def plan_latents(graph: CausalGraph, named: Collection[str]) -> LatentPlan:
    """Decide about latent nodes; ``named`` are those that a user gave a mechanism."""
    graph.dag()  # refuses undirected edges
    graph, together = _without_bidirected(graph, named)
    absorbed: dict[str, str] = {}
    learned: dict[str, tuple[str, ...]] = {}
    learned_by: dict[str, str] = {}
    for latent in sorted(graph.latent):
        if graph.parents(latent):
            raise InputError(
                f"{latent} is latent and has the parent {graph.parents(latent)[0]}; only latent nodes without parents "
                "can be estimated, so measure it, or connect its parents to its children."
            )
        children = graph.children(latent)
        if len(children) == 1 and latent not in named:
            absorbed[latent] = children[0]
        elif children:
            learned[latent] = children
            if shared := [child for child in children if child in learned_by]:
                why = f"{shared[0]} has two latent parents that need a law, {learned_by[shared[0]]} and {latent}"
                raise InputError(f"{why}; draw one latent node for both.")
            learned_by |= dict.fromkeys(children, latent)
    nodes = tuple(node for node in graph.nodes if node not in graph.latent or node in learned)
    edges = tuple(edge for edge in graph.directed if edge[0] in nodes)
    return LatentPlan(CausalGraph(nodes, edges, latent=frozenset(learned)), absorbed, learned, together)


def _without_bidirected(graph: CausalGraph, named: Collection[str]) -> tuple[CausalGraph, tuple[tuple[str, ...], ...]]:
    """Give every set of nodes that bidirected edges join one latent root, or draw it together where it has no causes.

    One latent node for a set is no less general than one for each edge: its numbers can be split among the edges.
    """
    if not graph.bidirected:
        return graph, ()
    together, roots = [], {}
    for joined in nx.connected_components(nx.Graph(graph.bidirected)):
        nodes = tuple(node for node in graph.nodes if node in joined)
        name = f"U({','.join(nodes)})"
        if name not in named and not any(graph.parents(node) or node in graph.latent for node in nodes):
            together.append(nodes)
        else:
            roots[name] = nodes
    edges = [(root, child) for root, children in roots.items() for child in children]
    plain = CausalGraph.from_edges([*graph.directed, *edges], nodes=graph.nodes, latent=[*graph.latent, *roots])
    return plain, tuple(together)
