"""Trees as arrays say what the library that grew them says."""

import lightgbm
import numpy as np
import pytest
import torch

from ciplearn.estimators.networks import LEAF, Tree, Trees
from ciplearn.learners.boosted import tree_of


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).random((500, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def booster(rows):
    target = np.digitize(rows[:, 0] * rows[:, 1] + rows[:, 2], [0.5, 1.0])
    settings = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1, "use_missing": False}
    return lightgbm.train(settings, lightgbm.Dataset(rows, target), 12)


def test_walk_ends_where_lightgbm_does(booster, rows):
    grown = [tree_of(one) for one in booster.dump_model()["tree_info"]]
    assert len(grown) == 36
    trees = Trees.of(grown, [place % 3 for place in range(36)], [0.0] * 3, 4)
    assert np.allclose(trees(torch.from_numpy(rows)).numpy(), booster.predict(rows, raw_score=True), atol=1e-12)
    leaves = grown[4].leaves(rows)
    alone = Trees.of([grown[4]], [0], [1.5], 4)
    assert np.allclose(alone(torch.from_numpy(rows))[:, 0].numpy(), 1.5 + grown[4].value[leaves], atol=1e-12)


def test_a_tree_without_a_split_is_a_constant(rows):
    leaf = Tree(np.array([0]), np.array([LEAF]), np.array([0]), np.array([2.0]))
    assert np.array_equal(Trees.of([leaf], [1], [0.5, 0.5], 4)(torch.from_numpy(rows[:2])), [[0.5, 2.5]] * 2)
    assert np.array_equal(Trees.of([], [], [0.5], 4)(torch.from_numpy(rows[:2])), [[0.5]] * 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [("left", 0), ("left", 10**6), ("feature", 9), ("feature", -1), ("root", -1), ("output", 3), ("value", np.nan)],
)
def test_arrays_that_are_no_trees_are_refused(booster, name, value):
    grown = [tree_of(one) for one in booster.dump_model()["tree_info"]]
    trees = Trees.of(grown, [place % 3 for place in range(36)], [0.0] * 3, 4)
    state = trees.state_dict()
    state[name] = state[name].clone()
    state[name][-1] = value
    with pytest.raises(ValueError, match="trees with"):
        Trees(*trees.shape).load_state_dict(state)
