"""Rows in blocks, rows drawn at random, which rows are copies, and which have trained; random states at the doorway.

A row's digest is the same for the same values, however a file writes them. Rows of a few categories agree by chance,
and are no copies. How often chance repeats a row is told by the rows that agree with it in all columns but one: as
often as these, times the frequency of its value in that column.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import as_numbers, distinct_labels, holds_numbers, in_kinds, written_number
from ciplearn._core.errors import InputError, InputTypeError

ROWS_IN_CACHE = 4096  # what a small network's layers return for so many rows stays in cache
_BLOCK = 1 << 18  # numbers whose keys are looked at together
_LEAST_DIFFERENT = 20  # of fewer different rows all may agree by chance
RARE = 0.3  # rows that chance repeats less often are told by their values

# Rows that trained are known by the smallest digests of all, at most so many of 8 bytes: a sample that does not depend
# on the file, by which of a billion rows one in a thousand can be told.
_MOST = 1 << 20

_LAST = np.uint64(2**64 - 1)
_MOST_SEEDS = 2**31 - 1
Array = np.ndarray[Any, Any]
RandomState = int | np.random.Generator | np.random.RandomState | None


def alike(columns: Sequence[Any], n: int) -> tuple[Array, Array]:  # (n,) or (n, d) each -> (m,), (n,)
    """Return the first row of each kind of row, and of which of these kinds each row is."""
    kinds, count = np.zeros(n, dtype=np.int64), 1
    single = [one for each in columns for one in (each.T if each.ndim == 2 else [each])]
    # Fractions first: often one column of them tells all rows apart, and no other is looked at.
    for column in sorted(single, key=lambda one: getattr(one.dtype, "kind", "O") != "f"):
        codes, values = pd.factorize(column, use_na_sentinel=False)
        if count > 1:
            codes, values = pd.factorize(kinds * len(values) + codes)  # both are below the number of rows
        kinds, count = codes, len(values)
        if count == n:
            break
    first = np.empty(kinds.max(initial=-1) + 1, dtype=np.int64)
    first[kinds[::-1]] = np.arange(len(kinds))[::-1]
    return first, kinds


def row_blocks(n: int, size: int = ROWS_IN_CACHE) -> list[slice]:
    """Cut n rows into blocks of ``size``, the last of which also takes up to half a block more, or half a block less.

    Matrix products round by a row's place in its block, and in another way where rows are few. Blocks of a power of two
    of rows, and none that is small, answer as all rows at once do.
    """
    starts = [size * number for number in range(max(1, round(n / size)))]
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], n], strict=True)]


def keys(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Scramble whole numbers of 64 bits, no two into the same one: the finaliser of SplitMix64 [steele2014]."""
    scrambled = numbers + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    scrambled = (scrambled ^ (scrambled >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    scrambled = (scrambled ^ (scrambled >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return scrambled ^ (scrambled >> np.uint64(31))


def sampled_numbers(n: int, size: int, seed: int = 0) -> np.ndarray:
    """Return some of the numbers 0, ..., n − 1, in the order in which they are drawn."""
    best = np.empty(0, dtype=np.uint64)
    for start in range(0, n, _BLOCK):
        numbers = np.concatenate([best, np.arange(start, min(start + _BLOCK, n), dtype=np.uint64)])
        best = numbers[np.argpartition(keys(numbers, seed), size)[:size]] if len(numbers) > size else numbers
    return best[np.argsort(keys(best, seed))].astype(np.int64)


class RowsDrawn:
    """The rows whose numbers have the smallest keys.

    ``size``: the most rows to keep. ``n``: rows that went by.
    """

    def __init__(self, size: int) -> None:
        self.size, self.n = size, 0
        self._pieces: list[pd.DataFrame] = []
        self._held = 0

    def update(self, rows: pd.DataFrame) -> None:
        """Look at rows, indexed by their numbers."""
        self.n += len(rows)
        self._add(rows)

    def merge(self, other: RowsDrawn) -> None:
        """Take in what was drawn from other rows."""
        self.n += other.n
        for piece in other._pieces:
            self._add(piece)

    def finalise(self) -> pd.DataFrame:
        """Return what was drawn, in the order of the numbers."""
        self._trim()
        return pd.concat(self._pieces).sort_index() if self._pieces else pd.DataFrame()

    def _add(self, rows: pd.DataFrame) -> None:
        if not len(rows):
            return
        self._pieces.append(rows)
        self._held += len(rows)
        # Half as much again: trimming copies, and should be rare.
        if self._held > 1.5 * self.size:
            self._trim()

    def _trim(self) -> None:
        if self._held <= self.size:
            return
        numbers = np.concatenate([piece.index.to_numpy() for piece in self._pieces]).astype(np.uint64)
        drawn = keys(numbers, seed=0)  # the same rows whoever draws them
        limit = np.partition(drawn, self.size)[self.size]
        kept = np.split(drawn < limit, np.cumsum([len(piece) for piece in self._pieces])[:-1])
        self._pieces = [piece[which] for piece, which in zip(self._pieces, kept, strict=True) if which.any()]
        self._held = sum(map(len, self._pieces))


def column_digests(table: pd.DataFrame, names: Sequence[str]) -> Array:  # (n, columns)
    """Return a number per cell, the same for the same value of a column; rows are told by their sum."""
    columns = [keys(_cells(table[name]), number + 1) for number, name in enumerate(names)]
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), dtype=np.uint64)


def row_digests(table: pd.DataFrame, names: Sequence[str]) -> Array:  # (n,)
    """Return a number per row, the same for the same values in the named columns."""
    return column_digests(table, names).sum(axis=1)


def chance_repeats(cells: Array) -> Array:  # (n, columns) -> (n,)
    """Return how often chance would bring each row again, among as many rows as there are different ones.

    ``cells``: of `column_digests`.
    """
    totals, first, inverse = np.unique(cells.sum(axis=1), return_index=True, return_inverse=True)
    different = cells[first]
    expected = np.full(len(different), np.inf if len(different) < _LEAST_DIFFERENT else 0.0)
    for column in different.T:
        counts, held = _counts(column)
        # A value that stands once comes again as often as values that stand twice say (Good and Turing).
        of_one = min(1.0, 2 * (held == 2).sum() / max(1, (held == 1).sum()))
        others = _counts(totals - column)[0] - 1
        expected = np.maximum(expected, others * np.maximum(counts - 1, of_one) / len(different))
    return expected[inverse]


def beyond_chance(agreeing: int, expected: float) -> bool:
    """Whether rows agree more often than chance explains, which is known up to a factor of two."""
    return agreeing > 2 * expected + 3 * np.sqrt(expected)


def copy_groups(table: pd.DataFrame) -> Array:  # (n,)
    """Return a number per row: that of the first row that it is a copy of, its own where it is none."""
    cells = column_digests(table, list(table.columns))
    alone = np.arange(len(cells))
    _, first, inverse = np.unique(cells.sum(axis=1), return_index=True, return_inverse=True)
    if len(first) == len(cells):
        return alone
    expected = chance_repeats(cells)
    rare = expected < RARE
    groups = np.where(rare, first[inverse], alone)
    # One of two rows that agree by chance is counted.
    return groups if beyond_chance((groups != alone).sum(), expected[first][rare[first]].sum() / 2) else alone


def _counts(values: Array) -> tuple[Array, Array]:
    """Return how often each value stands, value by value of the array, and of the different ones."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return counts[inverse], counts


def _cells(column: pd.Series) -> Array:  # (n,)
    # Dates, lists, numbers beyond 2**53: refused where the column is used, and text here.
    with suppress(InputError):
        if holds_numbers(column):
            # In single precision, in which networks compute and files may keep them; 0 and -0 are the same.
            with np.errstate(over="ignore"):
                numbers = as_numbers(column).to_numpy().astype(np.float32) + np.float32(0)
            numbers[np.isnan(numbers)] = np.nan
            return numbers.view(np.uint32).astype(np.uint64)
    labels, places = distinct_labels(column)
    hashed = [hashlib.blake2b(_plain(label).encode("utf-8", "replace"), digest_size=8).digest() for label in labels]
    return np.frombuffer(b"".join(hashed), dtype="<u8").astype(np.uint64)[places]


def _plain(label: str) -> str:
    """Return a label so that codes read the same however a program writes them: ``01`` and ``1.0`` as ``1``."""
    if not written_number(label):
        return label
    whole, _, fraction = label.lstrip("+-").partition(".")
    bare = ".".join(part for part in (whole.lstrip("0") or "0", fraction.rstrip("0")) if part)
    return f"-{bare}" if label.startswith("-") and bare != "0" else bare


@dataclass(frozen=True, eq=False)
class TrainedRows:
    """Digests of the rows that trained."""

    columns: tuple[str, ...]  # that the digests are of
    told: Array  # sorted digests of rows that chance hardly repeats
    common: Array  # sorted digests of others
    chance: float  # the share of fresh rows that agree with one of the former by chance
    limit: np.uint64 = _LAST  # rows with larger digests were not kept

    @classmethod
    def of(cls, columns: tuple[str, ...], digests: Array, repeats: Array) -> TrainedRows:
        """Keep the digests of rows, all or a sample, that chance repeats so often."""
        rare, (_, first) = repeats < RARE, np.unique(digests, return_index=True)
        chance = float(np.where(rare, repeats, 0)[first].mean()) if len(first) else 0.0
        limit = _LAST if len(digests) <= _MOST else np.partition(digests, _MOST)[_MOST]
        kept = digests <= limit
        return cls(columns, np.sort(digests[kept & rare]), np.sort(digests[kept & ~rare]), chance, limit)

    def among(self, digests: Array) -> tuple[Array, Array]:
        """Return which rows of a table trained, and of which it can be told.

        A row that chance hardly repeats trained if one like it did, unless chance explains how many there are. As many
        other rows trained as did, if the table holds all that trained; half of them if it holds half of the former.
        """
        trained, told = np.isin(digests, self.told), digests <= self.limit
        if not beyond_chance(trained.sum(), self.chance * told.sum()):
            return np.zeros(len(digests), dtype=bool), told
        share = np.isin(self.told, digests).mean()
        order = np.argsort(digests, kind="stable")
        ranked = digests[order]
        place = np.arange(len(digests)) - np.searchsorted(ranked, ranked)
        like = np.searchsorted(self.common, ranked, "right") - np.searchsorted(self.common, ranked)
        trained[order] |= place < np.round(share * like)
        return trained, told

    def as_bytes(self) -> bytes:
        """Return a line of JSON, and the digests."""
        head = {"columns": self.columns, "told": len(self.told), "chance": self.chance, "limit": int(self.limit)}
        return json.dumps(head).encode() + b"\n" + np.concatenate([self.told, self.common]).astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> TrainedRows:
        """Read them back; a ValueError, KeyError or TypeError where they are damaged."""
        line, _, rest = content.partition(b"\n")
        head, both = json.loads(line), np.frombuffer(rest, dtype="<u8").astype(np.uint64)
        if not all(isinstance(name, str) for name in head["columns"]):
            raise ValueError(head["columns"])
        told, common = np.split(both, [head["told"]])
        return cls(tuple(head["columns"]), told, common, float(head["chance"]), np.uint64(head["limit"]))


def held_out_rows(n_rows: int, share: float, seed: int, copies: Array | None = None) -> Array:
    """Places in the file that are kept from training: always the same for the same file, share and seed.

    Copies of a row, which have the same number, stay together.
    """
    order = np.random.default_rng(seed).permutation(n_rows)
    return np.sort(split_together(order, round(share * n_rows), np.arange(n_rows) if copies is None else copies)[0])


def split_together(order: Array, count: int, copies: Array) -> tuple[Array, Array]:
    """Return about so many of the first rows of an order, and the others; no row has a copy on the other side.

    ``copies``: of `copy_groups`.
    """
    if not len(order):
        return order, order
    _, first, group = np.unique(copies[order], return_index=True, return_inverse=True)
    together = np.argsort(first[group], kind="stable")
    ends = np.flatnonzero(np.diff(first[group][together], prepend=-1, append=-1))
    # Neither side is empty where both are wanted.
    inner = ends[1:-1] if 0 < count < len(order) and len(ends) > 2 else ends
    before, after = np.split(order[together], [inner[np.abs(inner - count).argmin()]])
    return before, after


def digested(table: pd.DataFrame, kinds: Mapping[str, str]) -> tuple[Array, Array]:
    """Return the digest of each row over some columns, and how often chance would bring it again."""
    cells = column_digests(in_kinds(table, kinds, "the table"), list(kinds))
    return cells.sum(axis=1), chance_repeats(cells)


def smallest(digests: Array) -> Array:
    """Return different digests, of many those that `TrainedRows` keeps."""
    return np.unique(digests)[: _MOST + 1]


class RowsSought:
    """The rows of a table, as it goes by, sought among those that trained; `n_trained` is known when all went by."""

    def __init__(self, known: TrainedRows | None) -> None:
        self.known, self.n_trained = known, 0
        self._places = [np.empty(0, dtype=np.int64)]
        self._digests = [np.empty(0, dtype=np.uint64)]

    def update(self, rows: pd.DataFrame) -> None:
        """Look at rows, indexed by their places."""
        self._places.append(rows.index.to_numpy())
        if self.known is not None:
            self._digests.append(row_digests(rows, self.known.columns))

    def fresh(self) -> tuple[Array, str]:
        """Return the places of the rows that may judge, and what is known of them, in words."""
        places = np.concatenate(self._places)
        if self.known is None:
            return places, ", which is not the training table"
        trained, told = self.known.among(np.concatenate(self._digests))
        self.n_trained = int((trained & told).sum())
        if not self.n_trained:
            return places, ", none of which trained"
        if told.all():
            return places[~trained], f": {self.n_trained} trained, and are left out"
        # Which of the others trained is not known, and some will have.
        return places[told & ~trained], f": of {told.sum()} that can be told {self.n_trained} trained, the others judge"


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a Generator as it is, or a new one seeded by a whole number, a draw from a RandomState, or fresh entropy.

    Numpy's global state is neither read nor changed.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(_seed_or_none(random_state))


def as_seed(random_state: Any) -> int:
    """Return a whole number below 2**31, for generators that numpy does not make: drawn as `as_generator` has it."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_MOST_SEEDS))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_MOST_SEEDS))
    seed = _seed_or_none(random_state)
    if seed is None or seed >= 2**32:
        return int(np.random.default_rng(seed).integers(_MOST_SEEDS))
    # What scikit-learn's check_random_state would have drawn.
    return int(np.random.RandomState(seed).randint(_MOST_SEEDS))


def _seed_or_none(random_state: Any) -> int | None:
    if random_state is None:
        return None
    if isinstance(random_state, bool) or not isinstance(random_state, Integral) or random_state < 0:
        raise InputTypeError(
            f"random_state must be None, a whole number of at least zero, a numpy Generator or a RandomState, "
            f"got {random_state!r}; pass for example random_state=0."
        )
    return int(random_state)
