"""Tiers: groups of nodes, each of which acts on all later ones, and within which nothing acts."""

from __future__ import annotations

from collections.abc import Iterable

from ciplearn.causal.names import Edge, in_order


def tiers_of(directed: Iterable[Edge]) -> list[tuple[str, ...]]:
    """The tiers that these edges draw, causes first; none where the edges are not exactly those of tiers."""
    parents: dict[str, set[str]] = {}
    for a, b in directed:
        parents.setdefault(a, set())
        parents.setdefault(b, set()).add(a)
    alike: dict[frozenset[str], list[str]] = {}
    for name, causes in parents.items():
        alike.setdefault(frozenset(causes), []).append(name)
    earlier: set[str] = set()
    tiers = []
    for before, names in sorted(alike.items(), key=lambda tier: len(tier[0])):
        if before != earlier:
            return []
        earlier.update(names)
        tiers.append(in_order(names))
    return tiers
