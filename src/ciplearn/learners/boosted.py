"""Boosted trees, grown by LightGBM and kept as arrays; with a penalty on the predictions of all rows at once.

With a penalty, each tree is grown for the gradient of loss + gamma · penalty, on the rows and on those imagined beside
them. How far to go along it is measured: the cost, its slope and the cost after a whole step make a parabola.

Trees on the inputs that the protected columns leave alone come first, and then take turns with trees on all inputs.
They are grown for the loss alone, so that a strong penalty ends near the predictor from non-descendants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.arguments import non_negative, positive, whole
from ciplearn._core.errors import InputError, MissingDependencyError
from ciplearn.estimators.learner import Learner, Training, row_weights
from ciplearn.estimators.networks import LEAF, Tree, Trees
from ciplearn.learning.invariance import BatchDependence, Invariance
from ciplearn.learning.settings import Fit, Objective, SquaredError
from ciplearn.learning.streamed_rows import Rows

Array = np.ndarray[Any, Any]

_PART, _TRIES = 0.7, 12  # what part of the best step a tree makes, and how often a step is measured to find the best

# Trees end when a round gains less than this part of the cost. Where no imagined rows show what trees say of rows that
# did not occur, trees that gain little hide dependence there: on the paper's first case twice as many leave the error
# as it is and raise the variance of counterfactuals by a third.
_LEAST_GAIN, _LEAST_GAIN_UNSEEN = 1e-3, 6e-3


@dataclass(frozen=True)
class Boosted(Learner):
    """Boosted trees: many small ones, each of which mends what those before it leave.

    Rows that are held out say how many there are; below 4 000 rows three times as many are grown, each third stopped by
    other rows, and their mean predicts. With a penalty the step of each tree is measured, whatever the learning rate.
    One thread, so that the same seed gives the same trees.

    Parameters
    ----------
    trees, leaves, depth : int
        The most trees, and leaves and depth of each.
    learning_rate : float
        What part of its correction each tree makes, where nothing is penalised.
    rows_per_leaf : int
        At least; of few rows a twentieth.
    l2 : float
        What is added to the rows of a leaf when its value is divided by their number.
    patience, validation_fraction
        Stop after this many trees that do not help on this part of the rows, which is held out.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> from ciplearn.learners import Boosted
    >>> table = datasets.first_synthetic().sample(100, random_state=0)
    >>> Boosted(trees=10).estimator("regression").fit(table[["L", "Z"]], table["Y"]).predict(table).shape
    (100,)
    """

    name: ClassVar[str] = "boosted"
    device: ClassVar[str] = "cpu"
    early_stopping: ClassVar[bool] = True

    trees: int = 500
    learning_rate: float = 0.1
    leaves: int = 8
    depth: int = 4
    rows_per_leaf: int = 20
    l2: float = 1.0
    patience: int = 30
    validation_fraction: float = 0.1

    def __post_init__(self) -> None:
        whole(self.trees, "trees", minimum=1, maximum=100_000)
        positive(self.learning_rate, "learning_rate", maximum=1)
        whole(self.leaves, "leaves", minimum=2, maximum=1024)
        whole(self.depth, "depth", minimum=1, maximum=64)
        whole(self.rows_per_leaf, "rows_per_leaf", minimum=1)
        non_negative(self.l2, "l2")
        whole(self.patience, "patience", minimum=1)

    @classmethod
    def is_available(cls) -> bool:
        """Whether LightGBM's library can be loaded."""
        try:
            lightgbm()
        except MissingDependencyError:
            return False
        return True

    def trained(self, training: Training) -> Fit:
        """Grow the trees."""
        inputs, weights = training.table(self.name)
        settings: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "max_depth": self.depth,
            "min_data_in_leaf": max(1, min(self.rows_per_leaf, len(inputs) // 20)),
            "lambda_l2": self.l2,
            "seed": training.settings.seed % 2**31,
            # A column with a gap holds the median there, or a level of its own.
            "use_missing": False,
            **{"deterministic": True, "force_row_wise": True, "num_threads": 1, "verbosity": -1},
        }
        if training.is_penalised:
            return penalised_trees(training, settings, self.trees, self.patience)
        rows, stops_on = training.split.rows, training.split.validation
        classes = len(getattr(training.estimator, "classes_", ()))
        n_outputs = classes if classes > 2 else 1 if classes else rows.target.shape[1]
        if classes > 2:
            settings |= {"objective": "multiclass", "num_class": classes}
        else:
            settings["objective"] = "binary" if classes else "regression"
        library = lightgbm()
        grown, output = list[Tree](), list[int]()
        for column in range(1 if classes else n_outputs):
            learnt = library.Dataset(inputs, _column(rows, column), weight=weights, params=settings)
            given: dict[str, Any] = {}
            if stops_on is not None:
                others = stops_on.rows.inputs[0].numpy(), _column(stops_on.rows, column)
                given["valid_sets"] = [learnt.create_valid(*others, weight=row_weights(stops_on.rows))]
                given["callbacks"] = [library.early_stopping(self.patience, verbose=False)]
            booster = library.train(settings, learnt, self.trees, **given)
            trees = [tree_of(described) for described in booster.dump_model()["tree_info"]]
            grown += trees
            output += [i % n_outputs for i in range(len(trees))] if classes else [column] * len(trees)
        return training.fitted(Trees.of(grown, output, [0.0] * n_outputs, inputs.shape[1]))


def _column(rows: Rows, number: int) -> Array:  # (n,)
    target = rows.target.double().cpu().numpy()
    return target if target.ndim == 1 else target[:, number]


def lightgbm() -> ModuleType:
    """Return LightGBM, or say in one sentence that it cannot be loaded."""
    try:
        import lightgbm as library
    except (ImportError, OSError) as error:
        why = f"Boosted trees need LightGBM, which cannot be loaded here ({error})"
        advice = "install lightgbm with the OpenMP library of your system, or pass learner=Network()"
        raise MissingDependencyError(f"{why}; {advice}.") from error
    return library


def tree_of(described: dict[str, Any]) -> Tree:
    """Read one tree of LightGBM's own description."""
    waiting = [described["tree_structure"]]
    nodes: list[tuple[int, float, int, float]] = []
    for number, node in enumerate(waiting):  # which grows meanwhile
        if "split_feature" in node:
            nodes.append((node["split_feature"], node["threshold"], len(waiting), 0.0))
            waiting += [node["left_child"], node["right_child"]]
        else:
            nodes.append((0, LEAF, number, node["leaf_value"]))
    feature, threshold, left, value = (np.array(part) for part in zip(*nodes, strict=True))
    return Tree(feature, threshold.astype(float), left, value.astype(float))


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
        predictions = self.objective.prediction(output)
        penalty = self.invariance.penalty(predictions[:n], predictions[n:], torch.arange(n), self.rows)
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
        chances = self.objective.prediction(self.output).numpy()
        return np.maximum(chances * (1 - chances), 1e-4)

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
        tree = tree_of(self.booster.dump_model(start_iteration=self.count, num_iteration=1)["tree_info"][0])
        self.count += 1
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
    """Grow at most ``rounds`` trees of a kind and output, until they no longer help.

    ``patience`` counts rounds without a better cost on the rows that say when to stop; ``settings`` are LightGBM's.
    """
    split, estimator = training.split, training.estimator
    if split.invariance is None or isinstance(split.invariance, BatchDependence):
        raise InputError("Trees are penalised on all rows at once, got prepare_once=False; leave it out.")
    base = estimator._constant_output(split.rows.target).cpu()
    objective, weight = estimator._objective(), training.settings.weight
    costs = [Cost.of(split.rows, objective, split.invariance, weight, base)]
    if split.validation is not None and split.validation.invariance is not None:
        costs.append(Cost.of(split.validation.rows, objective, split.validation.invariance, weight, base))
    everything = Growth(costs[0], range(costs[0].inputs.shape[1]), settings)
    least = _LEAST_GAIN if len(costs[0].inputs) > len(split.rows) else _LEAST_GAIN_UNSEEN
    trees, alone = list[tuple[Tree, int]](), list[Growth]()
    if training.path:
        # What a penalty finds in them is chance. Outputs are shared: all trees add to the same ones.
        plain = [replace(cost, weight=0.0) for cost in costs]
        alone = [Growth(plain[0], training.path, settings)]
        trees += _grown(alone, plain, rounds, patience, _LEAST_GAIN)[0]
    further, history = _grown([*alone, everything], costs, rounds, patience, least)
    grown, output = zip(*trees, *further, strict=True) if trees or further else ((), ())
    return Fit(Trees.of(grown, output, base[0].tolist(), costs[0].inputs.shape[1]), tuple(history))


def _grown(
    growths: Sequence[Growth], costs: Sequence[Cost], rounds: int, patience: int, least: float
) -> tuple[list[tuple[Tree, int]], list[dict[str, float]]]:
    """Return the trees with their outputs, up to the round that the last of the costs judges best, and a history."""
    trees, history = list[tuple[Tree, int]](), list[dict[str, float]]()
    last, best, kept, since, outputs = np.inf, np.inf, 0, 0, [cost.output.clone() for cost in costs]
    for _ in range(rounds):
        for growth, column in product(growths, range(costs[0].output.shape[1])):
            if (tree := growth.tree(column)) is not None:
                trees.append((tree, column))
                for cost in costs:
                    cost.add(tree, column)
        with torch.no_grad():
            parts = [[float(part) for part in cost.parts(cost.output)] for cost in costs]
        values = [loss + cost.weight * penalty for (loss, penalty), cost in zip(parts, costs, strict=True)]
        validation = {"validation": values[1]} if values[1:] else {}
        history.append({"loss": parts[0][0], "penalty": parts[0][1], **validation})
        since += 1
        if values[-1] < best:
            best, kept, since, outputs = values[-1], len(trees), 0, [cost.output.clone() for cost in costs]
        if since >= patience or last - values[0] <= least * abs(values[0]):
            break
        last = values[0]
    for cost, output in zip(costs, outputs, strict=True):
        cost.output.copy_(output)
    return trees[:kept], history
