"""Decision trees as arrays that torch walks: a fitted model needs no library of trees, and its file is numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Array = np.ndarray[Any, Any]

# No row goes right of it. Infinity would do the same, but is no weight of a sound model.
LEAF = float(np.finfo(np.float64).max)

# Trees that are deeper come from a file that was changed.
_DEEPEST = 256


@dataclass(frozen=True)
class Tree:
    """One tree: node 0 is the root, the right child stands behind the left one, and a leaf leads to itself.

    A row goes left where its feature is at most the threshold, which is `LEAF` in a leaf.
    """

    feature: Array  # (nodes,) each
    threshold: Array
    left: Array
    value: Array

    def leaves(self, rows: Array) -> Array:  # (n, features) -> (n,)
        """Return the leaf of each row."""
        node, every = np.zeros(len(rows), dtype=np.int64), np.arange(len(rows))
        while True:
            reached = self.left[node] + (rows[every, self.feature[node]] > self.threshold[node])
            if np.array_equal(reached, node):
                return node
            node = reached


class Trees(nn.Module):
    """Ŷ = base + the sum of the trees' values at a row's leaves.

    The nodes of all trees stand in one array, each behind its parent.
    """

    feature: Tensor
    threshold: Tensor
    left: Tensor
    value: Tensor
    root: Tensor
    output: Tensor
    base: Tensor

    def __init__(self, n_inputs: int, n_nodes: int, n_trees: int, n_outputs: int) -> None:
        super().__init__()
        self.n_inputs = n_inputs
        for name in ("feature", "left"):
            self.register_buffer(name, torch.zeros(n_nodes, dtype=torch.int64))
        for name in ("threshold", "value"):
            self.register_buffer(name, torch.zeros(n_nodes, dtype=torch.float64))
        for name in ("root", "output"):
            self.register_buffer(name, torch.zeros(n_trees, dtype=torch.int64))
        self.register_buffer("base", torch.zeros(n_outputs, dtype=torch.float64))
        self._depth = 0
        self.register_load_state_dict_post_hook(_settle)

    @classmethod
    def of(cls, trees: Sequence[Tree], output: Sequence[int], base: Sequence[float], n_inputs: int) -> Trees:
        """Join trees, each of which adds to one output."""
        sizes = [len(tree.value) for tree in trees]
        root = np.cumsum([0, *sizes])[:-1]
        state = {
            name: np.concatenate([getattr(tree, name) for tree in trees] or [np.zeros(0)])
            for name in ("feature", "threshold", "left", "value")
        }
        state |= {"left": state["left"] + np.repeat(root, sizes), "root": root}
        state |= {"output": np.array(output), "base": np.array(base)}
        made = cls(n_inputs, sum(sizes), len(trees), len(base))
        made.load_state_dict({name: torch.from_numpy(part).to(getattr(made, name)) for name, part in state.items()})
        return made.eval()

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Inputs, nodes, trees and outputs, from which an empty one is made."""
        return self.n_inputs, len(self.value), len(self.root), len(self.base)

    def forward(self, inputs: Tensor) -> Tensor:  # (b, n_inputs) -> (b, n_outputs)
        """Walk every row down every tree."""
        if inputs.shape[1] != self.n_inputs:
            raise ValueError(f"trees on {self.n_inputs} inputs, got {inputs.shape[1]}")
        inputs = inputs.double()
        node = self.root.expand(inputs.shape[0], -1)
        for _ in range(self._depth):
            node = self.left[node] + (inputs.gather(1, self.feature[node]) > self.threshold[node])
        start = self.base.expand(inputs.shape[0], -1)
        return start.index_add(1, self.output, self.value[node])


def _settle(trees: Trees, _: Any) -> None:
    """Count the steps of the longest walk; refuse nodes that no walk could end in."""
    n_inputs, n_nodes, _, n_outputs = trees.shape
    last = trees.left + (trees.threshold < LEAF)
    if (trees.left < torch.arange(n_nodes, device=last.device)).any() or torch.isnan(trees.threshold).any():
        raise ValueError("trees with a node that leads back")
    whole = (trees.feature, n_inputs), (last, n_nodes), (trees.root, n_nodes), (trees.output, n_outputs)
    if any(((part < 0) | (part >= most)).any() for part, most in whole):
        raise ValueError("trees with a node, a feature or an output that is none")
    if not (torch.isfinite(trees.value).all() and torch.isfinite(trees.base).all()):
        raise ValueError("trees with a value that is no number")
    trees._depth, reached = 0, trees.root.unique()
    while len(step := torch.cat([trees.left[reached], last[reached], reached]).unique()) > len(reached):
        trees._depth, reached = trees._depth + 1, step
        if trees._depth > _DEEPEST:
            raise ValueError("trees that are too deep")
