"""The default network, the invariant path beside a network, networks of users' own; how they are asked, and go on."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ciplearn._core.arguments import entries, whole
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import CiplearnError, GraphError, InputError, InputTypeError
from ciplearn._core.tensors import torch_seeded
from ciplearn._core.wording import as_list
from ciplearn.estimators.tables import FurtherInputs
from ciplearn.estimators.trees import Trees

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator


# Rows per piece of an input, rows per ramp of all inputs together, most pieces of an input, and rows that their ends
# are read off.
_ROWS_PER_PIECE, _ROWS_PER_RAMP, _MOST_PIECES, _ROWS_READ = 200, 20, 32, 50_000

# Networks with more weights would fill the memory.
_MOST_WEIGHTS = 100_000_000

# Rows predicted at a time: the ramps of a row are hundreds of numbers.
_ROWS_AT_ONCE = 512

# Columns, levels or classes that a refusal names.
_NAMED = 12


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
        values = {place: np.unique(column) for place, column in enumerate(read.T)}
        numbers = {place: found for place, found in values.items() if len(found) > 2}
        n = len(inputs)
        pieces = min(_MOST_PIECES, n // _ROWS_PER_PIECE, n // (_ROWS_PER_RAMP * max(1, len(numbers))))
        source, start, length = [], [], []
        for place, ends in numbers.items() if pieces > 1 else ():
            if len(ends) > pieces + 1:
                of_rows = np.quantile(read[:, place], np.linspace(0, 1, pieces + 1))
                of_values = np.quantile(ends, np.linspace(0, 1, pieces // 2 + 1))
                ends = np.unique(np.concatenate([of_rows, of_values]))
            source += [place] * (len(ends) - 1)
            start += ends[:-1].tolist()
            length += np.diff(ends).tolist()
        return cls(source, start, length)

    def __len__(self) -> int:
        return len(self.source)

    def forward(self, inputs: Tensor) -> Tensor:  # (b, n_inputs) -> (b, n_inputs + ramps)
        """Put the ramps beside the inputs."""
        return torch.cat([inputs, ((inputs[:, self.source] - self.start) / self.length).clamp(0, 1)], dim=1)


def check_size(widths: Sequence[int], what: str) -> None:
    """Refuse a network of so many weights that training them fills a machine; ``widths`` are of inputs to outputs."""
    weights = sum(before * after for before, after in pairwise(widths))
    if weights > _MOST_WEIGHTS:
        raise InputError(
            f"{what} makes a network of {weights:.1e} weights, more than {_MOST_WEIGHTS:.0e}; pass narrower layers."
        )


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
        widths = entries(hidden)
        if widths is None:
            raise InputTypeError(f"hidden must be a sequence of widths, got {hidden!r}; pass for example (64, 64).")
        self.hidden: tuple[int, ...] = tuple(whole(width, "Each width in hidden", minimum=1) for width in widths)
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
    """Ŷ = (f₁ + … + f_k) / k, on the scale of the predictions.

    The mean varies with A, and with the chance of training, at most as the networks do on average. Of ``labels``
    probabilities are averaged, and returned as logits.
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


# Networks that users did not write.
OURS = (Perceptron, InvariantPath, LineNetwork, MeanNetwork, Trees)


def network_of(module: Any) -> nn.Module:
    """Return a copy of a user's network, or what a user's function makes."""
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    try:
        made = module() if callable(module) else module
    except TypeError as error:
        raise InputTypeError(
            f"module must be a network or a function without arguments, got {module!r}: {error}; pass an instance, or "
            f"a lambda."
        ) from error
    if not isinstance(made, nn.Module):
        raise InputTypeError(
            f"module must be a torch.nn.Module, or a function that returns one, got {made!r}; pass an instance."
        )
    return made


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Make a user's network from a seed; torch's own generator, from which its layers draw, is put back afterwards."""
    with torch_seeded(seed):
        return make()


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
            inputs = (features[part], *further.read(part))
            pieces.append(module(*(one.to(device) for one in inputs)))
    return torch.cat(pieces)


def _in_double(module: nn.Module) -> nn.Module:
    """A network of ours in double precision, to be asked and not changed: what is double already is shared.

    Copying a network as a whole takes longer than asking it about some hundred rows.
    """
    made = copy.copy(module)
    for kind, doubled in (("_parameters", _doubled), ("_buffers", _doubled), ("_modules", _in_double)):
        parts = vars(module)[kind].items()
        vars(made)[kind] = {name: None if part is None else doubled(part) for name, part in parts}
    return made


def _doubled(part: Tensor) -> Tensor:
    return part.detach().double() if part.is_floating_point() else part


@contextmanager
def naming_inputs(encoding: TableEncoding, n_further: int) -> Iterator[None]:
    """Add to an error from inside a network what the network was called with."""
    try:
        yield
    except CiplearnError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        columns = ", ".join(f"{column.name} ({column.width})" for column in encoding.columns)
        error.add_note(
            f"The network was called with the encoded table, {encoding.width} columns wide: {columns}; and with "
            f"{n_further} further inputs from tensors=."
        )
        raise


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


@contextmanager
def going_on(estimator: CIPEstimator) -> Iterator[Callable[[], None]]:
    """Keep the last fit where the next one is refused; without a warm start there is nothing to keep.

    Yields a function to call when the estimator knows its columns and its target, which refuses others than the last.
    """
    known = dict(vars(estimator))
    if not estimator.warm_start or "module_" not in known:
        yield lambda: None
        return
    try:
        yield partial(_refuse_others, known, vars(estimator))
    except (InputError, GraphError):
        estimator.__dict__.clear()
        estimator.__dict__.update(known)
        raise


def _refuse_others(known: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    last, own = _task(known), _task(found)
    for what in last:
        if last[what] != own[what]:
            raise InputError(
                f"A warm start goes on from a network whose {what} are {_shown(last[what])}, got {_shown(own[what])}; "
                f"pass the same {what}, or warm_start=False."
            )


def _task(known: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What a network takes and says."""
    columns = known["encoding_"].columns
    task = {"inputs": [column.name for column in columns]}
    task |= {f"values of {column.name!r}": list(getattr(column, "levels", ["numbers"])) for column in columns}
    if "classes_" in known:
        return task | {"classes": known["classes_"].tolist()}
    outputs = len(known["target_low_"])
    return task | {"outcomes": ["one number" if outputs == 1 else f"{outputs} numbers"]}


def _shown(values: list[Any]) -> str:
    more = [f"{len(values) - _NAMED} more"] if len(values) > _NAMED else []
    return as_list([*map(str, values[:_NAMED]), *more])
