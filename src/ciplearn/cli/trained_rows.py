"""Which rows train and which are held out; those that trained are known again in any file and any order.

A row is known by a digest of 8 bytes. Of more rows than `_MOST` those with the smallest digests are kept, a sample that
does not depend on the file: of a billion rows 8 MiB, by which one row in a thousand can be told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ciplearn._core.rows import RARE, Array, beyond_chance, chance_repeats, column_digests, row_digests
from ciplearn.sources.table_file import in_kinds

_MOST = 1 << 20

_LAST = np.uint64(2**64 - 1)


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

        A row that chance hardly repeats trained if one like it did, unless chance explains how many there are. Of other
        rows as many trained as did, if the table holds all that trained; half of them if it holds half of the former.
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
        both = np.concatenate([self.told, self.common]).astype("<u8")
        return json.dumps(head).encode() + b"\n" + both.tobytes()

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
    order, count = np.random.default_rng(seed).permutation(n_rows), round(share * n_rows)
    if copies is None or not n_rows:
        return np.sort(order[:count])
    _, first, group = np.unique(copies[order], return_index=True, return_inverse=True)
    together = np.argsort(first[group], kind="stable")
    ends = np.flatnonzero(np.diff(first[group][together], prepend=-1, append=-1))
    return np.sort(order[together[: ends[np.abs(ends - count).argmin()]]])


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
