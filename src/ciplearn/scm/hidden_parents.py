"""Hidden parents: drawing what was not observed from what was.

Hidden are latent nodes. Their noise is drawn from its law, once for each of m candidates per row; each candidate is
weighted by the probability of the observed children given the hidden values (likelihood weighting), and the draws that
are kept are drawn by weight. The error of a mean over the kept draws falls like one over the root of the effective
number of candidates, (Σ w)² / Σ w², which is returned with them. A latent mechanism with an encoder of its own
(`LatentMechanism`) skips the weighting and uses that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.scm.kinds import Array
from ciplearn.scm.mechanism import LatentMechanism, Mechanism
from ciplearn.scm.noise import is_discrete, same

# Rows times candidates held at a time.
_CHUNK = 500_000


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
    """Draw the latent nodes that something observed descends from, given all that is observed."""
    below = graph.ancestors(observed)
    hidden = [node for node in graph.topological_order() if node in below and node not in observed]
    learned = {node: mechanism for node in hidden if isinstance(mechanism := mechanisms[node], LatentMechanism)}
    if len(learned) == len(hidden):
        return _by_encoder(learned, observed, draws, generator)
    if learned:
        other = next(node for node in hidden if node not in learned)
        raise InputError(
            f"{other} and {min(learned)} are both hidden, but only the latter has an encoder; give one to both."
        )
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


def _by_encoder(
    learned: Mapping[str, LatentMechanism], observed: Mapping[str, Array], draws: int, generator: Generator
) -> HiddenDraws:
    noise: dict[str, Array] = {}
    values: dict[str, Array] = {}
    repeated = {node: np.repeat(array, draws, axis=0) for node, array in observed.items()}
    for node, mechanism in learned.items():
        lacking = [name for name in mechanism.evidence if name not in observed]
        if lacking:
            raise InputError(
                f"The encoder of {node} reads {lacking[0]!r}, which the rows lack; pass all of "
                f"{', '.join(mechanism.evidence)}."
            )
        noise[node] = mechanism.infer(repeated, generator)
        values[node] = mechanism.evaluate({}, noise[node])
    return HiddenDraws(values, noise, None)


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
    for node in graph.topological_order():
        if node not in observed and node not in hidden:
            continue
        parents = {parent: values[parent] for parent in graph.parents(node)}
        if node not in observed:
            noise[node] = mechanisms[node].draw(total, generator)
            values[node] = mechanisms[node].evaluate(parents, noise[node])
        elif any(parent not in observed for parent in parents):
            density, drawn = _evidence(node, mechanisms[node], parents, values[node], generator)
            weight += density
            informative.append(node)
            if drawn is not None:
                noise[node] = drawn
    chosen, effective = _resample(weight.reshape(n, candidates), draws, informative, hidden, generator)
    kept_values = {node: values[node][chosen] for node in hidden}
    kept_noise = {node: array[chosen] for node, array in noise.items()}
    return HiddenDraws(kept_values, kept_noise, effective if informative else None)


def _evidence(
    node: str, mechanism: Mechanism, parents: Mapping[str, Array], value: Array, generator: Generator
) -> tuple[Array, Array | None]:
    """Log weight of each candidate, and the node's own noise where the weight came from drawing it."""
    density = mechanism.log_density(parents, value)
    if density is not None:
        return density, None
    if not is_discrete(mechanism, parents, value.shape[0], generator):
        raise InputError(
            f"The hidden parents of {node} cannot be inferred from it: its equation has neither a known density nor "
            "discrete values; give it an inverse and a scipy noise law, or sample with sample_units, which keeps the "
            "noise."
        )
    # One draw of the noise per candidate, kept if it reproduces the value: an unbiased weight of 0 or 1.
    noise = mechanism.draw(value.shape[0], generator)
    with np.errstate(divide="ignore"):
        return np.log(same(mechanism.evaluate(parents, noise), value).astype(float)), noise


def _resample(
    log_weight: Array, draws: int, informative: list[str], hidden: list[str], generator: Generator
) -> tuple[Array, Array]:  # (n, m) -> (n draws,), (n,)
    n, m = log_weight.shape
    top = log_weight.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        bad = int((~np.isfinite(top)).sum())
        raise InputError(
            f"No value of {', '.join(hidden)} among {m} candidates explains {', '.join(informative)} in {bad} of {n} "
            "rows; raise n_candidates, or check that these rows come from this model."
        )
    weight = np.exp(log_weight - top)
    mass = weight.cumsum(axis=1)
    effective = mass[:, -1] ** 2 / np.square(weight).sum(axis=1)
    # Stratified over the draws of a row: the kept draws follow the weights more closely than independent ones.
    spot = (np.arange(draws) + generator.uniform(size=(n, draws))) / draws * mass[:, -1:]
    candidate = np.stack([np.searchsorted(mass[row], spot[row]) for row in range(n)])
    # Strata stand in order of candidates, which are exchangeable, so draw j of a row says nothing about its size.
    return (np.arange(n)[:, None] * m + candidate.clip(max=m - 1)).ravel(), effective
