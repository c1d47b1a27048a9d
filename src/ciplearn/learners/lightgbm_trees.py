"""LightGBM, and its trees as arrays."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from ciplearn._core.errors import MissingDependencyError
from ciplearn.estimators.trees import LEAF, Tree


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
            nodes.append((0, LEAF, place, node["leaf_value"]))
    feature, threshold, left, value = (np.array(part) for part in zip(*nodes, strict=True))
    return Tree(feature, threshold.astype(float), left, value.astype(float))
