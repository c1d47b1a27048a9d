"""The same functional over functions of the row, where a row does not tell the noise behind it: boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit, softmax

from ciplearn._core.columns import holds_numbers
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import MissingDependencyError
from ciplearn.repairing.asked import Asked
from ciplearn.repairing.formula import Engine
from ciplearn.repairing.worlds import DRAWS, Worlds
from ciplearn.scm.kinds import Array

# The strengths that are trained one after the other, each from where the one before ended, and the trees of each.
_PATH = (1.0, 3.0, 10.0, 30.0, 100.0)
_TREES = (60, 40, 40, 40, 40)
N_STRENGTHS = len(_PATH)

# Worlds of each row where values of A are drawn, and imagined rows in all: more rows are worth more than more draws.
_WORLDS = 8
_IMAGINED = 160_000

_TREE = {"num_leaves": 15, "max_depth": 5, "learning_rate": 0.3, "lambda_l2": 1.0, "min_data_in_leaf": 20}
# One thread, so that the same seed gives the same trees.
_ALWAYS = {"objective": "none", "verbosity": -1, "seed": 0}
_ALWAYS |= {"deterministic": True, "force_row_wise": True, "num_threads": 1}
_DECIMALS = range(-6, 7)  # that a column's numbers may be rounded to, from millions to millionths
_EDGE = 1e-4  # probabilities closer to 0 and 1 than this are not told apart by the trees
_FLAT = 1e-6  # curvature where a score moves nothing


def boosting() -> Any:
    """Return LightGBM, or say in one sentence that it cannot be loaded."""
    try:
        import lightgbm
    except (ImportError, OSError) as error:
        raise MissingDependencyError(
            f"LightGBM cannot be loaded ({type(error).__name__}: {str(error).splitlines()[0]}); install lightgbm and "
            "OpenMP (libgomp), or pass a causal model in which the rows determine their noise."
        ) from error
    return lightgbm


@dataclass(frozen=True)
class TreeScale:
    """Where trees add to a model's answers: probabilities through log odds, numbers in units of their spread."""

    probabilities: bool
    spread: Array  # (q,)

    def there(self, answers: Array) -> Array:  # (n, q)
        """From answers to the scores that trees add to."""
        if not self.probabilities:
            return answers / self.spread
        cut = np.clip(answers, _EDGE, 1 - _EDGE)
        return np.asarray(logit(cut) if answers.shape[1] == 1 else np.log(cut))

    def units(self, scores: Array) -> Array:  # (n, q)
        """From scores to probabilities, or to numbers in units of their spread."""
        if not self.probabilities:
            return scores
        return np.asarray(expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1))

    def back(self, scores: Array) -> Array:  # (n, q)
        """From scores to answers."""
        return self.units(scores) * self.spread


@dataclass(frozen=True, eq=False)
class Correction(Engine):
    """F = m + trees, trained against Σ_i ½ (f(x_i) − m(x_i))² + γ/2 Σ_k s_k (f̄_ik − f̄_i)².

    f̄_ik is the mean of f over the draws of row i in world k: draws are averaged inside the variance, as VCF has it.
    For probabilities the trees add to log odds, and the first term is the log loss against m. Trees read m, too.
    Along the path of strengths trees are added to those of the strength before; between two strengths of the path
    predictions are mixed, and as both terms are convex, so is what they come to.
    """

    asked: Asked
    encoding: TableEncoding  # of the columns that the trees read
    booster: Any  # LightGBM's
    ends: tuple[int, ...]  # how many trees each strength of the path has
    scale: TreeScale

    calls = 1
    sees_to = _PATH[-1]

    def knob(self, rows: pd.DataFrame) -> AnswersAlong:
        """Ask the model, and each stretch of the trees once."""
        own = self.asked(rows)
        scores = self.scale.there(own)
        features = np.hstack([self.encoding.features(rows), scores])
        answers = [own]
        for start, end in zip((0, *self.ends), self.ends, strict=False):
            added = self.booster.predict(features, start_iteration=start, num_iteration=end - start, raw_score=True)
            scores = scores + np.asarray(added).reshape(scores.shape)
            answers.append(self.scale.back(scores))
        return AnswersAlong(np.stack(answers))

    @classmethod
    def of(cls, asked: Asked, worlds: Worlds, table: pd.DataFrame, generator: np.random.Generator) -> Correction:
        """Train the path."""
        lightgbm = boosting()
        problem = _Problem.of(asked, worlds, table, generator)
        data = lightgbm.Dataset(problem.features, init_score=problem.start.ravel(order="F"), free_raw_data=True)
        several = {"num_class": problem.start.shape[1]} if problem.start.shape[1] > 1 else {}
        booster = lightgbm.Booster(_ALWAYS | _TREE | several, data)
        for gamma, trees in zip(_PATH, _TREES, strict=True):
            for _ in range(trees):
                booster.update(fobj=lambda scores, _, gamma=gamma: problem.slopes(scores, gamma))
        return cls(asked, problem.encoding, booster, tuple(accumulate(_TREES)), problem.scale)


@dataclass(frozen=True, eq=False)
class AnswersAlong:
    """Answers at the strengths of the path, the model's own first; mixed in between."""

    answers: Array  # (1 + strengths, n, q)

    def at(self, gamma: float) -> Array:  # (n, q)
        """Mix the two strengths beside gamma, by their place on 1 / (1 + γ); the last is the strictest there is."""
        places = -1 / (1 + np.array([0.0, *_PATH]))
        where = float(np.interp(-1 / (1 + gamma), places, np.arange(len(places))))
        low = min(int(where), len(places) - 2)
        return np.asarray((1 - (where - low)) * self.answers[low] + (where - low) * self.answers[low + 1])


def _decimals(table: pd.DataFrame) -> dict[str, int]:
    """The fewest decimals that write all numbers of a column, for columns that are rounded at all."""
    rounded = {}
    for name in filter(lambda column: holds_numbers(table[column]), table.columns):
        values = table[name]
        enough = (k for k in _DECIMALS if np.allclose(values, values.round(k), rtol=1e-12, atol=1e-12, equal_nan=True))
        if (fewest := next(enough, None)) is not None:
            rounded[str(name)] = fewest
    return rounded


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows, and under them their imagined rows: world by world, the draws of one row together."""

    encoding: TableEncoding
    features: Array
    start: Array  # (n + n K D, q)
    target: Array  # (n, q), as units of the scale
    shares: Array  # (K,)
    draws: int
    scale: TreeScale

    @classmethod
    def of(cls, asked: Asked, worlds: Worlds, table: pd.DataFrame, generator: np.random.Generator) -> _Problem:
        levels = worlds.levels
        k = len(levels) if levels.listed else _WORLDS
        rows = table.iloc[generator.permutation(len(table))[: max(200, _IMAGINED // k)]]
        units = worlds.units(rows, min(DRAWS, max(1, _IMAGINED // (k * len(rows)))))
        law = table[list(levels.values.columns)]
        columns = [name for name in worlds.columns if name in rows.columns]
        encoding = TableEncoding.of(table, columns)
        # Trees would tell whole numbers, which rows have, from imagined ones, and leave the rows as the model has them.
        decimals = _decimals(table[columns])
        target = asked(rows)
        features, start = [encoding.features(rows)], [target]
        for world in range(k):
            drawn = None if levels.listed else law.iloc[generator.integers(len(law), size=len(rows))]
            values = levels.values.iloc[[world]] if drawn is None else drawn
            frame = worlds.under(units, worlds.setting(values)).round(decimals)
            features.append(encoding.features(frame))
            start.append(asked(frame))
        spread = np.maximum(target.std(axis=0), 1e-12)
        scale = TreeScale(asked.classes is not None, np.ones_like(spread) if asked.classes is not None else spread)
        shares = levels.shares if levels.listed else np.full(k, 1 / k)
        scores = scale.there(np.concatenate(start))
        read = np.hstack([np.concatenate(features), scores])
        return cls(encoding, read, scores, target / scale.spread, shares, units.draws, scale)

    def slopes(self, scores: Array, gamma: float) -> tuple[Array, Array]:
        """Gradient and curvature of the objective in the scores."""
        n, q = self.target.shape
        answers = self.scale.units(scores.reshape(len(self.start), q))
        steep = answers * (1 - answers) if self.scale.probabilities else np.ones_like(answers)
        imagined = answers[n:].reshape(len(self.shares), n, self.draws, q)
        means = imagined.mean(axis=2)  # (K, n, q)
        centred = means - np.einsum("k,knq->nq", self.shares, means)
        weight = gamma * self.shares[:, None, None, None] / self.draws
        pull = np.broadcast_to(weight * centred[:, :, None], imagined.shape).reshape(-1, q)
        moving = answers[n:]
        if self.scale.probabilities and q > 1:
            pull = moving * (pull - (moving * pull).sum(axis=1, keepdims=True))
        else:
            pull = pull * steep[n:]
        # The draws of one row move together, so each is taken to move the whole of their mean.
        bend = np.broadcast_to(weight, imagined.shape).reshape(-1, q) * np.square(steep[n:])
        # On the rows themselves the log loss against the model, or the square: both have the slope f − m in the scores.
        gradient = np.concatenate([answers[:n] - self.target, pull])
        curvature = np.concatenate([steep[:n], bend]) + _FLAT
        return (gradient, curvature) if q > 1 else (gradient[:, 0], curvature[:, 0])
