"""Noise of a user's equations, and hidden parents: their laws, and draws of what was not observed from what was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.scm.kinds import Array, Kind
from ciplearn.scm.mechanism import LatentMechanism, Mechanism, Parents

# A discrete law with more atoms than this is sampled, not enumerated.
_MOST_ATOMS = 4096

# Draws in all before rows that are still unexplained are given up, so that a few rare rows get millions each; and draws
# per round, which bounds memory.
_BUDGET, _ROUND = 100_000_000, 1_000_000

# Noises whose images decide whether a value can be met by chance at all.
_ATOM_PROBES = 256

# Rows times candidates held at a time.
_CHUNK = 500_000


@dataclass(frozen=True)
class Law:
    """A distribution of one node's noise; its functions can be pickled where the user's can."""

    draw: Callable[[int, Generator], Array]  # n independent rows
    log_density: Callable[[Array], Array] | None = None  # of each row
    atoms: tuple[Array, Array] | None = None  # every value and its probability, where they are few


def is_distribution(value: Any) -> bool:
    """Tell whether a value is a scipy distribution, of the old or of the new kind."""
    return hasattr(value, "rvs") or (hasattr(value, "sample") and hasattr(value, "logpdf"))


def as_law(noise: Any, node: str, kind: Kind) -> Law:
    """Read what a user gave as a node's noise."""
    if is_distribution(noise):
        of_rows = getattr(noise, "logpdf", None) or getattr(noise, "logpmf", None)
        density = None if of_rows is None else partial(_density, of_rows)
        return Law(partial(_drawn, noise, kind.shape), density, None if kind.shape else _atoms(noise))
    if callable(noise):
        return Law(partial(_called, noise, node))
    if isinstance(noise, Real) and not isinstance(noise, bool):
        value = np.array([float(noise)])
        return Law(partial(_repeated, value), atoms=(value, np.ones(1)))
    raise InputTypeError(
        f"The noise of {node} must be a frozen scipy distribution, a function (n, generator) -> array, or a number for "
        f"none, got {noise!r}; pass for example scipy.stats.norm(0, 1)."
    )


def _repeated(value: Array, n: int, generator: Generator) -> Array:
    return np.repeat(value, n)


def _called(function: Callable[[int, Generator], Any], node: str, n: int, generator: Generator) -> Array:
    rows = np.asarray(function(n, generator))
    if rows.ndim == 0 or rows.shape[0] != n:
        raise InputError(
            f"The noise of {node} must give {n} rows when asked for {n}, but an array of shape {rows.shape} was "
            "received; use the first argument as the number of rows."
        )
    return rows


def _drawn(distribution: Any, shape: tuple[int, ...], n: int, generator: Generator) -> Array:
    # A distribution of a single number gives the entries of a vector independently.
    wanted = (n,) if hasattr(distribution, "dim") else (n, *shape)
    if hasattr(distribution, "rvs"):
        drawn = distribution.rvs(size=wanted if len(wanted) > 1 else n, random_state=generator)
    else:
        drawn = distribution.sample(wanted, rng=generator)
    # Multivariate laws drop the rows' axis for n = 1.
    return np.asarray(drawn).reshape((n, *(shape or np.shape(drawn)[1:])))


def _density(of_rows: Callable[[Array], Any], noise: Array) -> Array:
    density = np.asarray(of_rows(noise))
    return density.sum(axis=1) if density.ndim == 2 else density


def _atoms(distribution: Any) -> tuple[Array, Array] | None:
    if not hasattr(distribution, "pmf") or not hasattr(distribution, "support"):
        return None
    low, high = distribution.support()
    if not (np.isfinite(low) and np.isfinite(high)) or high - low >= _MOST_ATOMS:
        return None
    values = np.arange(low, high + 1)
    weights = np.asarray(distribution.pmf(values))
    return values[weights > 0], weights[weights > 0]


def by_rejection(
    mechanism: Mechanism, node: str, parents: Parents, value: Array, generator: Generator
) -> Array:  # (n, ...)
    """Draw u from its law until f(pa, u) = v: exact draws, for values that have positive probability."""
    n = value.shape[0]
    if not is_discrete(mechanism, parents, n, generator):
        raise InputError(
            f"The noise of {node} cannot be read back from its value: its equation has no inverse, is not linear in "
            f"the noise, and its values are continuous; pass inverses={{{node!r}: ...}}, or sample with sample_units, "
            "which keeps the noise."
        )
    noise = mechanism.draw(n, generator)
    open_rows = np.flatnonzero(~same(mechanism.evaluate(parents, noise), value))
    spent, width = n, 1
    while open_rows.size and spent < _BUDGET:
        # Most rows need a few draws; those that stay open get twice as many each round.
        width = max(1, min(2 * width, _ROUND // open_rows.size))
        rows = np.repeat(open_rows, width)
        trial = mechanism.draw(rows.size, generator)
        hit = same(mechanism.evaluate({name: values[rows] for name, values in parents.items()}, trial), value[rows])
        hit = hit.reshape(open_rows.size, width)
        met = hit.any(axis=1)
        first = np.arange(open_rows.size) * width + hit.argmax(axis=1)
        noise[open_rows[met]] = trial[first[met]]
        open_rows = open_rows[~met]
        spent += rows.size
    refuse_impossible(node, ~np.isin(np.arange(n), open_rows))
    return noise


def same(one: Array, other: Array) -> Array:  # (n,), boolean
    """Which rows hold the same value, up to rounding for numbers."""
    if one.dtype == object or other.dtype == object:
        return np.asarray(one == other, dtype=bool)
    close = np.asarray(np.isclose(one, other, rtol=1e-9, atol=1e-12))
    return np.asarray(close.all(axis=1)) if close.ndim == 2 else close


def is_discrete(mechanism: Mechanism, parents: Parents, n: int, generator: Generator) -> bool:
    """Whether two noises often give the same value at the first of n rows of parents."""
    if n == 0:
        return True
    first = {name: np.repeat(values[:1], _ATOM_PROBES, axis=0) for name, values in parents.items()}
    images = mechanism.evaluate(first, mechanism.draw(_ATOM_PROBES, generator))
    return images.dtype == object or len(np.unique(images, axis=0)) < _ATOM_PROBES


def refuse_impossible(node: str, met: Array) -> None:
    """Raise where some rows have no noise that explains them."""
    if (missing := np.flatnonzero(~met)).size:
        raise InputError(
            f"No noise of {node} reproduces its observed value in {missing.size} of {met.size} rows (first: row "
            f"{missing[0]}); these rows are impossible, or too rare to be met by chance, under this model: check the "
            "equation and the rows."
        )


@dataclass(frozen=True)
class HiddenDraws:
    """Values and noise of hidden nodes, rows times draws, and what the draws are worth."""

    values: dict[str, Array]
    noise: dict[str, Array]
    effective: Array | None  # (rows,)


def draw_hidden(
    graph: CausalGraph,
    mechanisms: Mapping[str, Mechanism],
    observed: Mapping[str, Array],
    draws: int,
    candidates: int,
    generator: Generator,
) -> HiddenDraws:
    """Draw the latent nodes that something observed descends from, given all that is observed.

    Their noise is drawn from its law, once for each of m candidates per row; each candidate is weighted by the
    probability of the observed children given the hidden values (likelihood weighting), and the draws that are kept are
    drawn by weight. The error of a mean over the kept draws falls like one over the root of the effective number of
    candidates, (Σ w)² / Σ w². A latent mechanism with an encoder (`LatentMechanism`) uses that instead.
    """
    below = graph.ancestors(observed)
    hidden = [node for node in graph.topological_order() if node in below and node not in observed]
    learned = {node: mechanism for node in hidden if isinstance(mechanism := mechanisms[node], LatentMechanism)}
    if 0 < len(learned) < len(hidden):
        other = next(node for node in hidden if node not in learned)
        raise InputError(f"{other} and {min(learned)} are hidden, but only the latter has an encoder; give both one.")
    if len(learned) == len(hidden):
        noise, repeated = {}, {node: np.repeat(array, draws, axis=0) for node, array in observed.items()}
        for node, mechanism in learned.items():
            if lacking := [name for name in mechanism.evidence if name not in observed]:
                why = f"The encoder of {node} reads {lacking[0]!r}, which the rows lack"
                raise InputError(f"{why}; pass all of {', '.join(mechanism.evidence)}.")
            noise[node] = mechanism.infer(repeated, generator)
        return HiddenDraws({node: learned[node].evaluate({}, noise[node]) for node in learned}, noise, None)
    size, pieces = max(1, _CHUNK // candidates), []
    for start in range(0, len(next(iter(observed.values()))), size):
        part = {node: values[start : start + size] for node, values in observed.items()}
        pieces.append(_by_weights(graph, mechanisms, part, hidden, draws, candidates, generator))
    effective = [piece.effective for piece in pieces if piece.effective is not None]
    return HiddenDraws(
        {node: np.concatenate([piece.values[node] for piece in pieces]) for node in pieces[0].values},
        {node: np.concatenate([piece.noise[node] for piece in pieces]) for node in pieces[0].noise},
        np.concatenate(effective) if effective else None,
    )


def _by_weights(
    graph: CausalGraph,
    mechanisms: Mapping[str, Mechanism],
    observed: Mapping[str, Array],
    hidden: list[str],
    draws: int,
    candidates: int,
    generator: Generator,
) -> HiddenDraws:
    n = next(iter(observed.values())).shape[0]
    total = n * candidates
    values = {node: np.repeat(array, candidates, axis=0) for node, array in observed.items()}
    noise: dict[str, Array] = {}
    weight = np.zeros(total)
    informative: list[str] = []
    for node in [node for node in graph.topological_order() if node in observed or node in hidden]:
        mechanism, parents = mechanisms[node], {parent: values[parent] for parent in graph.parents(node)}
        if node not in observed:
            noise[node] = mechanism.draw(total, generator)
            values[node] = mechanism.evaluate(parents, noise[node])
        elif any(parent not in observed for parent in parents):
            informative.append(node)
            density = mechanism.log_density(parents, values[node])
            if density is None:
                if not is_discrete(mechanism, parents, total, generator):
                    raise InputError(
                        f"The hidden parents of {node} cannot be inferred from it: its equation has neither a known "
                        "density nor discrete values; give it an inverse and a scipy noise law, or sample with "
                        "sample_units, which keeps the noise."
                    )
                # One draw of the noise per candidate, kept if it reproduces the value: an unbiased weight of 0 or 1.
                noise[node] = mechanism.draw(total, generator)
                with np.errstate(divide="ignore"):
                    density = np.log(same(mechanism.evaluate(parents, noise[node]), values[node]).astype(float))
            weight += density
    chosen, effective = _resample(weight.reshape(n, candidates), draws, informative, hidden, generator)
    kept_values = {node: values[node][chosen] for node in hidden}
    kept_noise = {node: array[chosen] for node, array in noise.items()}
    return HiddenDraws(kept_values, kept_noise, effective if informative else None)


def _resample(
    log_weight: Array, draws: int, informative: list[str], hidden: list[str], generator: Generator
) -> tuple[Array, Array]:  # (n, m) -> (n draws,), (n,)
    n, m = log_weight.shape
    top = log_weight.max(axis=1, keepdims=True)
    if bad := int((~np.isfinite(top)).sum()):
        raise InputError(
            f"No value of {', '.join(hidden)} among {m} candidates explains {', '.join(informative)} in {bad} of {n} "
            "rows; raise n_candidates, or check that these rows come from this model."
        )
    weight = np.exp(log_weight - top)
    mass = weight.cumsum(axis=1)
    effective = mass[:, -1] ** 2 / np.square(weight).sum(axis=1)
    # Stratified over the draws of a row: the kept draws follow the weights more closely than independent ones.
    drawn = (np.arange(draws) + generator.uniform(size=(n, draws))) / draws * mass[:, -1:]
    candidate = np.stack([np.searchsorted(mass[row], drawn[row]) for row in range(n)])
    # Strata stand in order of candidates, which are exchangeable, so draw j of a row says nothing about its size.
    return (np.arange(n)[:, None] * m + candidate.clip(max=m - 1)).ravel(), effective
