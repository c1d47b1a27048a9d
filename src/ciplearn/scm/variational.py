"""Latent nodes by variational autoencoders [kingma2014], as the paper models the Adult data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.random import Generator
from scipy.special import logsumexp, softmax
from torch import Tensor, nn

from ciplearn._core.arguments import positive, whole
from ciplearn._core.rows import row_blocks
from ciplearn.scm.kinds import Array, Categories, Kind, Vector, kept
from ciplearn.scm.location_scale import FittedLocationScale, Identity
from ciplearn.scm.mechanism import Design, LatentMechanism, Mechanism, NodeSample, Parents
from ciplearn.scm.multinomial import GumbelMax
from ciplearn.scm.networks import AdamSettings, HoldsTanhNetwork, Scaler, tanh_network, train
from ciplearn.scm.report import crps_of_draws, marginal_losses, score

# Draws from the prior that a score averages over.
_SCORE_DRAWS = 50

_Samples = Mapping[str, NodeSample]


@dataclass(frozen=True)
class VariationalLatent:
    """A latent root H ~ N(0, I) with an encoder q(h | children, their parents) and a decoder for each child.

    Numbers come about as V = decoder(pa, h) + U with U from the residuals, labels by Gumbel-max on the decoder's
    probabilities; so a counterfactual under what was observed returns the observed row, whichever h was drawn. The
    training loss is the squared error of standardised numbers, plus the cross-entropy of labels, plus the
    Kullback–Leibler divergence between the encoder's Gaussian and the prior. The defaults are the paper's. Nothing in
    the data singles out one latent law: what such a model says about counterfactuals rests on its form.

    ``size``: numbers in H. ``hidden``: width of the one tanh layer in the encoder and in each decoder. The others are
    those of Adam; training ends before ``epochs`` once it no longer helps rows that are held out.

    >>> from ciplearn.scm import VariationalLatent
    >>> VariationalLatent().label
    'variational latent, 10 numbers'
    """

    size: int = 10
    hidden: int = 20
    epochs: int = 100
    batch_size: int = 128
    learning_rate: float = 1e-2

    def __post_init__(self) -> None:
        for name in ("size", "hidden", "epochs", "batch_size"):
            whole(getattr(self, name), name, minimum=1)
        positive(self.learning_rate, "learning_rate")

    @property
    def kind(self) -> Kind:
        """That of the latent node."""
        return Vector(self.size)

    @property
    def label(self) -> str:
        """What the report calls the children."""
        return f"variational latent, {self.size} numbers"

    def fit(
        self, latent: str, children: _Samples, generator: Generator, held_out: _Samples | None = None
    ) -> tuple[LatentMechanism, dict[str, Mechanism], VariationalLatent]:
        """Fit encoder and decoders together; the samples' parents are the observed ones.

        The recipe that comes back has the epochs after which held-out rows, if there are any, were served best.
        """
        problem = _AutoencoderTraining(children, self)
        settings = AdamSettings(self.epochs, self.batch_size, self.learning_rate)
        others = None if held_out is None else problem.tensors(held_out)
        networks, epochs = train(problem.networks, problem.tensors(children), problem.loss, settings, generator, others)
        encoder = Encoded(self.size, problem.design, problem.scaler, networks["encoder"])
        draws = encoder.infer(_values(children), generator)
        mechanisms: dict[str, Mechanism] = {}
        for number, (child, sample) in enumerate(children.items()):
            decoder = Decoded(latent, sample.design, problem.inputs[child], networks[f"decoder {number}"])
            if isinstance(sample.kind, Categories):
                mechanisms[child] = GumbelMax(sample.kind.levels, Softmax(decoder), child)
            else:
                mean = Unscaled(decoder, problem.targets[child], sample.target.ndim == 2)
                residuals = sample.target - mean({**sample.values, latent: draws})[0]
                mechanisms[child] = FittedLocationScale.centred(Identity(), mean, residuals, child)
        return encoder, mechanisms, replace(self, epochs=epochs)

    def score(
        self, latent: str, prior: Mechanism, child: Mechanism, held_out: NodeSample, seen: Array, generator: Generator
    ) -> float:
        """Score the law of a child over draws of the latent node from its prior: what observed parents alone explain.

        ``seen`` are the child's values in the fit: their law, which ignores the parents, is what it is compared with.
        """
        worlds = [{**held_out.values, latent: prior.draw(held_out.n, generator)} for _ in range(_SCORE_DRAWS)]
        if isinstance(held_out.kind, Categories):
            density = [child.log_density(world, held_out.target) for world in worlds]
            losses = math.log(_SCORE_DRAWS) - logsumexp(np.stack([d for d in density if d is not None]), axis=0)
        else:
            made = [child.evaluate(world, child.draw(held_out.n, generator)) for world in worlds]
            losses = crps_of_draws(np.stack(made, axis=-1), held_out)
        return score(losses, marginal_losses(held_out, seen), held_out.kind)


class _AutoencoderTraining:
    """What one autoencoder is trained on."""

    def __init__(self, children: _Samples, recipe: VariationalLatent) -> None:
        self.children, self.recipe, values = children, recipe, _values(children)
        self.design = Design(tuple(values), next(iter(children.values())).kinds)
        self.scaler = Scaler.of(self.design(values))
        self.inputs = {child: Scaler.of(sample.matrix) for child, sample in children.items()}
        numbers = {child: sample for child, sample in children.items() if not isinstance(sample.kind, Categories)}
        self.targets = {child: Scaler.of(sample.target.reshape(sample.n, -1)) for child, sample in numbers.items()}

    def networks(self) -> nn.ModuleDict:
        size, hidden = self.recipe.size, self.recipe.hidden
        # Mean and log variance of each number of H.
        networks = nn.ModuleDict({"encoder": tanh_network(self.design.width, hidden, 2 * size)})
        for number, sample in enumerate(self.children.values()):
            outputs = len(sample.kind.levels) if isinstance(sample.kind, Categories) else sample.kind.width
            networks[f"decoder {number}"] = tanh_network(sample.design.width + size, hidden, outputs)
        return networks

    def tensors(self, children: _Samples) -> list[Tensor]:
        parts = [self.scaler.tensor(self.design(_values(children)))]
        for child, sample in children.items():
            parts.append(self.inputs[child].tensor(sample.matrix))
            if isinstance(sample.kind, Categories):
                parts.append(torch.as_tensor(sample.kind.codes(sample.target, child)))
            else:
                parts.append(self.targets[child].tensor(sample.target.reshape(sample.n, -1)))
        return parts

    def loss(self, networks: nn.ModuleDict, batch: list[Tensor], generator: torch.Generator) -> Tensor:
        """Return reconstruction error plus KL(q ‖ N(0, I)), means over the batch."""
        mean, log_variance = networks["encoder"](batch[0]).chunk(2, dim=1)
        h = mean + (log_variance / 2).exp() * torch.randn(mean.shape, generator=generator, dtype=mean.dtype)
        total = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
        for number, sample in enumerate(self.children.values()):
            inputs, target = batch[1 + 2 * number], batch[2 + 2 * number]
            output = networks[f"decoder {number}"](torch.cat([inputs, h], dim=1))
            if isinstance(sample.kind, Categories):
                total = total + nn.functional.cross_entropy(output, target)
            else:
                total = total + (output - target).square().sum(1).mean()
        return total


@kept
@dataclass(frozen=True)
class Encoded(HoldsTanhNetwork, LatentMechanism):
    """H ~ N(0, I), with q(h | evidence) for abduction."""

    size: int
    design: Design
    scaler: Scaler
    network: nn.Module

    @property
    def evidence(self) -> tuple[str, ...]:
        """The children of H and their parents."""
        return self.design.nodes

    def draw(self, n: int, generator: Generator) -> Array:
        """Draw from the prior."""
        return generator.standard_normal((n, self.size))

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """H = U."""
        return noise

    def recover(self, parents: Parents, value: Array) -> Array:
        """U = H."""
        return value

    def infer(self, observed: Parents, generator: Generator) -> Array:
        """Draw from the encoder's Gaussian."""
        with torch.no_grad():
            inputs = self.scaler.inputs(self.design, self.design.parts(observed))
            mean, log_variance = self.network(inputs).double().chunk(2, dim=1)
        spread = (log_variance / 2).exp().numpy()
        return np.asarray(mean.numpy() + spread * generator.standard_normal(spread.shape))


@kept
@dataclass(frozen=True)
class Decoded(HoldsTanhNetwork):
    """The output of a child's decoder as a function of its parents, latent one included."""

    latent: str
    design: Design
    scaler: Scaler
    network: nn.Module

    def __call__(self, parents: Parents) -> Array:  # (n, outputs)
        """Return the raw outputs of some rows."""
        h = torch.as_tensor(np.asarray(parents[self.latent], dtype=np.float64)).float()
        parts, outputs = self.design.parts(parents), []
        with torch.no_grad():
            for rows in row_blocks(len(h)):
                observed = self.scaler.inputs(self.design, [part[rows] for part in parts]) if parts else h[rows, :0]
                outputs.append(self.network(torch.cat([observed, h[rows]], dim=1)))
        return np.asarray(torch.cat(outputs).double().numpy())


@kept
@dataclass(frozen=True)
class Softmax:
    """Class probabilities from a decoder's outputs."""

    decoder: Decoded

    def __call__(self, parents: Parents) -> Array:  # (n, K)
        """Return the probabilities of some rows."""
        return np.asarray(softmax(self.decoder(parents), axis=1))


@kept
@dataclass(frozen=True)
class Unscaled:
    """Numbers from a decoder's standardised outputs."""

    decoder: Decoded
    scaler: Scaler
    vector: bool

    def __call__(self, parents: Parents) -> tuple[Array, Array]:  # (n,) or (n, d)
        """Return the numbers of some rows, and ones: their noise has one scale."""
        values = self.scaler.undo(self.decoder(parents))
        mean = values if self.vector else values[:, 0]
        return mean, np.ones_like(mean)


def _values(children: _Samples) -> dict[str, Array]:
    """The children and their observed parents."""
    nodes = [*children, *(parent for sample in children.values() for parent in sample.parents)]
    values = {name: array for sample in children.values() for name, array in sample.values.items()}
    return {name: values[name] for name in dict.fromkeys(nodes)}
