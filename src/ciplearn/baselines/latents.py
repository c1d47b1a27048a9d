"""One latent variable a descendant of A: a variational autoencoder whose posterior shall not tell A [chiappa2019]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, one_hot

from ciplearn.learning import Objective

# On columns scaled to [0, 1]: a decoder that is surer than this models rounding, not the column.
_LEAST_LOG_SCALE = -4.0

# Sure enough from the start that what the causes leave unexplained is worth a place in the latent.
_FIRST_LOG_SCALE = -3.0


@dataclass(frozen=True)
class Part:
    """One column of a node among the node's encoded numbers."""

    places: slice
    width: int
    is_category: bool


class LatentNode(nn.Module):
    """V = decoder(causes, H), H ~ N(0, I), with a Gaussian posterior q(H | causes, V).

    Numbers have a Gaussian likelihood of learnt scale, categories that of their level.

    Parameters
    ----------
    n_causes, n_latents, n_hidden : int
        Widths of the encoded causes, of H, and of the hidden layers.
    divergence_weight : float
        Weight of the divergence of posterior from prior in the bound. At 1 the best model may explain V by its causes
        and the likelihood's own noise alone and leave H empty; below 1 it pays to keep in H what tells rows apart.
    parts : sequence of Part
        The node's columns.
    """

    def __init__(
        self, n_causes: int, n_latents: int, n_hidden: int, divergence_weight: float, parts: Sequence[Part]
    ) -> None:
        super().__init__()
        width = sum(part.width for part in parts)
        self.parts = tuple(parts)
        self.divergence_weight = divergence_weight
        self.encoder = _two_layers(n_causes + width, n_hidden, 2 * n_latents)
        self.decoder = _two_layers(n_causes + n_latents, n_hidden, width)
        self.log_scale = nn.Parameter(torch.full((width,), _FIRST_LOG_SCALE))

    def forward(self, causes: Tensor, value: Tensor) -> Tensor:  # (b, c), (b, w) -> (b, 1 + n_latents)
        """Return the negative evidence bound of each row, and beside it a draw from its posterior."""
        mean, scale = self.posterior(causes, value)
        latent = mean + scale * torch.randn_like(scale) if self.training else mean
        divergence = (mean.square() + scale.square() - 1).sum(dim=1) / 2 - scale.log().sum(dim=1)
        misfit = self._misfit(self.decoder(torch.cat([causes, latent], dim=1)), value)
        return torch.cat([(misfit + self.divergence_weight * divergence)[:, None], latent], dim=1)

    def posterior(self, causes: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and scale of H for rows."""
        mean, log_scale = self.encoder(torch.cat([causes, value], dim=1)).chunk(2, dim=1)
        return mean, log_scale.clamp(-10, 10).exp()

    def decoded(self, causes: Tensor, latent: Tensor, gumbel: Tensor) -> Tensor:  # (b, c), (b, d), (w,) -> (b, w)
        """The node's value under these causes: mean of a number, for a category the level that the noise selects."""
        output = self.decoder(torch.cat([causes, latent], dim=1))
        value = output.clone()
        for part in self.parts:
            if part.is_category:
                level = (output[:, part.places] + gumbel[part.places]).argmax(dim=1)
                value[:, part.places] = one_hot(level, part.width).to(value.dtype)
        return value

    def _misfit(self, output: Tensor, value: Tensor) -> Tensor:  # (b, w), (b, w) -> (b,)
        total = output.new_zeros(len(output))
        for part in self.parts:
            said, seen = output[:, part.places], value[:, part.places]
            if part.is_category:
                total = total - (seen * log_softmax(said, dim=1)).sum(dim=1)
            else:
                log_scale = self.log_scale[part.places].clamp_min(_LEAST_LOG_SCALE)
                total = total + (((said - seen) / log_scale.exp()).square() / 2 + log_scale).sum(dim=1)
        return total


@dataclass(frozen=True)
class NegativeEvidence(Objective):
    """The bound that `LatentNode` returns; the penalty sees the draw of H."""

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Negative evidence bound of each row."""
        return output[:, 0]

    def prediction(self, output: Tensor) -> Tensor:
        """The draws of H."""
        return output[:, 1:]

    def columns(self, target: Tensor) -> None:
        """The bound and the draws of H, however many."""


def _two_layers(n_inputs: int, n_hidden: int, n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_inputs, n_hidden), nn.Tanh(), nn.Linear(n_hidden, n_outputs))
