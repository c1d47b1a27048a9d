"""Boosted trees, grown by LightGBM and kept as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ciplearn._core.errors import MissingDependencyError
from ciplearn._core.numbers import non_negative, positive, whole
from ciplearn.estimators.learner import Learner, Training, row_weights
from ciplearn.estimators.trees import Tree, Trees
from ciplearn.learners.penalised_trees import lightgbm, penalised_trees, tree_of
from ciplearn.learning.loop import Fit
from ciplearn.learning.streamed_rows import Rows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Boosted(Learner):
    """Boosted trees: many small ones, each of which mends what those before it leave.

    Rows that are held out say how many there are; below 4 000 rows three times as many are grown, each third stopped by
    other rows, and their mean predicts. With a penalty the step of each tree is measured, whatever the learning rate.
    One thread, so that the same seed gives the same trees.

    Parameters
    ----------
    trees : int
        At most as many.
    learning_rate : float
        What part of its correction each tree makes, where nothing is penalised.
    leaves, depth : int
        Of each tree, at most.
    rows_per_leaf : int
        At least; of few rows a twentieth.
    l2 : float
        What is added to the rows of a leaf when its value is divided by their number.
    patience : int
        Stop after this many trees that do not help on the rows held out.
    validation_fraction : float
        What part of the rows is held out.

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
        settings = self._settings(len(inputs), training.settings.seed)
        if training.is_penalised:
            return penalised_trees(training, settings, self.trees, self.patience)
        rows, judge = training.split.rows, training.split.validation
        classes = len(getattr(training.estimator, "classes_", ()))
        n_outputs = classes if classes > 2 else 1 if classes else rows.target.shape[1]
        if classes > 2:
            settings |= {"objective": "multiclass", "num_class": classes}
        else:
            settings["objective"] = "binary" if classes else "regression"
        library = lightgbm()
        grown: list[Tree] = []
        output: list[int] = []
        for place in range(1 if classes else n_outputs):
            learnt = library.Dataset(inputs, _column(rows, place), weight=weights, params=settings)
            given: dict[str, Any] = {}
            if judge is not None:
                others = judge.rows.inputs[0].numpy(), _column(judge.rows, place)
                given["valid_sets"] = [learnt.create_valid(*others, weight=row_weights(judge.rows))]
                given["callbacks"] = [library.early_stopping(self.patience, verbose=False)]
            booster = library.train(settings, learnt, self.trees, **given)
            found = [tree_of(one) for one in booster.dump_model()["tree_info"]]
            grown += found
            output += [i % n_outputs for i in range(len(found))] if classes else [place] * len(found)
        return training.fitted(Trees.of(grown, output, [0.0] * n_outputs, inputs.shape[1]))

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


def _column(rows: Rows, place: int) -> Array:  # (n,)
    target = rows.target.double().cpu().numpy()
    return target if target.ndim == 1 else target[:, place]
