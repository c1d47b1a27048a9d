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

from ciplearn._core.arguments import positive, whole
from ciplearn._core.errors import InputError, MissingDependencyError
from ciplearn.scm.kinds import Array, Categories
from ciplearn.scm.mechanism import Mechanism, Parents
from ciplearn.scm.networks import AdamSettings, Scaler, filled, train
from ciplearn.scm.recipe import Design, MechanismRecipe, NodeSample
from ciplearn.scm.saving import kept

# Rows sent through a flow at a time.
_BLOCK = 65_536


@dataclass(frozen=True)
class MonotoneFlow(MechanismRecipe):
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

    def fit(self, sample: NodeSample, generator: Generator, like: Any = None) -> Mechanism:
        """Fit by maximum likelihood."""
        if isinstance(sample.kind, Categories):
            raise InputError(f"{sample.node} holds labels, which a flow cannot make; use Multinomial for this node.")
        columns = sample.target.reshape(sample.n, -1)
        inputs, target = Scaler.of(sample.matrix), Scaler.of(columns)
        shape = FlowShape(target.mean.size, inputs.mean.size, self.transforms, self.bins, self.hidden)
        rows = [inputs.tensor(sample.matrix, torch.float64), target.tensor(columns, torch.float64)]
        settings = AdamSettings(self.epochs, self.batch_size, self.learning_rate)
        networks, _ = train(shape.networks, rows, _minus_likelihood, settings, generator)
        return FittedFlow(sample.design, inputs, target, shape, networks["flow"], sample.target.ndim == 2)


def _minus_likelihood(networks: nn.ModuleDict, batch: list[Tensor], generator: torch.Generator) -> Tensor:
    context, target = batch
    return -networks["flow"](context if context.shape[1] else None).log_prob(target).mean()


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
        flow = zuko.flows.NSF(
            features=self.features,
            context=self.context,
            transforms=self.transforms,
            bins=self.bins,
            hidden_features=(self.hidden, self.hidden),
        )
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
        return np.stack([self.evaluate(parents, np.full((n, 1), level)) for level in norm.ppf(levels)], axis=1)

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
                way = {"density": law.log_prob, "forward": law.transform, "inverse": law.transform.inv}[what]
                pieces.append(way(rows[start : start + _BLOCK]))
        return np.asarray(torch.cat(pieces).numpy()) if pieces else np.zeros(tuple(rows.shape))
