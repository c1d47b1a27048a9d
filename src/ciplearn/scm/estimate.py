"""One node estimated: mechanisms tried, one chosen, fitted to all rows, and judged.

Of the mechanisms that predict held-out rows best, a node gets the simplest whose noise passes its test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.stats import ks_2samp

from ciplearn._core.rows import copy_groups, split_together
from ciplearn.scm import report
from ciplearn.scm.kinds import Array, Categories, Vector
from ciplearn.scm.location_scale import AdditiveNoise, FittedLocationScale, Identity, Link, LocationScale, Log, Logit
from ciplearn.scm.mechanism import FittedRoot, Mechanism, MechanismRecipe, NodeSample
from ciplearn.scm.multinomial import Multinomial
from ciplearn.scm.quantiles import SimultaneousQuantiles
from ciplearn.scm.report import NodeFit, NoiseTest, independence_of_noise, law_distance, marginal_losses
from ciplearn.scm.smooth_ridge import CHOICE_ROWS
from ciplearn.scm.variational import VariationalLatent

# A mechanism is as good as the best if its mean loss is at most so many standard errors of the difference larger; one
# that is larger by this share at most is about as good, however certain the difference is.
STANDARD_ERRORS, _CLOSE = 2.0, 0.01

# A node that its parents determine up to this share of its loss has no noise worth a test, only errors of regression.
_NEGLIGIBLE = 0.02

# Whole numbers with at most so many values, or a value with at least this share of the rows, have no smooth law.
_FEW_VALUES, _HEAVY = 50, 0.05

# Mechanisms of about equal score are told apart where their imagined values differ by more, in spreads of the node.
_DIFFERENT = 0.15

# A scale whose lowest hundredth lies below this share of its median, and that no line explains, dips to zero. U and −U
# have the same law up to this difference of distribution functions.
_DIP, _LINE, _SYMMETRIC = 0.2, 0.5, 0.06

# One row in so many scores mechanisms that were fitted to the others; more rows than these hardly choose better.
_SCORED, _MOST_FITTED, _MOST_SCORED = 5, 20_000, 10_000

# A node is a misfit, too, where the law that it makes, on so many rows, is further than this from the observed one.
_REPORT_ROWS, _LARGEST_DISTANCE = 5000, 0.1


@dataclass(frozen=True)
class TriedMechanism:
    """A mechanism that was tried."""

    label: str  # the name of the recipe, with a number where several have it
    recipe: MechanismRecipe
    mechanism: Mechanism  # fitted without the held-out rows
    losses: Array  # (n,), of the held-out rows: CRPS of numbers, minus log probability of labels

    def behind(self, other: TriedMechanism) -> float:
        """How much larger its mean loss is than another's, in standard errors of the difference."""
        gap = self.losses - other.losses
        error = float(gap.std()) / np.sqrt(len(gap))
        return 0.0 if error == 0 else float(gap.mean()) / error


@dataclass(frozen=True)
class MechanismChoice:
    """The candidates from simple to flexible, the one that the node gets, and the test of its noise."""

    candidates: tuple[TriedMechanism, ...]
    best: TriedMechanism  # the one with the smallest mean loss
    chosen: TriedMechanism
    test: NoiseTest

    @property
    def equals(self) -> tuple[TriedMechanism, ...]:
        """The other candidates that predict about as well."""
        least = self.best.losses.mean()
        close = least + _CLOSE * abs(least)
        others = [other for other in self.candidates if other is not self.chosen]
        return tuple(o for o in others if o.behind(self.chosen) <= STANDARD_ERRORS or o.losses.mean() <= close)


def choose(
    recipes: Sequence[MechanismRecipe] | None, train: NodeSample, held_out: NodeSample, generator: Generator
) -> MechanismChoice:
    """Fit candidates to some rows, score them on others, and choose; the default ones if there are no recipes.

    The first whose noise passes the test is taken among those about as good as the best; the very first if none does.
    """
    candidates = _candidates(recipes, train, held_out, generator)
    best = min(candidates, key=lambda candidate: candidate.losses.mean())
    good = [candidate for candidate in candidates if candidate.behind(best) <= STANDARD_ERRORS]
    if best.losses.mean() <= _NEGLIGIBLE * marginal_losses(held_out, train.target).mean():
        return MechanismChoice(candidates, best, good[0], NoiseTest())
    tests = []
    for candidate in good:
        tests.append(independence_of_noise(candidate.mechanism, train, held_out, generator))
        if not tests[-1].fails:
            return MechanismChoice(candidates, best, candidate, tests[-1])
    return MechanismChoice(candidates, best, good[0], tests[0])


def _candidates(
    recipes: Sequence[MechanismRecipe] | None, train: NodeSample, held_out: NodeSample, generator: Generator
) -> tuple[TriedMechanism, ...]:
    def tried(recipe: MechanismRecipe, number: str = "") -> TriedMechanism:
        mechanism = train.fitted(recipe, generator)
        losses = report.row_losses(mechanism, held_out, train.target)
        return TriedMechanism(recipe.label + number, recipe, mechanism, losses)

    if recipes is not None:
        labels = [recipe.label for recipe in recipes]
        # Candidates that have the same name are numbered.
        again = [f" ({labels[:i].count(name) + 1})" if labels.count(name) > 1 else "" for i, name in enumerate(labels)]
        return tuple(tried(recipe, number) for recipe, number in zip(recipes, again, strict=True))
    if isinstance(train.kind, Categories):
        linear = tried(Multinomial())
        # Bends cost many times what lines cost, so they are tried where lines do not do.
        bent = independence_of_noise(linear.mechanism, train, held_out, generator).fails
        return (linear, tried(Multinomial(smooth=True))) if bent else (linear,)
    values = np.concatenate([train.target, held_out.target])
    usable: tuple[Link, ...] = (Identity(),) if isinstance(train.kind, Vector) else (Identity(), Log(), Logit())
    links = [link for link in usable if link.allows(values)]
    plain = [tried(AdditiveNoise(link=link)) for link in links]
    wide = [tried(LocationScale(link)) for link in links]
    if isinstance(train.kind, Vector):
        return (*plain, *wide)
    distinct, counts = np.unique(train.target, return_counts=True)
    if (len(distinct) <= _FEW_VALUES and (distinct == np.round(distinct)).all()) or counts.max() >= _HEAVY * train.n:
        # Only quantiles keep to the values that occur, so they come first among equals.
        return (tried(SimultaneousQuantiles()), *plain, *wide)
    base = min(wide, key=lambda candidate: candidate.losses.mean()).recipe
    assert isinstance(base, LocationScale)
    return (*plain, *wide, tried(SimultaneousQuantiles(base)))


def ambiguity(choice: MechanismChoice, held_out: NodeSample, generator: Generator) -> tuple[str | None, str | None]:
    """Say in a sentence where the data leave open what would have been, and name the mechanism that says otherwise.

    Held-out rows are imagined with the parents of other rows. No mechanism is named where the noise itself is open.
    """
    node, chosen = held_out.node, choice.chosen
    if isinstance(held_out.kind, Categories) or not held_out.target.std(axis=0).any():
        return None, None
    if _sign_is_open(chosen.mechanism, held_out):
        return (
            f"The noise of {node} almost vanishes for some values of its parents and is symmetric: beyond them data "
            "cannot tell U from −U, so imagined values may lie on the wrong side."
        ), None
    order = generator.permutation(held_out.n)
    elsewhere = {parent: held_out.values[parent][order] for parent in held_out.parents}
    spread = np.maximum(held_out.target.std(axis=0), np.finfo(float).tiny)

    def apart(other: Mechanism) -> float:
        one, two = (
            mechanism.evaluate(elsewhere, mechanism.posterior(held_out.values, held_out.target, generator))
            for mechanism in (other, chosen.mechanism)
        )
        return float(np.mean(np.minimum(np.abs(one - two) / spread, 1.0)))

    gaps = {other.label: apart(other.mechanism) for other in choice.equals}
    widest = max(gaps, key=gaps.__getitem__, default=None)
    # Where noise is drawn, two draws of one mechanism differ, too.
    if widest is None or gaps[widest] <= apart(chosen.mechanism) + _DIFFERENT:
        return None, None
    return (
        f"{node}: '{widest}' predicts about as well as '{chosen.label}' and imagines other values (by "
        f"{100 * gaps[widest]:.0f} % of its spread on average)."
    ), widest


def _sign_is_open(mechanism: Mechanism, held_out: NodeSample) -> bool:
    if not isinstance(mechanism, FittedLocationScale):
        inner = getattr(mechanism, "base", None)
        return isinstance(inner, FittedLocationScale) and _sign_is_open(inner, held_out)
    _, scale = mechanism.moments(held_out.values)
    if scale.ndim == 2 or np.quantile(scale, 0.01) > _DIP * np.median(scale):
        return False
    # A scale that falls along a line of the parents vanishes at the edge of the data; one that dips has two sides.
    matrix = np.column_stack([held_out.matrix, np.ones(held_out.n)])
    log_scale = np.log(scale)
    left = log_scale - matrix @ np.linalg.lstsq(matrix, log_scale, rcond=None)[0]
    noise = mechanism.residuals
    return bool(
        left.var() > (1 - _LINE) * log_scale.var() and ks_2samp(noise, -noise, method="asymp").statistic < _SYMMETRIC
    )


@dataclass(frozen=True)
class NodeEstimate:
    """A node's mechanism, its line of the report, and what it was chosen from; a latent node has no line."""

    mechanism: Mechanism
    fit: NodeFit | None
    choice: MechanismChoice | None = None


# What was fitted before: node, parents, recipe, seed and digest of the data -> estimates by node.
Memory = dict[tuple[Any, ...], dict[str, NodeEstimate]]


def estimate_root(sample: NodeSample) -> NodeEstimate:
    """A node without parents is what was seen."""
    fit = NodeFit(sample.node, "observed values", "none", float("nan"), distance=0.0)
    return NodeEstimate(FittedRoot(sample.target), fit)


def estimate_node(sample: NodeSample, recipes: Sequence[MechanismRecipe] | None, generator: Generator) -> NodeEstimate:
    """Choose a mechanism on held-out rows, judge it on them, and fit it to all rows."""
    train, held_out = split(sample, generator)
    choice = choose(recipes, train, held_out, generator)
    unclear, tie = ambiguity(choice, held_out, generator)
    trial = None if sample.n <= CHOICE_ROWS else choice.chosen.mechanism
    mechanism = choice.chosen.recipe.fit(sample, generator, trial)
    reference = marginal_losses(held_out, train.target)
    scores = {other.label: report.score(other.losses, reference, sample.kind) for other in choice.candidates}
    some = sample.take(np.sort(generator.permutation(sample.n)[:_REPORT_ROWS]))
    made = mechanism.evaluate(some.values, mechanism.draw(some.n, generator))
    distance = law_distance(sample.kind, sample.node, some.target, made)
    label = choice.chosen.label
    fit = NodeFit(
        sample.node,
        label,
        report.measure(sample.kind),
        scores[label],
        distance,
        choice.test.p_value,
        tuple(report.Alternative(o.label, scores[o.label], o.behind(choice.best)) for o in choice.candidates),
        _misfit(sample.node, label, choice.test, distance),
        unclear,
        tie,
    )
    return NodeEstimate(mechanism, fit, choice)


def estimate_latent(
    latent: str, children: Mapping[str, NodeSample], recipe: VariationalLatent, generator: Generator
) -> dict[str, NodeEstimate]:
    """Estimate a latent node with its children; their noise is not tested: it is known only up to the latent node."""
    held_out, train = _places(list(children.values()), generator)
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
        fit = NodeFit(child, recipe.label, report.measure(sample.kind), result, distance)
        estimates[child] = NodeEstimate(decoded[child], fit)
    return estimates


def split(sample: NodeSample, generator: Generator) -> tuple[NodeSample, NodeSample]:
    """Return the rows that candidates are fitted to, and those that score them."""
    held_out, others = _places([sample], generator)
    return sample.take(np.sort(others[:_MOST_FITTED])), sample.take(np.sort(held_out[:_MOST_SCORED]))


def _places(samples: Sequence[NodeSample], generator: Generator) -> tuple[Array, Array]:
    """Draw the places that score and those that are fitted to; a row and its copies are on one side."""
    n = samples[0].n
    values = {name: (s.kinds[name], s.values[name]) for s in samples for name in (s.node, *s.parents)}
    columns = [kind.codes(array, name).reshape(n, -1) for name, (kind, array) in values.items()]
    copies = copy_groups(pd.DataFrame(np.hstack(columns)))
    return split_together(generator.permutation(n), max(1, n // _SCORED), copies)


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
