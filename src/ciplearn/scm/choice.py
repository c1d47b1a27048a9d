"""Which mechanism a node gets: of those that predict held-out rows best, the simplest whose noise passes its test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from scipy.stats import ks_2samp

from ciplearn.scm.kinds import Array, Categories, Vector
from ciplearn.scm.links import Identity, Link, Log, Logit
from ciplearn.scm.location_scale import AdditiveNoise, FittedLocationScale, LocationScale
from ciplearn.scm.mechanism import Mechanism
from ciplearn.scm.multinomial import Multinomial
from ciplearn.scm.noise_test import NOTHING_TO_TEST, NoiseTest, judge_noise
from ciplearn.scm.quantiles import SimultaneousQuantiles
from ciplearn.scm.recipe import NodeSample, Recipe
from ciplearn.scm.scoring import marginal_losses, row_losses

# A mechanism is as good as the best if its mean loss is at most so many standard errors of the difference larger.
STANDARD_ERRORS = 2.0

# A mean loss that is larger than the best by this share at most is about as good, however certain the difference is.
_CLOSE = 0.01

# A node that its parents determine up to this share of its loss has no noise worth a test, only errors of regression.
_NEGLIGIBLE = 0.02

# Whole numbers with at most so many values, or a value with at least this share of the rows, have no smooth law.
_FEW_VALUES = 50
_HEAVY = 0.05

# Mechanisms of about equal score are told apart where their imagined values differ by more, in spreads of the node.
_DIFFERENT = 0.15

# A scale whose lowest hundredth lies below this share of its median, and that no line explains, dips to zero.
_DIP = 0.2
_LINE = 0.5

# Largest difference of distribution functions at which U and −U have the same law.
_SYMMETRIC = 0.06


@dataclass(frozen=True)
class Candidate:
    """A mechanism that was tried."""

    label: str  # the name of the recipe, with a number where several have it
    recipe: Recipe
    mechanism: Mechanism  # fitted without the held-out rows
    losses: Array  # (n,), of the held-out rows: CRPS of numbers, minus log probability of labels

    def behind(self, other: Candidate) -> float:
        """How much larger its mean loss is than another's, in standard errors of the difference."""
        gap = self.losses - other.losses
        error = float(gap.std()) / np.sqrt(len(gap))
        return 0.0 if error == 0 else float(gap.mean()) / error


@dataclass(frozen=True)
class Choice:
    """The candidates from simple to flexible, the one that the node gets, and the test of its noise."""

    candidates: tuple[Candidate, ...]
    chosen: Candidate
    test: NoiseTest

    @property
    def best(self) -> Candidate:
        """The one with the smallest mean loss."""
        return min(self.candidates, key=lambda candidate: candidate.losses.mean())

    @property
    def equals(self) -> tuple[Candidate, ...]:
        """The other candidates that predict about as well."""
        least = self.best.losses.mean()
        close = least + _CLOSE * abs(least)
        return tuple(
            other
            for other in self.candidates
            if other is not self.chosen
            and (other.behind(self.chosen) <= STANDARD_ERRORS or other.losses.mean() <= close)
        )


def choose(recipes: Sequence[Recipe] | None, train: NodeSample, held_out: NodeSample, generator: Generator) -> Choice:
    """Fit candidates to some rows, score them on others, and choose; the default ones if there are no recipes.

    Of those that are about as good as the best, the first whose noise passes the test; the first of all if none does.
    """
    candidates = tuple(_candidates(recipes, train, held_out, generator))
    best = min(candidates, key=lambda candidate: candidate.losses.mean())
    good = [candidate for candidate in candidates if candidate.behind(best) <= STANDARD_ERRORS]
    if best.losses.mean() <= _NEGLIGIBLE * marginal_losses(held_out, train.target).mean():
        return Choice(candidates, good[0], NOTHING_TO_TEST)
    choices = []
    for candidate in good:
        choices.append(Choice(candidates, candidate, judge_noise(candidate.mechanism, train, held_out, generator)))
        if not choices[-1].test.fails:
            return choices[-1]
    return choices[0]


def _candidates(
    recipes: Sequence[Recipe] | None, train: NodeSample, held_out: NodeSample, generator: Generator
) -> list[Candidate]:
    fitted: dict[Recipe, Mechanism] = {}

    def tried(recipe: Recipe) -> Candidate:
        # A scale is fitted around additive noise, quantiles around a scale: what is there already is used.
        if isinstance(recipe, LocationScale) and (inner := fitted.get(AdditiveNoise(link=recipe.link))) is not None:
            assert isinstance(inner, FittedLocationScale)
            fitted[recipe] = recipe.around(inner, train)
        elif isinstance(recipe, SimultaneousQuantiles) and recipe.base in fitted:
            base = fitted[recipe.base]
            assert isinstance(base, FittedLocationScale)
            fitted[recipe] = recipe.around(base, train, generator)
        else:
            fitted[recipe] = recipe.fit(train, generator)
        return Candidate(recipe.label, recipe, fitted[recipe], row_losses(fitted[recipe], held_out, train.target))

    if recipes is not None:
        return _told_apart([tried(recipe) for recipe in recipes])
    if isinstance(train.kind, Categories):
        linear = tried(Multinomial())
        # Bends cost many times what lines cost, so they are tried where lines do not do.
        bent = judge_noise(linear.mechanism, train, held_out, generator).fails
        return [linear, tried(Multinomial(smooth=True))] if bent else [linear]
    links = [Identity()] if isinstance(train.kind, Vector) else _links(train, held_out)
    plain = [tried(AdditiveNoise(link=link)) for link in links]
    wide = [tried(LocationScale(link)) for link in links]
    if isinstance(train.kind, Vector):
        return [*plain, *wide]
    if _is_lumpy(train.target):
        # Only quantiles keep to the values that occur, so they come first among equals.
        return [tried(SimultaneousQuantiles()), *plain, *wide]
    base = min(wide, key=lambda candidate: candidate.losses.mean()).recipe
    assert isinstance(base, LocationScale)
    return [*plain, *wide, tried(SimultaneousQuantiles(base))]


def _told_apart(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Number candidates that have the same name."""
    names = [candidate.label for candidate in candidates]
    return [
        replace(one, label=f"{one.label} ({names[:i].count(one.label) + 1})") if names.count(one.label) > 1 else one
        for i, one in enumerate(candidates)
    ]


def _links(train: NodeSample, held_out: NodeSample) -> list[Link]:
    both = np.concatenate([train.target, held_out.target])
    return [link for link in (Identity(), Log(), Logit()) if link.allows(both)]


def _is_lumpy(values: Array) -> bool:
    distinct, counts = np.unique(values, return_counts=True)
    few = len(distinct) <= _FEW_VALUES and bool((distinct == np.round(distinct)).all())
    return few or counts.max() >= _HEAVY * len(values)


def ambiguity(choice: Choice, held_out: NodeSample, generator: Generator) -> tuple[str | None, str | None]:
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

    def imagined(mechanism: Mechanism) -> Array:
        noise = mechanism.posterior(held_out.values, held_out.target, generator)
        return mechanism.evaluate(elsewhere, noise)

    def apart(other: Mechanism) -> float:
        gap = np.abs(imagined(other) - imagined(chosen.mechanism)) / spread
        return float(np.mean(np.minimum(gap, 1.0)))

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
    if scale is None or scale.ndim == 2:
        return False
    if np.quantile(scale, 0.01) > _DIP * np.median(scale):
        return False
    # A scale that falls along a line of the parents vanishes at the edge of the data; one that dips has two sides.
    matrix = np.column_stack([held_out.matrix, np.ones(held_out.n)])
    log_scale = np.log(scale)
    left = log_scale - matrix @ np.linalg.lstsq(matrix, log_scale, rcond=None)[0]
    noise = mechanism.residuals
    return bool(
        left.var() > (1 - _LINE) * log_scale.var() and ks_2samp(noise, -noise, method="asymp").statistic < _SYMMETRIC
    )
