"""The values of A, and w = p(a | u) / p(a): how much more often a value occurs beside these causes than elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from scipy.stats import norm

from ciplearn._core.columns import holds_numbers
from ciplearn.causal import CausalGraph
from ciplearn.scm import Categories, EstimatedModel, StructuralCausalModel, Vector, fit_scm
from ciplearn.scm.kinds import Array

# More joint values than these are not listed; of a number so many quantiles stand for all, beside labels so many in all
# and at least so many of each label, else so many draws.
_MOST_LISTED, _QUANTILES, _BESIDE_LABELS, _OF_EACH_LABEL, _DRAWN = 16, 16, 24, 4, 48


@dataclass(frozen=True, eq=False)
class Levels:
    """Joint values of A with their shares: all of them where they are few, else some that stand for all.

    Those of a number are its quantiles in equal steps, beside each label that is protected too; of several numbers rows
    drawn without repetition.
    """

    values: pd.DataFrame  # one row per joint value, one column per protected column
    shares: Array  # (K,)
    listed: bool  # whether these are all that occur

    @classmethod
    def of(cls, table: pd.DataFrame, generator: np.random.Generator) -> Levels:
        """Read them off rows of the protected columns."""
        groups = table.groupby(list(table.columns), sort=True, observed=True).size()
        if len(groups) <= _MOST_LISTED:
            values = groups.index.to_frame(index=False)
            # Labels keep the kind that the table gave them.
            values = values.astype({name: table[name].dtype for name in table.columns})
            return cls(values, groups.to_numpy() / len(table), True)
        labels = [name for name in table.columns if not holds_numbers(table[name])]
        parts = [part for _, part in table.groupby(labels, observed=True)] if labels else [table]
        if table.shape[1] - len(labels) != 1 or len(parts) * _OF_EACH_LABEL > _BESIDE_LABELS:
            drawn = table.iloc[generator.permutation(len(table))[:_DRAWN]]
            return cls(drawn.reset_index(drop=True), np.full(len(drawn), 1 / len(drawn)), False)
        count = _BESIDE_LABELS // len(parts) if labels else _QUANTILES
        number = next(name for name in table.columns if name not in labels)
        steps = (np.arange(count) + 0.5) / count
        numbers = [part[number].quantile(steps, "nearest").to_numpy() for part in parts]
        drawn = pd.concat(
            [part.iloc[[0] * count].assign(**{number: values}) for part, values in zip(parts, numbers, strict=True)]
        )
        shares = np.repeat([len(part) / len(table) / count for part in parts], count)
        return cls(drawn.reset_index(drop=True), shares, False)

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, table: pd.DataFrame) -> Array:  # (n,)
        """Return which of the listed values each row has; -1 for a value that is not listed."""
        return np.asarray(self._index(self.values).get_indexer(self._index(table)))

    def _index(self, table: pd.DataFrame) -> pd.Index:
        """The rows as keys: numbers as numbers, whatever kind of number they are, labels as text."""
        keys = [
            table[name].to_numpy(dtype=float) if holds_numbers(self.values[name]) else table[name].astype(str)
            for name in self.values.columns
        ]
        return pd.MultiIndex.from_arrays(keys) if len(keys) > 1 else pd.Index(keys[0])

    def some(self, count: int) -> Levels:
        """Return at most so many of values that stand for others, evenly chosen; listed ones as they are."""
        if self.listed or len(self) <= count:
            return self
        places = np.linspace(0, len(self) - 1, count).round().astype(int)
        shares = self.shares[places] / self.shares[places].sum()
        return Levels(self.values.iloc[places].reset_index(drop=True), shares, False)


# Ratios beyond these are not told apart: so rare a pair is worth no row, so common a one is worth all.
_SMALLEST, _LARGEST = 1e-4, 1e4

# Levels of a law whose quantiles say its density; the law of their ends goes on as a normal one does.
_KNOTS = np.array([0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99])

# Rows whose causes stand for all, the points at which the law of one number is kept, and rows that a classifier reads.
_CAUSES, _CAUSES_OF_VECTORS, _GRID, _PAIRS = 200, 60, 200, 4000

_LEVEL, _SEEN = "level of the protected variables", "pair was seen"


class Ratio(ABC):
    """W as a function of the columns of A and of what comes before it."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The columns that are read beside those of A, or among them."""

    @abstractmethod
    def __call__(self, table: pd.DataFrame) -> Array:  # (n,)
        """Return w of each row."""

    def beside(self, rows: pd.DataFrame) -> Callable[[pd.DataFrame], Array]:
        """Return w for worlds of some rows, which all have the causes that the rows have."""
        return self


@dataclass(frozen=True)
class NoCauses(Ratio):
    """W = 1: nothing that is known comes before A."""

    @property
    def columns(self) -> list[str]:
        """None."""
        return []

    def __call__(self, table: pd.DataFrame) -> Array:
        """Return ones."""
        return np.ones(len(table))


@dataclass(frozen=True, eq=False)
class OfLevels(Ratio):
    """W = p(level | causes) / p(level), for levels of A that are listed."""

    levels: Levels
    model: EstimatedModel

    @property
    def columns(self) -> list[str]:
        """Those of the causes."""
        return self.model.columns(self.model.graph.parents(_LEVEL))

    def __call__(self, table: pd.DataFrame) -> Array:
        """Ask the classifier of levels."""
        codes = self.levels.codes(table)
        parents, known = _values(self.model, table, self.model.graph.parents(_LEVEL)), np.maximum(codes, 0)
        logs = np.asarray(self.model.mechanisms[_LEVEL].log_density(parents, known.astype(str).astype(object)))
        # A value that no row had beside any causes has no ratio to speak of: it counts as rare.
        return _within(np.where(codes < 0, -np.inf, logs - np.log(self.levels.shares[known])))


@dataclass(frozen=True, eq=False)
class OfNumbers(Ratio):
    """W = p(a | causes) / p(a) for one node of numbers, by its mechanism; p(a) is the mean of the first over rows.

    Where the mechanism knows quantiles but no density, the density is that of the piecewise normal law through them.
    """

    scm: StructuralCausalModel
    node: str
    causes: pd.DataFrame
    grid: tuple[Array, Array] | None = None

    @classmethod
    def of(
        cls, scm: StructuralCausalModel, node: str, table: pd.DataFrame, generator: np.random.Generator
    ) -> OfNumbers:
        """Keep some rows of the causes, and the law of a single number at some points."""
        count = _CAUSES_OF_VECTORS if isinstance(scm.kinds[node], Vector) else _CAUSES
        kept = table.iloc[generator.permutation(len(table))[:count]]
        law = cls(scm, node, kept[scm.columns(scm.graph.parents(node))].reset_index(drop=True))
        if isinstance(scm.kinds[node], Vector):
            return law
        values = table[node].to_numpy(dtype=float)
        points = np.linspace(values.min() - values.std(), values.max() + values.std(), _GRID)
        return cls(scm, node, law.causes, (points, law._marginal(points)))

    @property
    def columns(self) -> list[str]:
        """Those of the parents."""
        return list(self.causes.columns)

    def __call__(self, table: pd.DataFrame) -> Array:
        """Divide the two densities."""
        return self.beside(table)(table)

    def beside(self, rows: pd.DataFrame) -> Callable[[pd.DataFrame], Array]:
        """Look up the law given the rows' causes once."""
        density = self._density(rows)

        def ratio(table: pd.DataFrame) -> Array:
            values = self.scm.kinds[self.node].read(table, self.node)
            marginal = self._marginal(values) if self.grid is None else np.interp(values, *self.grid)
            return _within(density(values, np.arange(len(rows))) - marginal)

        return ratio

    def _density(self, rows: pd.DataFrame) -> Callable[[Array, Array], Array]:  # (n,) or (n, d), (n,) -> (n,)
        """Return the log density of values beside the causes of rows, which are named by their places."""
        parents, mechanism = _values(self.scm, rows, self.scm.graph.parents(self.node)), self.scm.mechanisms[self.node]
        quantiles = mechanism.quantiles(parents, _KNOTS)
        if quantiles is None:
            return lambda values, places: np.asarray(
                mechanism.log_density({name: array[places] for name, array in parents.items()}, values)
            )
        table = quantiles.reshape(len(rows), -1, len(_KNOTS))
        return lambda values, places: _normal_between(table[places], values.reshape(len(values), -1))

    def _marginal(self, values: Array) -> Array:  # (n,)
        n, count = len(values), len(self.causes)
        if n > 1 and (values == values[0]).all():
            return np.repeat(self._marginal(values[:1]), n)
        density, every = self._density(self.causes), np.arange(count)
        # The shorter of values and causes is walked, the longer one is asked at once.
        if n < count:
            logs = np.stack([density(np.repeat(values[[place]], count, axis=0), every) for place in range(n)], axis=1)
        else:
            logs = np.stack([density(values, np.full(n, place)) for place in range(count)])
        return np.asarray(logsumexp(logs, axis=0) - np.log(count))


@dataclass(frozen=True, eq=False)
class OfPairs(Ratio):
    """W = odds that a pair of A and its causes was seen rather than shuffled."""

    model: EstimatedModel

    @property
    def columns(self) -> list[str]:
        """Those of the pairs."""
        return self.model.columns(self.model.graph.parents(_SEEN))

    def __call__(self, table: pd.DataFrame) -> Array:
        """Ask the classifier of pairs."""
        parents = _values(self.model, table, self.model.graph.parents(_SEEN))
        mechanism = self.model.mechanisms[_SEEN]
        labels = (np.full(len(table), label, dtype=object) for label in ("1", "0"))
        seen, shuffled = (np.asarray(mechanism.log_density(parents, each)) for each in labels)
        return _within(seen - shuffled)


def causes_of(graph: CausalGraph, protected: tuple[str, ...], outcome: str) -> tuple[str, ...]:
    """Return the known nodes beside which A has another law: its parents, and what shares a hidden cause with it.

    Nobody knows the outcome when a prediction is made, so it is hidden, too.
    """
    unknown = {outcome, *graph.latent}
    near = {parent for node in protected for parent in (*graph.parents(node), *graph.spouses(node))}
    hidden = {parent for node in protected for parent in graph.parents(node)} & unknown
    near |= {each for node in hidden for each in (*graph.parents(node), *graph.spouses(node), *graph.children(node))}
    return tuple(n for n in graph.topological_order() if n in near - unknown - graph.descendants(protected))


def density_ratio(
    scm: StructuralCausalModel,
    graph: CausalGraph,
    protected: tuple[str, ...],
    outcome: str,
    levels: Levels,
    table: pd.DataFrame,
    generator: np.random.Generator,
) -> Ratio:
    """Estimate w: by the mechanism of a number, by a classifier of levels, or by one of pairs seen and shuffled."""
    causes = causes_of(graph, protected, outcome)
    if not causes:
        return NoCauses()
    columns = scm.columns(causes)
    # The causal model may know labels that no row here has.
    labels = {name: kind.levels for name in causes if isinstance(kind := scm.kinds[name], Categories)}
    table = table.astype({name: pd.CategoricalDtype(list(levels)) for name, levels in labels.items()})
    node = protected[0]
    seed = int(generator.integers(2**31))
    if levels.listed:
        rows = table[columns].assign(**{_LEVEL: levels.codes(table).astype(str)})
        law = CausalGraph.from_edges([(name, _LEVEL) for name in causes])
        return OfLevels(levels, fit_scm(law, rows, random_state=seed))
    own_law = len(protected) == 1 and set(causes) == set(scm.graph.parents(node))
    if own_law and not isinstance(scm.kinds[node], Categories) and _has_density(scm, node, table):
        return OfNumbers.of(scm, node, table, generator)
    seen = table.iloc[generator.permutation(len(table))[:_PAIRS]].reset_index(drop=True)
    values, beside = seen[scm.columns(protected)], seen[columns]
    seen = pd.concat([values, beside], axis=1)
    shuffled = pd.concat([values.iloc[generator.permutation(len(seen))].reset_index(drop=True), beside], axis=1)
    pairs = pd.concat([seen, shuffled], ignore_index=True)
    pairs[_SEEN] = np.repeat(["1", "0"], len(seen))
    edges = [(name, _SEEN) for name in (*protected, *causes)]
    return OfPairs(fit_scm(CausalGraph.from_edges(edges), pairs, random_state=seed))


def _has_density(scm: StructuralCausalModel, node: str, table: pd.DataFrame) -> bool:
    parents, mechanism = _values(scm, table.head(2), scm.graph.parents(node)), scm.mechanisms[node]
    values = scm.kinds[node].read(table.head(2), node)
    return mechanism.log_density(parents, values) is not None or mechanism.quantiles(parents, _KNOTS) is not None


def _values(scm: StructuralCausalModel, table: pd.DataFrame, nodes: tuple[str, ...]) -> dict[str, Array]:
    return {node: scm.kinds[node].read(table, node) for node in nodes}


def _normal_between(quantiles: Array, values: Array) -> Array:  # (n, d, knots), (n, d) -> (n,)
    """Log density of the law in which z, normal, is linear in the value between quantiles, and beyond them."""
    z = norm.ppf(_KNOTS)
    widths = np.maximum(np.diff(quantiles, axis=2), 1e-9 * (1 + np.abs(quantiles[..., 1:])))
    place = np.clip((quantiles < values[..., None]).sum(axis=2) - 1, 0, len(_KNOTS) - 2)[..., None]
    slope = np.take_along_axis(np.diff(z) / widths, place, axis=2)[..., 0]
    start = np.take_along_axis(quantiles, place, axis=2)[..., 0]
    return np.asarray((norm.logpdf(z[place[..., 0]] + slope * (values - start)) + np.log(slope)).sum(axis=1))


def _within(logs: Array) -> Array:
    return np.asarray(np.exp(np.clip(logs, np.log(_SMALLEST), np.log(_LARGEST))))
