"""What an estimator predicts with: layers, an invariant path beside them, trees, mixtures; and how they are asked."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ciplearn._core.arguments import entries, whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.estimators.tables import FurtherInputs

Array = np.ndarray[Any, Any]

# Rows per piece of an input, rows per ramp of all inputs, most pieces of an input, rows that their ends are read off.
_ROWS_PER_PIECE, _ROWS_PER_RAMP, _MOST_PIECES, _ROWS_READ = 200, 20, 32, 50_000
_MOST_WEIGHTS = 100_000_000  # networks with more weights would fill the memory
_ROWS_AT_ONCE = 512  # rows predicted at a time: the ramps of a row are hundreds of numbers

# No row goes right of it. Infinity would do the same, but is no weight of a sound model.
LEAF = float(np.finfo(np.float64).max)
_DEEPEST = 256  # trees that are deeper come from a file that was changed


class Ramps(nn.Module):
    """min(max((x − start) / length, 0), 1) for consecutive pieces of each input, beside the inputs themselves.

    A bend, a step or a column of which most rows hold one value is hard to learn from one number in [0, 1], and easy
    from the pieces of its range (Gorishniy et al. 2022 call this a piecewise linear encoding). There are never so many
    that few rows decide about one.
    """

    source: Tensor  # the input that each ramp is of
    start: Tensor
    length: Tensor

    def __init__(self, source: Sequence[int], start: Sequence[float], length: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("source", torch.tensor(list(source), dtype=torch.int64))
        self.register_buffer("start", torch.tensor(list(start), dtype=torch.float32))
        self.register_buffer("length", torch.tensor(list(length), dtype=torch.float32))

    @classmethod
    def of(cls, inputs: Tensor) -> Ramps:  # (n, n_inputs)
        """Read the ends of the pieces off training rows: quantiles of the rows, and of the values that occur.

        The latter tell apart values that few rows hold. Inputs with two values need no pieces.
        """
        order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(0))[:_ROWS_READ]
        read = inputs[order.to(inputs.device)].double().cpu().numpy()
        numbers = {number: ends for number, column in enumerate(read.T) if len(ends := np.unique(column)) > 2}
        n = len(inputs)
        pieces = min(_MOST_PIECES, n // _ROWS_PER_PIECE, n // (_ROWS_PER_RAMP * max(1, len(numbers))))
        source, start, length = [], [], []
        for column, ends in numbers.items() if pieces > 1 else ():
            if len(ends) > pieces + 1:
                of_rows = np.quantile(read[:, column], np.linspace(0, 1, pieces + 1))
                of_values = np.quantile(ends, np.linspace(0, 1, pieces // 2 + 1))
                ends = np.unique(np.concatenate([of_rows, of_values]))
            source += [column] * (len(ends) - 1)
            start += ends[:-1].tolist()
            length += np.diff(ends).tolist()
        return cls(source, start, length)

    def __len__(self) -> int:
        return len(self.source)

    def forward(self, inputs: Tensor) -> Tensor:  # (b, n_inputs) -> (b, n_inputs + ramps)
        """Put the ramps beside the inputs."""
        return torch.cat([inputs, ((inputs[:, self.source] - self.start) / self.length).clamp(0, 1)], dim=1)


def widths_of(hidden: Any) -> tuple[Any, ...]:
    """Read the widths of hidden layers."""
    widths = entries(hidden)
    if widths is None:
        raise InputTypeError(f"hidden must be a sequence of widths, got {hidden!r}; pass for example (64, 64).")
    return tuple(widths)


def check_size(widths: Sequence[int], what: str) -> None:
    """Refuse a network of so many weights that training them fills a machine; ``widths`` are of inputs to outputs."""
    if (weights := sum(before * after for before, after in pairwise(widths))) > _MOST_WEIGHTS:
        size = f"{weights:.1e} weights, more than {_MOST_WEIGHTS:.0e}"
        raise InputError(f"{what} makes a network of {size}; pass narrower layers.")


class Perceptron(nn.Module):
    """Fully connected layers with hyperbolic tangents between them.

    Where an intervention takes a row outside the data, nothing that is learnt from data constrains the prediction.
    Saturating units stay nearly constant there, rectified ones go on linearly. For the same reason inputs should span
    [0, 1] rather than have unit variance: the function that the layers start from is then smooth across the data.

    The layers' output is in units of ``spread`` around ``centre``, the standard deviation and mean of each output.
    Without that, a target that fills a small part of its range is learnt so slowly that a strong penalty wins before
    training has begun. Weights start from ``generator``, or torch's own; the first layer sees ``ramps`` beside inputs.
    """

    draws_from_torch = False
    centre: Tensor
    spread: Tensor

    def __init__(
        self,
        n_inputs: int,
        hidden: Sequence[int],
        n_outputs: int,
        centre: Sequence[float] | None = None,
        spread: Sequence[float] | None = None,
        generator: torch.Generator | None = None,
        ramps: Ramps | None = None,
    ) -> None:
        super().__init__()
        self.n_inputs = n_inputs
        self.hidden = tuple(whole(width, "Each width in hidden", minimum=1) for width in widths_of(hidden))
        # Without a hidden layer the function is linear, and is meant to be.
        self.ramps = ramps if ramps is not None and len(ramps) and self.hidden else None
        self.n_outputs = n_outputs
        check_size((n_inputs, *self.hidden, n_outputs), f"hidden={self.hidden}")
        self.register_buffer("centre", torch.zeros(n_outputs) if centre is None else torch.tensor(list(centre)).float())
        self.register_buffer("spread", torch.ones(n_outputs) if spread is None else torch.tensor(list(spread)).float())
        layers: list[nn.Module] = []
        for width in self.hidden:
            layers += [_linear(n_inputs, width, generator), nn.Tanh()]
            n_inputs = width
        self.layers = nn.Sequential(*layers, _linear(n_inputs, n_outputs, generator))
        if self.ramps is not None:
            # They weigh nothing at first: the function that the layers start from stays smooth, and ramps come in where
            # the rows ask for them.
            weight: Tensor = self.layers[0].weight  # type: ignore[assignment]
            none = weight.new_zeros(len(weight), len(self.ramps))
            self.layers[0].weight = nn.Parameter(torch.cat([weight, none], dim=1))

    def forward(self, inputs: Tensor) -> Tensor:  # (b, n_inputs) -> (b, n_outputs)
        """Evaluate the network."""
        seen = inputs if self.ramps is None else self.ramps(inputs)
        return torch.addcmul(self.centre, self.layers(seen), self.spread)


class InvariantPath(nn.Module):
    """Ŷ = c(inputs that do not descend from A) + r(all inputs).

    No penalty can flatten c, which never changes with A: a strong penalty ends at the best predictor from
    non-descendants and not at a constant. Both are trained together: a c that is trained beforehand and kept leaves r a
    residual which it does not learn on outcomes with heavy tails. ``path`` is c, with inputs at ``places`` of the
    table; ``rest`` is r, which takes the table and whatever else there is.
    """

    draws_from_torch = False
    places: Tensor

    def __init__(self, path: Perceptron, rest: nn.Module, places: Sequence[int]) -> None:
        super().__init__()
        self.path, self.rest = path, rest
        self.register_buffer("places", torch.tensor(list(places)))

    def forward(self, table: Tensor, *further: Tensor) -> Tensor:  # (b, n_inputs) -> (b, n_outputs)
        """Add both parts."""
        return self.path(table[:, self.places]) + self.rest(table, *further)


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
    """Ŷ = base + the sum of the trees' values at a row's leaves; nodes stand in one array, each behind its parent."""

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
        for name, size in (("feature", n_nodes), ("left", n_nodes), ("root", n_trees), ("output", n_trees)):
            self.register_buffer(name, torch.zeros(size, dtype=torch.int64))
        for name, size in (("threshold", n_nodes), ("value", n_nodes), ("base", n_outputs)):
            self.register_buffer(name, torch.zeros(size, dtype=torch.float64))
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
        return self.base.expand(inputs.shape[0], -1).index_add(1, self.output, self.value[node])


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


class LineNetwork(nn.Module):
    """Ŷ = g(inputs that do not descend from A) + s (f(all inputs) − g), on the scale of the predictions.

    ``path`` is g, or a `Constant`, and ``rest`` is f, the unconstrained network; ``share`` is s², the share of its
    variance of counterfactuals that is kept. Of ``labels`` probabilities are mixed, and returned as logits.
    """

    places: Tensor

    def __init__(self, path: nn.Module, rest: nn.Module, places: Sequence[int], share: float, labels: bool) -> None:
        super().__init__()
        self.path, self.rest, self.share, self.labels = path, rest, float(share), bool(labels)
        self.register_buffer("places", torch.tensor(list(places), dtype=torch.int64))

    def forward(self, table: Tensor) -> Tensor:  # (b, n_inputs) -> (b, n_outputs)
        """Mix both answers."""
        s = math.sqrt(self.share)
        return _mixed([self.path(table[:, self.places]), self.rest(table)], [1 - s, s], self.labels)


class MeanNetwork(nn.Module):
    """Ŷ = (f₁ + … + f_k) / k; it varies with A, and with the chance of training, at most as they do on average.

    Of ``labels`` probabilities are averaged, and returned as logits.
    """

    def __init__(self, networks: Sequence[nn.Module], labels: bool) -> None:
        super().__init__()
        self.networks, self.labels = nn.ModuleList(networks), bool(labels)

    def forward(self, table: Tensor) -> Tensor:  # (b, n_inputs) -> (b, n_outputs)
        """Average the answers."""
        share = 1 / len(self.networks)
        return _mixed([network(table) for network in self.networks], [share] * len(self.networks), self.labels)


def mean_of(networks: Sequence[nn.Module], labels: bool) -> nn.Module:
    """Return the mean of networks; one is its own mean."""
    return networks[0] if len(networks) == 1 else MeanNetwork(networks, labels).eval()


def _mixed(outputs: Sequence[Tensor], weights: Sequence[float], labels: bool) -> Tensor:  # k x (b, q) -> (b, q)
    """Σ wᵢ fᵢ; of probabilities where outputs are logits, as logits again."""
    alone = outputs[0].shape[1] == 1
    if labels:
        outputs = [each.sigmoid() if alone else each.softmax(dim=1) for each in outputs]
    mean = torch.stack([weight * each for weight, each in zip(weights, outputs, strict=True)]).sum(dim=0)
    if not labels:
        return mean
    return torch.logit(mean, eps=1e-7) if alone else mean.clamp_min(1e-12).log()


class Constant(nn.Module):
    """The same outputs for every row."""

    values: Tensor

    def __init__(self, values: Tensor) -> None:
        super().__init__()
        self.register_buffer("values", values)

    def forward(self, table: Tensor) -> Tensor:  # (b, anything) -> (b, n_outputs)
        """Repeat the outputs."""
        return self.values.expand(len(table), -1)


OURS = (Perceptron, InvariantPath, LineNetwork, MeanNetwork, Trees)  # networks that users did not write


def network_of(module: Any) -> nn.Module:
    """Return a copy of a user's network, or what a user's function makes."""
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    try:
        made = module() if callable(module) else module
    except TypeError as error:
        why = f"module must be a network or a function without arguments, got {module!r}: {error}"
        raise InputTypeError(f"{why}; pass an instance, or a lambda.") from error
    if not isinstance(made, nn.Module):
        raise InputTypeError(f"module must be a torch.nn.Module or a function returning one, got {made!r}; pass one.")
    return made


def device_of(module: nn.Module) -> torch.device:
    """Return where a network is."""
    return next(chain(module.parameters(), module.buffers())).device


def outputs(module: nn.Module, features: Tensor, further: FurtherInputs) -> Tensor:  # (n, width) -> (n, k)
    """Return what a network says of rows, a piece at a time."""
    device = device_of(module)
    if isinstance(module, OURS) and isinstance(getattr(module, "rest", module), OURS):
        # In single precision a row's prediction depends, in the last digit, on the rows it is predicted with.
        module, features = _in_double(module), features.double()
    pieces = []
    with torch.no_grad():
        for part in torch.arange(len(features)).split(_ROWS_AT_ONCE):
            pieces.append(module(*(one.to(device) for one in (features[part], *further.read(part)))))
    return torch.cat(pieces)


def _in_double(module: nn.Module) -> nn.Module:
    """A network of ours in double precision, to be asked and not changed: what is double already is shared.

    Copying a network as a whole takes longer than asking it about some hundred rows.
    """

    def doubled(part: Any) -> Any:
        if isinstance(part, nn.Module):
            return _in_double(part)
        return part if part is None or not part.is_floating_point() else part.detach().double()

    made = copy.copy(module)
    for kind in ("_parameters", "_buffers", "_modules"):
        vars(made)[kind] = {name: doubled(part) for name, part in vars(module)[kind].items()}
    return made


def _linear(n_inputs: int, n_outputs: int, generator: torch.Generator | None) -> nn.Linear:
    """A layer as torch initialises it, from a generator of one's own."""
    # Weights that are nowhere draw nothing from torch's own generator.
    layer = nn.Linear(n_inputs, n_outputs, device="meta")
    layer.weight = nn.Parameter(torch.empty(n_outputs, n_inputs))
    layer.bias = nn.Parameter(torch.empty(n_outputs))
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
    bound = 1 / math.sqrt(n_inputs) if n_inputs else 0.0
    nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
    return layer
