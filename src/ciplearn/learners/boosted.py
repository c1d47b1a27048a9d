"""Boosted trees, grown by LightGBM and kept as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import is_classifier

from ciplearn._core.errors import MissingDependencyError
from ciplearn._core.numbers import non_negative, positive, whole
from ciplearn.estimators.learner import Learner, Training
from ciplearn.estimators.trees import Tree, Trees
from ciplearn.learners.rows import labels_of, table_rows
from ciplearn.learning.loop import Fit

Array = np.ndarray[Any, Any]

# Fewer rows than these are left out in turn, part by part; of more, one part says when to stop.
_ROWS_FOR_ONE_SPLIT, _FOLDS, _SHARE = 5000, 4, 0.2

# Of fewer rows none can be spared, and as many trees are grown.
_ROWS_TO_SPLIT, _TREES_OF_FEW_ROWS = 60, 40


@dataclass(frozen=True)
class Boosted(Learner):
    """Boosted trees: many small ones, each of which mends what those before it leave.

    How many there are is found on rows left out; then all rows are learnt from. One thread, so that the same seed gives
    the same trees.

    Parameters
    ----------
    trees : int
        At most as many.
    learning_rate : float
        What part of its correction each tree makes.
    leaves : int
        Of each tree, at most.
    depth : int
        Of each tree, at most.
    rows_per_leaf : int
        At least; of few rows a twentieth.
    l2 : float
        What is added to the rows of a leaf when its value is divided by their number.
    patience : int
        Stop after this many trees that do not help on the rows left out.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> from ciplearn.learners import Boosted
    >>> table = datasets.first_synthetic().sample(100, random_state=0)
    >>> model = Boosted(trees=10).estimator("regression", random_state=0).fit(table.drop(columns="Y"), table["Y"])
    >>> model.predict(table).shape
    (100,)
    """

    name: ClassVar[str] = "boosted"
    device: ClassVar[str] = "cpu"
    early_stopping: ClassVar[bool] = False

    trees: int = 500
    learning_rate: float = 0.1
    leaves: int = 12
    depth: int = 5
    rows_per_leaf: int = 20
    l2: float = 1.0
    patience: int = 30

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
        inputs, weights = table_rows(training, self.name)
        seed, rows = training.settings.seed, training.split.rows
        grown: list[Tree] = []
        output: list[int] = []
        if is_classifier(training.estimator):
            labels = labels_of(training)
            classes = len(training.estimator.classes_)
            objective = {"objective": "binary"} if classes == 2 else {"objective": "multiclass", "num_class": classes}
            grown = self._grown(inputs, labels, weights, objective, seed)
            n_outputs = 1 if classes == 2 else classes
            output = [place % n_outputs for place in range(len(grown))]
        else:
            n_outputs = rows.target.shape[1]
            for place, column in enumerate(rows.target.double().cpu().numpy().T):
                found = self._grown(inputs, column, weights, {"objective": "regression"}, seed)
                grown, output = grown + found, output + [place] * len(found)
        module = Trees.of(grown, output, [0.0] * n_outputs, inputs.shape[1])
        with torch.no_grad():
            loss = training.estimator._objective().loss(module(rows.inputs[0]).float(), rows.target, rows.weights)
        return Fit(module, ({"loss": float(loss)},))

    def _grown(
        self, inputs: Array, target: Array, weights: Array | None, objective: dict[str, Any], seed: int
    ) -> list[Tree]:
        library = lightgbm()
        n = len(inputs)
        settings = {**self._settings(n, seed), **objective}
        rows = library.Dataset(inputs, target, weight=weights, params=settings, free_raw_data=False)
        count = min(self.trees, _TREES_OF_FEW_ROWS)
        if n >= _ROWS_TO_SPLIT:
            stop = library.early_stopping(self.patience, verbose=False)
            found = library.cv(settings, rows, self.trees, folds=list(_folds(n, seed)), callbacks=[stop])
            count = len(next(iter(found.values())))
        return [tree_of(one) for one in library.train(settings, rows, count).dump_model()["tree_info"]]

    def _settings(self, n: int, seed: int) -> dict[str, Any]:
        """What LightGBM is told."""
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "max_depth": self.depth,
            "min_data_in_leaf": max(1, min(self.rows_per_leaf, n // 20)),
            "lambda_l2": self.l2,
            "seed": seed % 2**31,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            # A column with a gap holds the median there, or a level of its own.
            "use_missing": False,
            "verbosity": -1,
        }


def lightgbm() -> ModuleType:
    """Return LightGBM, or say in one sentence that it cannot be loaded."""
    try:
        import lightgbm as library
    except (ImportError, OSError) as error:
        raise MissingDependencyError(
            f"Boosted trees need LightGBM, which cannot be loaded here ({error}); install lightgbm with the OpenMP "
            f"library of your system, or pass learner=Network()."
        ) from error
    return library


def tree_of(described: dict[str, Any]) -> Tree:
    """Read one tree of LightGBM's own description."""
    waiting = [described["tree_structure"]]
    nodes: list[tuple[int, float, int, float]] = []
    for place, node in enumerate(waiting):  # which grows meanwhile
        if "split_feature" in node:
            nodes.append((node["split_feature"], node["threshold"], len(waiting), 0.0))
            waiting += [node["left_child"], node["right_child"]]
        else:
            nodes.append((0, np.inf, place, node["leaf_value"]))
    feature, threshold, left, value = (np.array(part) for part in zip(*nodes, strict=True))
    return Tree(feature, threshold.astype(float), left, value.astype(float))


def _folds(n: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Rows to learn from and rows left out."""
    from sklearn.model_selection import KFold, ShuffleSplit

    if n < _ROWS_FOR_ONE_SPLIT:
        return iter(KFold(_FOLDS, shuffle=True, random_state=seed % 2**32).split(np.zeros(n)))
    return iter(ShuffleSplit(1, test_size=_SHARE, random_state=seed % 2**32).split(np.zeros(n)))
