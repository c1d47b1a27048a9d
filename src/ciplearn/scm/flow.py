"""Monotone flows: any continuous noise that enters invertibly. Needs the extra ``ciplearn[scm]``."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
import torch
from numpy.random import Generator
from scipy.stats import norm
from torch import Tensor, nn

from ciplearn._core.errors import InputError, MissingDependencyError
from ciplearn._core.numbers import positive, whole
from ciplearn.scm.design import Design
from ciplearn.scm.kept import kept
from ciplearn.scm.kinds import Array, Categories
from ciplearn.scm.mechanism import Mechanism, Parents
from ciplearn.scm.networks import Scaler, Training, filled, train
from ciplearn.scm.recipe import NodeSample, Recipe

# Rows sent through a flow at a time.
_BLOCK = 65_536


@dataclass(frozen=True)
class MonotoneFlow(Recipe):
    """V = f̂(pa, U), U standard normal, f̂ increasing in U: a conditional neural spline flow [durkan2019].

    Unlike additive noise, spread and shape of the noise may depend on the parents. For a vector the flow is triangular:
    each number is increasing in its own noise given the numbers before it.

    Parameters
    ----------
    transforms, bins, hidden : int
        Layers of the flow, pieces of each spline, width of the two layers that read the parents.
    epochs, batch_size, learning_rate
        Of Adam.

    Examples
    --------
    >>> from ciplearn.scm import MonotoneFlow
    >>> recipe = {"L": MonotoneFlow()}  # pass it on: fit_scm(graph, rows, mechanisms=recipe)
    >>> recipe["L"].label
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

    @property
    def label(self) -> str:
        """What the report calls it."""
        return "monotone flow"

    def fit(self, sample: NodeSample, generator: Generator) -> Mechanism:
        """Fit by maximum likelihood."""
        if isinstance(sample.kind, Categories):
            raise InputError(f"{sample.node} holds labels, which a flow cannot make; use Multinomial for this node.")
        problem = _FlowTraining(sample, self)
        networks, _ = train(problem, Training(self.epochs, self.batch_size, self.learning_rate), generator)
        return FittedFlow(
            sample.design, problem.inputs, problem.target, problem.shape, networks["flow"], sample.target.ndim == 2
        )


@kept
@dataclass(frozen=True)
class FlowShape:
    """What it takes to build a flow."""

    features: int
    context: int
    transforms: int
    bins: int
    hidden: int

    def network(self) -> nn.Module:
        """Return a flow that was not trained."""
        flow = _zuko().flows.NSF(
            features=self.features,
            context=self.context,
            transforms=self.transforms,
            bins=self.bins,
            hidden_features=(self.hidden, self.hidden),
        )
        # Single precision would lose the observed row at the sixth digit on the way to the noise and back.
        return flow.double()


class _FlowTraining:
    """What one flow is trained on."""

    def __init__(self, sample: NodeSample, recipe: MonotoneFlow) -> None:
        self.sample = sample
        self.inputs = Scaler.of(sample.matrix if sample.parents else None)
        self.target = Scaler.of(sample.target.reshape(sample.n, -1))
        self.shape = FlowShape(
            self.target.mean.size, self.inputs.mean.size, recipe.transforms, recipe.bins, recipe.hidden
        )

    def networks(self) -> nn.ModuleDict:
        return nn.ModuleDict({"flow": self.shape.network()})

    def tensors(self) -> list[Tensor]:
        sample = self.sample
        matrix = sample.matrix if sample.parents else np.zeros((sample.n, 0))
        target = sample.target.reshape(sample.n, -1)
        return [self.inputs.tensor(matrix, torch.float64), self.target.tensor(target, torch.float64)]

    def loss(self, networks: nn.ModuleDict, batch: list[Tensor], generator: torch.Generator) -> Tensor:
        context = batch[0] if batch[0].shape[1] else None
        return -networks["flow"](context).log_prob(batch[1]).mean()


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
        return cls(**{**fields, "flow": filled(fields["shape"].network(), fields["flow"])})

    def draw(self, n: int, generator: Generator) -> Array:
        """Standard normal."""
        return generator.standard_normal((n, self.target.mean.size))

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """f̂(pa, u)."""
        values = self._through(parents, torch.as_tensor(noise), "inverse")
        value = self.target.undo(values)
        return value if self.vector else value[:, 0]

    def recover(self, parents: Parents, value: Array) -> Array:  # (n, d)
        """Return the noise, the image under the flow."""
        return self._through(parents, self._standard(value), "forward")

    def log_density(self, parents: Parents, value: Array) -> Array:
        """Log-likelihood of the flow, in the value's own units."""
        density = self._through(parents, self._standard(value), "density")
        return np.asarray(density - np.log(self.target.spread).sum())

    def quantiles(self, parents: Parents, levels: Array) -> Array | None:  # (k,) -> (n, k)
        """Send the quantiles of the normal law through the flow; None for a vector, whose numbers share noise."""
        if self.vector:
            return None
        n = len(next(iter(parents.values())))
        normal = norm.ppf(levels)
        return np.stack([self.evaluate(parents, np.full((n, 1), level)) for level in normal], axis=1)

    def ranks(self, parents: Parents, value: Array, generator: Generator) -> Array:  # (n,) or (n, d)
        """Φ(u)."""
        return np.asarray(norm.cdf(self.recover(parents, value)))

    def _standard(self, value: Array) -> Tensor:
        return self.target.tensor(value.reshape(len(value), -1), torch.float64)

    def _through(self, parents: Parents, rows: Tensor, what: str) -> Array:
        context = self.inputs.tensor(self.design(parents), torch.float64) if self.design.nodes else None
        pieces = []
        with torch.no_grad():
            for start in range(0, len(rows), _BLOCK):
                law = self.flow(None if context is None else context[start : start + _BLOCK])
                part = rows[start : start + _BLOCK]
                if what == "density":
                    pieces.append(law.log_prob(part))
                else:
                    pieces.append(law.transform(part) if what == "forward" else law.transform.inv(part))
        return np.asarray(torch.cat(pieces).numpy()) if pieces else np.zeros(tuple(rows.shape))


def _zuko() -> Any:
    try:
        return import_module("zuko")
    except ImportError as error:
        raise MissingDependencyError(
            "MonotoneFlow needs zuko, which is not installed; install it with pip install 'ciplearn[scm]', or use "
            "AdditiveNoise."
        ) from error
