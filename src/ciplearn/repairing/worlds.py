"""Rows as they would be in other worlds: what A did not cause stays, A is another."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import as_numbers, check_cells, checked_table, holds_numbers
from ciplearn._core.encoding import CategoryColumn, NumberColumn, TableEncoding
from ciplearn._core.errors import FarOutsideWarning, InputError, UnseenLevelsWarning
from ciplearn.estimators.tables import taken_for_possible
from ciplearn.repairing.ratio import Levels, OfNumbers, Ratio
from ciplearn.scm import Scalar, StructuralCausalModel, Units
from ciplearn.scm.kinds import Array, Categories, plain

# Draws of the noise per row, where a row leaves it open.
DRAWS = 4

# Blind draws are the same for all rows, so their error does not average out over rows: more of them, in so many worlds.
_BLIND_DRAWS, _BLIND_WORLDS = 16, 64

# Draws of a vector from p(A), where as many more come from its law given the causes.
_OF_EITHER_LAW = 24

# Imagined numbers are single: rows near the largest of those would have worlds beyond it.
_LARGEST = float(np.finfo(np.float32).max) / 1e3

# Different draws of noise that rows may get; two rows of the same content always get the same.
_PLACES = 509

# Rows that the usual label is counted in, and labels that are named.
_SAMPLED, _NAMED = 500, 3


@dataclass(frozen=True, eq=False)
class Worlds:
    """The worlds x(a_k, u) of rows, with the weights under which the a_k follow p(A), and their ratios w_k.

    Listed values are all there, each with its share. Of a number with causes half of the a_k come from p(A) and half
    from p(a | causes), each weighted by 2 / (1 + w_k): from p(A) alone, few of them would be near the row.
    """

    scm: StructuralCausalModel
    protected: tuple[str, ...]
    inputs: tuple[str, ...]  # the columns that the model reads
    levels: Levels
    ratio: Ratio
    seed: int = 0  # of noise that rows leave open
    unknown: tuple[str, ...] = ()  # nodes that nobody knows when a prediction is made: the outcome
    blind: bool = False  # whether noise that a row leaves open is drawn as if the row said nothing of it

    @property
    def calls(self) -> int:
        """How many imagined rows the model is asked about for each row."""
        return len(self.levels) * (self.draws if self.levels.listed else 1 + self.mixes_two_laws)

    @property
    def draws(self) -> int:
        """Draws of the noise per row, where a row leaves it open."""
        return max(DRAWS, min(_BLIND_DRAWS, _BLIND_WORLDS // len(self.levels))) if self.blind else DRAWS

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that have to be known of a row."""
        return tuple(name for name in self._behind if name not in self.scm.columns(self.unknown_here))

    @property
    def unknown_here(self) -> tuple[str, ...]:
        """Those of the unknown nodes that the causal model has."""
        return tuple(node for node in self.unknown if node in self.scm.graph.nodes)

    @cached_property
    def _behind(self) -> tuple[str, ...]:
        """Columns of what the model reads, of A, of what lies between, and of their causes."""
        graph = self.scm.graph
        read = [node for node in graph.observed if {*self.scm.columns([node])} & {*self.inputs}]
        causes = graph.ancestors([*read, *self._moving, *self.protected])
        known = [node for node in graph.observed if node in causes]
        return tuple(dict.fromkeys([*self.inputs, *self.scm.columns(known), *self.ratio.columns]))

    @cached_property
    def _moving(self) -> tuple[str, ...]:
        """Nodes that differ where one protected node changes alone: others of them may follow it."""
        graph, names = self.scm.graph, {*self.protected}
        following = [node for node in self.protected if graph.ancestors([node]) & (names - {node})]
        return (*self.scm.between(names, [*self.inputs, *self.scm.columns(following)]), *following)

    def units(self, rows: pd.DataFrame, draws: int | None = None, alone: bool = False) -> Units:
        """Find the noise behind rows: the one that fits, or some draws of those that do.

        ``alone``: one protected node may change alone.
        """
        moved = [node for node in self._moving if alone or node not in self.protected]
        rows = rows[[name for name in self._behind if name in rows.columns]]
        units = self.scm.abduct(rows, nodes=moved, random_state=RowNoise(rows, self.seed))
        if units.exact or (draws == 1 and not self.blind):
            return units
        draws = self.draws if self.blind or draws is None else draws
        units = self.scm.abduct(rows, nodes=moved, n_draws=draws, random_state=RowNoise(rows, self.seed))
        return self._blinded(units) if self.blind else units

    def _blinded(self, units: Units) -> Units:
        """Give every row the same draws of the noise that rows leave open: a mean over them tells nothing of it."""
        generator, count = np.random.default_rng(self.seed), len(units.index)
        noise = dict(units.noise)
        for node in sorted(self._open & noise.keys()):
            noise[node] = np.concatenate([self.scm.mechanisms[node].draw(units.draws, generator)] * count)
        return replace(units, noise=noise)

    def determined_by(self, rows: pd.DataFrame) -> bool:
        """Whether what is known when a prediction is made tells the noise behind a row."""
        try:
            return self.units(rows[list(self.columns)], draws=1).exact
        except InputError:
            # The outcome acts on what is read, and nobody knows it yet.
            return False

    @cached_property
    def _open(self) -> frozenset[str]:
        """Nodes that A moves and whose noise a row does not tell: labels and counts above all."""
        rows, shown = self._drawn.head(2), [name for name in self._behind if name in self._drawn.columns]
        closed = [node for node in self._moving if self.scm.abduct(rows[shown], nodes=[node], random_state=0).exact]
        return frozenset(self._moving) - set(closed)

    def under(self, units: Units, setting: Mapping[str, Any]) -> pd.DataFrame:
        """Return the units' rows under a setting of A, or of some of it."""
        return self.scm.do(setting).predict(units, self.seed)

    def setting(self, values: pd.DataFrame) -> dict[str, Any]:
        """Read columns of A, one row for all or one per row, as an action."""
        action = {}
        for node in self.protected:
            kind = self.scm.kinds[node]
            columns = values[list(kind.columns(node))]
            vector = columns.shape[1] > 1
            array = np.asarray(plain(columns, kind), dtype=float) if vector else plain(columns.iloc[:, 0], kind)
            action[node] = array[0] if len(values) == 1 else array
        return action

    def imagined(self, units: Units) -> tuple[pd.DataFrame, Array]:  # n K draws rows, (n, K)
        """Return all worlds of the units, those of one row together, with their weights s_k.

        The ratio is not yet taken into account. Under a listed value all draws of the noise are shown. Values that are
        drawn are many: each is shown with one.
        """
        # Half of the worlds from either law; listed values and values without causes need no second half.
        levels = self.levels.some(_OF_EITHER_LAW) if self.mixes_two_laws else self.levels
        near = self._near(units, len(levels)) if self.mixes_two_laws else []
        n, count = len(units.index), len(levels) + len(near)
        setting = self.setting(levels.values.iloc[np.tile(np.arange(len(levels)), n)])
        if near:
            node = self.protected[0]
            drawn = setting[node].reshape(n, len(levels), *setting[node].shape[1:])
            both = np.concatenate([drawn, np.stack(near, axis=1)], axis=1)
            setting = {node: both.reshape(n * count, *both.shape[2:])}
        draw = None if self.levels.listed else np.tile(np.arange(count) % units.draws, n)
        shown = units.take(np.repeat(np.arange(n), count), draw)
        shares = np.array([*levels.shares, *(1 / len(near) for _ in near)])
        return self._rounded(self.under(shown, setting)), np.broadcast_to(shares, (n, count))

    def _rounded(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Take imagined numbers in single precision: a world reached from two others must not differ by rounding.

        Trees split at values of rows, so that a last digit decides more often than by chance.
        """
        moved = self.scm.columns(self.scm.between(self.protected, self.inputs))
        numbers = [name for name in moved if frame[name].dtype == np.float64]
        return frame.astype(dict.fromkeys(numbers, np.float32)).astype(dict.fromkeys(numbers, np.float64))

    @property
    def mixes_two_laws(self) -> bool:
        """Whether half of the worlds are drawn beside the rows' own causes."""
        return isinstance(self.ratio, OfNumbers)

    def _near(self, units: Units, count: int) -> list[Array]:  # (n,) or (n, d) each
        """Values of A from its law given the rows' causes: of a number quantiles in equal steps."""
        node = self.protected[0]
        mechanism = self.scm.mechanisms[node]
        parents = {name: units.values[name][:: units.draws] for name in self.scm.graph.parents(node)}
        if isinstance(self.scm.kinds[node], Scalar):
            quantiles = mechanism.quantiles(parents, (np.arange(count) + 0.5) / count)
            if quantiles is not None:
                return list(quantiles.T)
        # The same noise for every row: a row is predicted alike whichever rows stand beside it.
        noise = mechanism.draw(count, np.random.default_rng(self.seed))
        n = len(units.index)
        return [mechanism.evaluate(parents, np.repeat(noise[k : k + 1], n, axis=0)) for k in range(count)]

    def checked(self, X: Any) -> pd.DataFrame:
        """Return the columns that are needed of rows, or say which is missing."""
        if hasattr(X, "collect") or hasattr(X, "to_pandas"):
            # A frame of another library, which is told what makes it one of pandas.
            X = checked_table(X, "X")
        if not isinstance(X, pd.DataFrame):
            raise InputError(
                f"The repaired model reads a DataFrame, got {type(X).__name__}; pass rows with their columns."
            )
        missing = [column for column in self.columns if column not in X.columns]
        if missing:
            raise InputError(
                f"The rows lack {missing[0]!r}; the repaired model reads {', '.join(self.columns)}, so add the column."
            )
        rows = checked_table(X[list(self.columns)], "X")
        for column in rows.columns:
            check_cells(rows[column])
            if holds_numbers(rows[column]) and (largest := as_numbers(rows[column]).abs().max()) > _LARGEST:
                raise InputError(
                    f"Column {column!r} holds numbers up to {largest:g} in size, too large for single precision, in "
                    "which worlds are imagined; check its unit."
                )
        return self._with_possible_numbers(self._with_known_labels(rows))

    def _with_known_labels(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Take a label that the causal model never saw for the usual one, in every world alike."""
        for node, kind in self.scm.kinds.items():
            if node in self.protected or node not in rows.columns or not isinstance(kind, Categories):
                continue
            new = rows[node].notna() & ~rows[node].isin(kind.levels)
            if not new.any():
                continue
            labels = rows[node].astype(object)
            usual, named = self._usual[node], ", ".join(map(repr, labels[new].unique()[:_NAMED]))
            warnings.warn(
                f"Column {node!r} holds levels that training never saw, in {int(new.sum())} rows: {named}; they are "
                f"predicted as the usual level, {usual!r}.",
                UnseenLevelsWarning,
                stacklevel=4,
            )
            rows = rows.assign(**{node: labels.mask(new, usual)})
        return rows

    def impossible(self, rows: pd.DataFrame) -> dict[str, Array]:
        """Return, per column, which rows hold a number that the causal model holds for impossible: negative amounts."""
        impossible: dict[str, Array] = {}
        for node, mechanism in self.scm.mechanisms.items():
            # Quantiles have the link of what they lie around.
            link: Any = getattr(getattr(mechanism, "base", None) or mechanism, "link", None)
            if node in rows.columns and hasattr(link, "low"):
                values = self.scm.kinds[node].read(rows, node)
                beyond = (values <= link.low) | (values >= getattr(link, "high", np.inf))
                impossible |= {node: beyond} if beyond.any() else {}
        return impossible

    def _with_possible_numbers(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Take an impossible number for the nearest that the causal model draws."""
        for node, beyond in self.impossible(rows).items():
            values = rows[node].to_numpy(dtype=float)
            nearest = np.clip(values, self._drawn[node].min(), self._drawn[node].max())
            warnings.warn(f"{taken_for_possible(node, int(beyond.sum()))}.", FarOutsideWarning, stacklevel=4)
            rows = rows.assign(**{node: np.where(beyond, nearest, values)})
        return rows

    @cached_property
    def encoding(self) -> TableEncoding:
        """The labels and the range of each column that is known of a row, as the causal model draws them."""
        columns: list[CategoryColumn | NumberColumn] = []
        for name in self.columns:
            kind = self.scm.kinds.get(name)
            if isinstance(kind, Categories):
                columns.append(CategoryColumn.of(pd.Series(list(kind.levels), name=name)))
            elif name in self._drawn and holds_numbers(self._drawn[name]):
                columns.append(NumberColumn.of(self._drawn[name]))
        return TableEncoding(tuple(columns))

    @cached_property
    def _drawn(self) -> pd.DataFrame:
        return self.scm.sample(_SAMPLED, random_state=self.seed)

    @cached_property
    def _usual(self) -> pd.Series:
        return self._drawn.mode().iloc[0]


class RowNoise(np.random.Generator):
    """A generator whose arrays hold, for each of n rows, numbers that depend on that row alone.

    An array whose length is a multiple of n holds several numbers per row, those of one row together. The laws that
    mechanisms draw from are covered; others are drawn as usual.
    """

    def __init__(self, rows: pd.DataFrame, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        # Whatever types hold them: 1 and 1.0 are the same number.
        rows = rows.assign(**{name: as_numbers(rows[name]) for name in rows.columns if holds_numbers(rows[name])})
        self._rows = (pd.util.hash_pandas_object(rows, index=False).to_numpy() % _PLACES).astype(np.int64)

    def _by_row(self, law: Any, size: Any, *parameters: float) -> Any:
        shape = (size,) if isinstance(size, int | np.integer) else size
        n = len(self._rows)
        if not shape or not n or shape[0] % n:
            return law(*parameters, size=size)
        table: Array = law(*parameters, size=(_PLACES, shape[0] // n, *shape[1:]))
        return table[self._rows].reshape(shape)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Gumbel draws."""
        return self._by_row(super().gumbel, size, loc, scale)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform draws."""
        return self._by_row(super().uniform, size, low, high)

    def integers(self, low: Any, high: Any = None, size: Any = None, **more: Any) -> Any:  # type: ignore[override]
        """Whole numbers."""
        law: Any = super().integers
        return self._by_row(lambda *ends, size: law(*ends, size=size, **more), size, low, high)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal draws."""
        return self._by_row(super().normal, size, loc, scale)

    def standard_normal(self, size: Any = None, **more: Any) -> Any:  # type: ignore[override]
        """Normal draws."""
        return self.normal(size=size)
