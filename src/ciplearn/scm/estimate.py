"""One node estimated: mechanisms tried, one chosen, fitted to all rows, and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from ciplearn.scm.choice import Choice, ambiguity, choose
from ciplearn.scm.mechanism import Mechanism
from ciplearn.scm.noise_test import NoiseTest
from ciplearn.scm.recipe import NodeSample, Recipe
from ciplearn.scm.report import Alternative, NodeFit, law_distance
from ciplearn.scm.roots import FittedRoot
from ciplearn.scm.scoring import marginal_losses, measure, score
from ciplearn.scm.smooth_ridge import CHOICE_ROWS
from ciplearn.scm.variational import VariationalLatent

# One row in so many scores mechanisms that were fitted to the others; more rows than these hardly choose better.
_SCORED = 5
_MOST_FITTED, _MOST_SCORED = 20_000, 10_000

# Rows that the mechanism makes for the report.
_REPORT_ROWS = 5000

# A node is a misfit, too, where the law that it makes is further than this from the observed one.
_LARGEST_DISTANCE = 0.1


@dataclass(frozen=True)
class NodeEstimate:
    """A node's mechanism, its line of the report, and what it was chosen from; a latent node has no line."""

    mechanism: Mechanism
    fit: NodeFit | None
    choice: Choice | None = None


# What was fitted before: node, parents, recipe, seed and digest of the data -> estimates by node.
Memory = dict[tuple[Any, ...], dict[str, NodeEstimate]]


def estimate_root(sample: NodeSample) -> NodeEstimate:
    """A node without parents is what was seen."""
    fit = NodeFit(sample.node, "observed values", "none", float("nan"), 0.0)
    return NodeEstimate(FittedRoot(sample.target), fit)


def estimate_node(sample: NodeSample, recipes: Sequence[Recipe] | None, generator: Generator) -> NodeEstimate:
    """Choose a mechanism on held-out rows, judge it on them, and fit it to all rows."""
    train, held_out = split(sample, generator)
    choice = choose(recipes, train, held_out, generator)
    unclear, tie = ambiguity(choice, held_out, generator)
    recipe, trial = choice.chosen.recipe, choice.chosen.mechanism
    few = sample.n <= CHOICE_ROWS
    mechanism = recipe.fit(sample, generator) if few else recipe.refit(trial, sample, generator)
    reference = marginal_losses(held_out, train.target)
    tried = tuple(
        Alternative(other.label, score(other.losses, reference, sample.kind), other.behind(choice.best))
        for other in choice.candidates
    )
    distance = _distance(sample, mechanism, generator)
    fit = NodeFit(
        sample.node,
        choice.chosen.label,
        measure(sample.kind),
        score(choice.chosen.losses, reference, sample.kind),
        distance,
        choice.test.p_value,
        tried,
        _misfit(sample.node, choice.chosen.label, choice.test, distance),
        unclear,
        tie,
    )
    return NodeEstimate(mechanism, fit, choice)


def estimate_latent(
    latent: str, children: Mapping[str, NodeSample], recipe: VariationalLatent, generator: Generator
) -> dict[str, NodeEstimate]:
    """Estimate a latent node with its children; their noise is not tested: it is known only up to the latent node."""
    n = next(iter(children.values())).n
    held_out, train = np.split(generator.permutation(n), [max(1, n // _SCORED)])
    some, others = (
        {child: sample.take(np.sort(rows)) for child, sample in children.items()} for rows in (train, held_out)
    )
    prior, trial, settled = recipe.fit(latent, some, generator, others)
    law, decoded, _ = settled.fit(latent, children, generator)
    estimates = {latent: NodeEstimate(law, None)}
    for child, sample in children.items():
        result = recipe.score(latent, prior, trial[child], others[child], some[child].target, generator)
        parents = {**sample.values, latent: law.draw(sample.n, generator)}
        made = decoded[child].evaluate(parents, decoded[child].draw(sample.n, generator))
        distance = law_distance(sample.kind, child, sample.target, made)
        fit = NodeFit(child, recipe.label, measure(sample.kind), result, distance)
        estimates[child] = NodeEstimate(decoded[child], fit)
    return estimates


def split(sample: NodeSample, generator: Generator) -> tuple[NodeSample, NodeSample]:
    """Return the rows that candidates are fitted to, and those that score them."""
    held_out, others = np.split(generator.permutation(sample.n), [max(1, sample.n // _SCORED)])
    return sample.take(np.sort(others[:_MOST_FITTED])), sample.take(np.sort(held_out[:_MOST_SCORED]))


def _distance(sample: NodeSample, mechanism: Mechanism, generator: Generator) -> float:
    some = sample.take(np.sort(generator.permutation(sample.n)[:_REPORT_ROWS]))
    made = mechanism.evaluate(some.values, mechanism.draw(some.n, generator))
    return law_distance(sample.kind, sample.node, some.target, made)


def _misfit(node: str, label: str, test: NoiseTest, distance: float) -> str | None:
    if test.fails:
        return (
            f"The noise recovered for {node} depends on its parents (p = {test.p_value:.2g}, correlation "
            f"{test.dependence:.2f}): '{label}' does not fit, so what the model says about {node} and its descendants "
            "under other values is not to be trusted."
        )
    if distance > _LARGEST_DISTANCE:
        return (
            f"'{label}' makes values of {node} whose law is far from the observed one (distance {distance:.2f} of at "
            "most 1), so what the model says about it under other values is not to be trusted."
        )
    return None
