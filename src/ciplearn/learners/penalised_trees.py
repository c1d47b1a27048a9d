"""Boosted trees with a penalty on the predictions of all rows at once.

Each tree is grown by LightGBM for the gradient of loss + gamma · penalty, on the rows and on those imagined beside
them. How far to go along it is measured: the cost, its slope and the cost after a whole step make a parabola. The
curvature of the loss alone would make steps along a strong penalty too long by orders of magnitude.

Trees on the inputs that the protected columns leave alone take turns with trees on all inputs. The former are grown for
the loss alone, so that a strong penalty ends near the predictor from non-descendants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn.estimators.learner import Training
from ciplearn.estimators.trees import Tree, Trees
from ciplearn.learners.lightgbm_trees import lightgbm, tree_of
from ciplearn.learning.dataset_rows import Rows
from ciplearn.learning.invariance import BatchDependence, Invariance
from ciplearn.learning.loop import Fit
from ciplearn.learning.objectives import Objective, SquaredError

Array = np.ndarray[Any, Any]

# What part of the best step a tree makes, and how often a step is measured to find the best.
_PART, _TRIES = 0.7, 12

# Trees end when a round gains less than this part of the cost. Where no imagined rows show what trees say of rows that
# did not occur, trees that gain little hide dependence there: on the paper's first case twice as many leave the error
# as it is and raise the variance of counterfactuals by a third.
_LEAST_GAIN, _LEAST_GAIN_UNSEEN = 1e-3, 4e-3


@dataclass
class Cost:
    """Loss + weight · penalty of what the trees so far say about some rows and about those imagined beside them."""

    rows: Rows
    objective: Objective
    invariance: Invariance
    weight: float
    inputs: Array  # (n + imagined, width)
    output: Tensor  # (n + imagined, k)

    @classmethod
    def of(cls, rows: Rows, objective: Objective, invariance: Invariance, weight: float, base: Tensor) -> Cost:
        """Start at the same output for every row."""
        more = invariance.imagined_inputs(torch.arange(len(rows)), rows)
        inputs = torch.cat([rows.inputs[0], *(more or ())[:1]]).numpy()
        return cls(rows, objective, invariance, weight, inputs, base.double().repeat(len(inputs), 1))

    def parts(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Return loss and penalty of outputs."""
        n = len(self.rows)
        weights = None if self.rows.weights is None else self.rows.weights.double()
        target = self.rows.target.double() if self.rows.target.is_floating_point() else self.rows.target
        said = self.objective.prediction(output)
        penalty = self.invariance.penalty(said[:n], said[n:], torch.arange(n), self.rows)
        return self.objective.loss(output[:n], target, weights), penalty

    def value(self, output: Tensor) -> Tensor:
        """Return the cost of outputs."""
        loss, penalty = self.parts(output)
        return loss + self.weight * penalty

    def gradient(self) -> tuple[float, Array]:  # (n + imagined, k)
        """Return the cost now, and its gradient."""
        output = self.output.clone().requires_grad_(True)
        value = self.value(output)
        value.backward()
        return float(value.detach()), output.grad.numpy()  # type: ignore[union-attr]

    def curvature(self) -> Array:  # (n + imagined, k)
        """Return the curvature of each row's loss, up to a factor."""
        if isinstance(self.objective, SquaredError):
            return np.ones(self.output.shape)
        said = self.objective.prediction(self.output).numpy()
        return np.maximum(said * (1 - said), 1e-4)

    def add(self, tree: Tree, column: int) -> None:
        """Let a tree add its values to one output."""
        self.output[:, column] += torch.from_numpy(tree.value[tree.leaves(self.inputs)])


class Growth:
    """Trees on some of the inputs, each grown for a gradient of its own."""

    def __init__(self, cost: Cost, places: Sequence[int], settings: dict[str, Any]) -> None:
        self.cost, self.places, self.count = cost, np.array(places), 0
        self.l2 = settings["lambda_l2"]
        library, settings = lightgbm(), {**settings, "objective": "none"}
        seen = np.ascontiguousarray(cost.inputs[:, self.places])
        self.booster = library.Booster(settings, library.Dataset(seen, np.zeros(len(seen)), params=settings))

    def tree(self, column: int) -> Tree | None:
        """Grow a tree, and go most of the best step along it; None where no split helps."""
        cost, curvature = self.cost, self.cost.curvature()[:, column]
        before, slopes = cost.gradient()
        gradient = slopes[:, column] * len(cost.rows)
        if self.booster.update(fobj=lambda *_: (gradient, curvature)):
            return None
        described = self.booster.dump_model(start_iteration=self.count, num_iteration=1)["tree_info"][0]
        self.count += 1
        tree = tree_of(described)
        tree = replace(tree, feature=self.places[tree.feature])
        leaf = tree.leaves(cost.inputs)
        pull, rows = (np.bincount(leaf, part, len(tree.value)) for part in (gradient, curvature))
        whole = -pull / (rows + self.l2)
        slope = float(slopes[:, column] @ whole[leaf])
        return replace(tree, value=self._step(column, whole[leaf], before, slope) * whole)

    def _step(self, column: int, whole: Array, before: float, slope: float) -> float:
        """Find how much of a whole step to go, from parabolas through the cost before and after a step."""
        length = best = 1.0
        for _ in range(_TRIES):
            with torch.no_grad():
                after = self.cost.output.clone()
                after[:, column] += length * torch.from_numpy(whole)
                bend = (float(self.cost.value(after)) - before) / length - slope
            best = length * min(-slope / (2 * bend), 4) if bend > 0 else 4 * length
            # A parabola holds near where it was measured: penalties are flat far away.
            if length / 2 <= best <= length / _PART:
                return _PART * best
            length = best
        return 0.0


def penalised_trees(training: Training, settings: dict[str, Any], rounds: int, patience: int) -> Fit:
    """Grow trees until they no longer help, on the rows that train or on those that say when to stop.

    Parameters
    ----------
    training : Training
        With a penalty.
    settings : dict
        What LightGBM is told.
    rounds : int
        At most as many trees on all inputs, per output.
    patience : int
        Rounds without a better cost on the rows that say when to stop.
    """
    split, estimator = training.split, training.estimator
    if split.invariance is None or isinstance(split.invariance, BatchDependence):
        raise InputError("Trees are penalised on all rows at once, got prepare_once=False; leave it out.")
    base = estimator._constant_output(split.rows.target).cpu()
    known = estimator._objective(), split.invariance, training.settings.weight, base
    cost, judge = Cost.of(split.rows, *known), None
    if split.validation is not None and split.validation.invariance is not None:
        judge = Cost.of(split.validation.rows, known[0], split.validation.invariance, known[2], base)
    growths = [Growth(cost, range(cost.inputs.shape[1]), settings)]
    if training.path:
        # What a penalty finds in them is chance. The outputs are the same tensor, to which all trees add.
        growths.insert(0, Growth(replace(cost, weight=0.0), training.path, settings))
    trees: list[Tree] = []
    output: list[int] = []
    history: list[dict[str, float]] = []
    best, kept, since, last = np.inf, 0, 0, np.inf
    least = _LEAST_GAIN if len(cost.inputs) > len(split.rows) else _LEAST_GAIN_UNSEEN
    for _ in range(rounds):
        for growth in growths:
            for column in range(base.shape[1]):
                tree = growth.tree(column)
                if tree is None:
                    continue
                trees.append(tree)
                output.append(column)
                for side in (cost, judge):
                    if side is not None:
                        side.add(tree, column)
        record, now = _record(cost)
        if judge is not None:
            record["validation"] = _record(judge)[1]
        history.append(record)
        if record.get("validation", now) < best:
            best, kept, since = record.get("validation", now), len(trees), 0
        else:
            since += 1
        if since >= patience or last - now <= least * abs(now):
            break
        last = now
    module = Trees.of(trees[:kept], output[:kept], base[0].tolist(), cost.inputs.shape[1])
    return Fit(module, tuple(history))


def _record(cost: Cost) -> tuple[dict[str, float], float]:
    with torch.no_grad():
        loss, penalty = (float(part) for part in cost.parts(cost.output))
    return {"loss": loss, "penalty": penalty}, loss + cost.weight * penalty
