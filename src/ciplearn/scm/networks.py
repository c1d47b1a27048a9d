"""Small networks for estimated mechanisms, and monotone flows: any continuous noise that enters invertibly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
import torch
from numpy.random import Generator
from scipy.stats import norm
from torch import Tensor, nn

from ciplearn._core.arguments import positive, whole
from ciplearn._core.errors import InputError, MissingDependencyError, NumericalError
from ciplearn._core.tensors import Adam, torch_seeded
from ciplearn.scm.kinds import Array, Categories, kept
from ciplearn.scm.mechanism import Design, Mechanism, MechanismRecipe, NodeSample, Parents

# Training ends after so many epochs in which the loss of held-out rows has not fallen by this share.
_PATIENCE, _GAIN = 4, 1e-3

# Rows sent through a flow at a time.
_BLOCK = 65_536


@kept
@dataclass(frozen=True)
class Scaler:
    """Standardisation of columns."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, matrix: Array) -> Scaler:  # (n, c)
        """Read mean and standard deviation off the rows; a constant column keeps its unit."""
        spread = matrix.std(axis=0)
        return cls(matrix.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def tensor(self, matrix: Array, dtype: torch.dtype = torch.float32) -> Tensor:  # (n, c)
        """Return standardised rows."""
        return torch.as_tensor((matrix - self.mean) / self.spread, dtype=dtype)

    def inputs(self, design: Design, parts: list[Array]) -> Tensor:  # (n, c)
        """Return the standardised rows of a design's parts, as `tensor` does for its matrix."""
        return torch.from_numpy(design.standardised(parts, self.mean, self.spread, np.float32))

    def undo(self, matrix: Array) -> Array:
        """Return rows in their own units."""
        return np.asarray(matrix * self.spread + self.mean)


@dataclass(frozen=True)
class AdamSettings:
    """Settings of Adam."""

    epochs: int
    batch_size: int
    learning_rate: float


def train(
    make: Callable[[], nn.ModuleDict],
    rows: list[Tensor],
    loss_of: Callable[[nn.ModuleDict, list[Tensor], torch.Generator], Tensor],
    training: AdamSettings,
    generator: Generator,
    held_out: list[Tensor] | None = None,
) -> tuple[nn.ModuleDict, int]:
    """Minimise the loss of fresh networks by Adam on shuffled batches; return them and how many epochs they saw.

    With held-out rows, training ends when it no longer helps them, and the networks are those that served them best.
    """
    seed = int(generator.integers(2**31))
    draws = torch.Generator().manual_seed(seed)
    # Layers draw their first weights from torch's global state: lend them a seeded one and put the old one back.
    with torch_seeded(seed):
        networks = make()
    n = rows[0].shape[0]
    whole = _joined(networks)
    optimiser = Adam([whole], lr=training.learning_rate)
    least, best, epochs = float("inf"), None, training.epochs
    for epoch in range(training.epochs):
        order = torch.randperm(n, generator=draws)
        # One gather per epoch: batches are views of the shuffled rows.
        for batch in zip(*(part[order].split(training.batch_size) for part in rows), strict=True):
            loss = loss_of(networks, list(batch), draws)
            optimiser.zero_grad(set_to_none=False)
            loss.backward()
            optimiser.step()
        if not torch.isfinite(loss):
            why = f"Training diverged: the loss is {float(loss):.3g} after epoch {epoch + 1}"
            raise NumericalError(f"{why}; lower the learning rate below {training.learning_rate:g}.")
        if held_out is not None:
            with torch.no_grad():
                left = float(loss_of(networks, held_out, torch.Generator().manual_seed(seed)))
            if left < least - _GAIN * abs(least) or best is None:
                least, best, epochs = left, whole.detach().clone(), epoch + 1
            elif epoch + 1 >= epochs + _PATIENCE:
                break
    if best is not None:
        whole.data.copy_(best)
    for weights in networks.parameters():
        # Apart again, so that each is kept and sent without all others.
        weights.data, weights.grad = weights.data.clone(), None
    return networks.eval().requires_grad_(False), epochs


def _joined(networks: nn.ModuleDict) -> nn.Parameter:
    """Move all weights and their gradients into one vector each: Adam then takes few steps, on all weights at once."""
    separate = list(networks.parameters())
    whole = nn.Parameter(nn.utils.parameters_to_vector(separate).detach())
    whole.grad = torch.zeros_like(whole)
    nn.utils.vector_to_parameters(whole.data, separate)
    for weights, gradient in zip(separate, whole.grad.split([part.numel() for part in separate]), strict=True):
        weights.grad = gradient.view_as(weights)
    return whole


def filled(network: nn.Module, weights: Mapping[str, Array]) -> nn.Module:
    """Give a network the weights of a saved one."""
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
    return network.eval().requires_grad_(False)


def tanh_network(inputs: int, hidden: int, outputs: int) -> nn.Module:
    """Two linear layers with a tanh between."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


class HoldsTanhNetwork:
    """A part of a model whose field ``network`` is a `tanh_network`."""

    @classmethod
    def restored(cls, fields: dict[str, Any]) -> Self:
        """Make one from its saved fields."""
        weights = fields["network"]
        first, last = weights["0.weight"], weights["2.weight"]
        network = filled(tanh_network(first.shape[1], first.shape[0], last.shape[0]), weights)
        return cls(**{**fields, "network": network})


@dataclass(frozen=True)
class MonotoneFlow(MechanismRecipe):
    """V = f̂(pa, U), U standard normal, f̂ increasing in U: a conditional neural spline flow [durkan2019].

    Unlike additive noise, spread and shape of the noise may depend on the parents. For a vector the flow is triangular:
    each number is increasing in its own noise given the numbers before it.

    ``transforms``, ``bins``, ``hidden``: layers of the flow, pieces of each spline, width of the two layers that read
    the parents. The others are those of Adam.

    >>> from ciplearn.scm import MonotoneFlow
    >>> MonotoneFlow().label  # pass it on: fit_scm(graph, rows, mechanisms={"L": MonotoneFlow()})
    'monotone flow'
    """

    transforms: int = 2
    bins: int = 8
    hidden: int = 32
    epochs: int = 60
    batch_size: int = 256
    learning_rate: float = 3e-3

    def __post_init__(self) -> None:
        for name in ("transforms", "bins", "hidden", "epochs", "batch_size"):
            whole(getattr(self, name), name, minimum=1)
        positive(self.learning_rate, "learning_rate")

    label = "monotone flow"

    def fit(self, sample: NodeSample, generator: Generator, like: Any = None) -> Mechanism:
        """Fit by maximum likelihood."""
        if isinstance(sample.kind, Categories):
            raise InputError(f"{sample.node} holds labels, which a flow cannot make; use Multinomial for this node.")
        columns = sample.target.reshape(sample.n, -1)
        inputs, target = Scaler.of(sample.matrix), Scaler.of(columns)
        shape = FlowShape(target.mean.size, inputs.mean.size, self.transforms, self.bins, self.hidden)
        rows = [inputs.tensor(sample.matrix, torch.float64), target.tensor(columns, torch.float64)]
        settings = AdamSettings(self.epochs, self.batch_size, self.learning_rate)

        def minus_likelihood(networks: nn.ModuleDict, batch: list[Tensor], _: torch.Generator) -> Tensor:
            context, wanted = batch
            return -networks["flow"](context if context.shape[1] else None).log_prob(wanted).mean()

        networks, _ = train(shape.networks, rows, minus_likelihood, settings, generator)
        return FittedFlow(sample.design, inputs, target, shape, networks["flow"], sample.target.ndim == 2)


@kept
@dataclass(frozen=True)
class FlowShape:
    """What it takes to build a flow."""

    features: int
    context: int
    transforms: int
    bins: int
    hidden: int

    def networks(self) -> nn.ModuleDict:
        """Return a flow that was not trained."""
        try:
            zuko = import_module("zuko")
        except ImportError as error:
            raise MissingDependencyError(
                "MonotoneFlow needs zuko, which is not installed; install it with pip install 'ciplearn[scm]', or use "
                "AdditiveNoise."
            ) from error
        sizes = (self.hidden, self.hidden)
        flow = zuko.flows.NSF(self.features, self.context, self.bins, transforms=self.transforms, hidden_features=sizes)
        # Single precision would lose the observed row at the sixth digit on the way to the noise and back.
        return nn.ModuleDict({"flow": flow.double()})


@kept
@dataclass(frozen=True)
class FittedFlow(Mechanism):
    """V = f̂(pa, U) with its inverse."""

    design: Design
    inputs: Scaler
    target: Scaler
    shape: FlowShape
    flow: nn.Module
    vector: bool

    @classmethod
    def restored(cls, fields: dict[str, Any]) -> Self:
        """Make one from its saved fields."""
        return cls(**{**fields, "flow": filled(fields["shape"].networks()["flow"], fields["flow"])})

    def draw(self, n: int, generator: Generator) -> Array:
        """Standard normal."""
        return generator.standard_normal((n, self.target.mean.size))

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """f̂(pa, u)."""
        value = self.target.undo(self._through(parents, torch.as_tensor(noise), "inverse"))
        return value if self.vector else value[:, 0]

    def recover(self, parents: Parents, value: Array) -> Array:  # (n, d)
        """Return the image under the flow."""
        return self._through(parents, self.target.tensor(value.reshape(len(value), -1), torch.float64), "forward")

    def log_density(self, parents: Parents, value: Array) -> Array:
        """Log-likelihood of the flow, in the value's units."""
        density = self._through(parents, self.target.tensor(value.reshape(len(value), -1), torch.float64), "density")
        return np.asarray(density - np.log(self.target.spread).sum())

    def quantiles(self, parents: Parents, levels: Array) -> Array | None:  # (k,) -> (n, k)
        """Send the quantiles of the normal law through the flow; None for a vector, whose numbers share noise."""
        if self.vector:
            return None
        n = len(next(iter(parents.values())))
        return np.stack([self.evaluate(parents, np.full((n, 1), level)) for level in norm.ppf(levels)], axis=1)

    def ranks(self, parents: Parents, value: Array, generator: Generator) -> Array:  # (n,) or (n, d)
        """Φ(u)."""
        return np.asarray(norm.cdf(self.recover(parents, value)))

    def _through(self, parents: Parents, rows: Tensor, what: str) -> Array:
        context = self.inputs.tensor(self.design(parents), torch.float64) if self.design.nodes else None
        pieces = [rows[:0]]
        with torch.no_grad():
            for start in range(0, len(rows), _BLOCK):
                law = self.flow(None if context is None else context[start : start + _BLOCK])
                way = {"density": law.log_prob, "forward": law.transform, "inverse": law.transform.inv}[what]
                pieces.append(way(rows[start : start + _BLOCK]))
        return np.asarray(torch.cat(pieces[1:] or pieces).numpy())
