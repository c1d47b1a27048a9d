"""One latent variable per descendant of A [chiappa2019], and rows as they would be, had A a baseline value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, one_hot

from ciplearn._core.blocks import row_blocks
from ciplearn._core.columns import TableEncoding
from ciplearn.estimators.networks import Perceptron
from ciplearn.learning import Objective

# On columns scaled to [0, 1]: a decoder that is surer than this models rounding, not the column.
_LEAST_LOG_SCALE = -4.0

# Sure enough from the start that what the causes leave unexplained is worth a place in the latent.
_FIRST_LOG_SCALE = -3.0


class LatentNode(nn.Module):
    """V = decoder(causes, H), H ~ N(0, I), with a Gaussian posterior q(H | causes, V): a variational autoencoder.

    Numbers have a Gaussian likelihood of learnt scale, categories that of their level.

    ``n_causes``, ``n_latents``, ``n_hidden``: widths of the encoded causes, of H, and of the hidden layers.
    ``divergence_weight``: weight of the divergence of posterior from prior in the bound. At 1 the best model may
    explain V by its causes and the likelihood's own noise alone and leave H empty; below 1 it pays to keep in H what
    tells rows apart. ``encoding``: of the node's columns. ``generator``: of the first weights. ``draws``: of H in
    training, on the network's device.
    """

    draws: torch.Generator | None = None

    def __init__(
        self,
        n_causes: int,
        n_latents: int,
        n_hidden: int,
        divergence_weight: float,
        encoding: TableEncoding,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        width = encoding.width
        self.parts = tuple(zip(encoding.slices, encoding.categories, strict=True))
        self.divergence_weight = divergence_weight
        self.encoder = Perceptron(n_causes + width, (n_hidden,), 2 * n_latents, generator=generator)
        self.decoder = Perceptron(n_causes + n_latents, (n_hidden,), width, generator=generator)
        self.log_scale = nn.Parameter(torch.full((width,), _FIRST_LOG_SCALE))

    def forward(self, causes: Tensor, value: Tensor) -> Tensor:  # (b, c), (b, w) -> (b, 1 + n_latents)
        """Return the negative evidence bound of each row, and beside it a draw from its posterior."""
        mean, scale = self.posterior(causes, value)
        latent = mean
        if self.training:
            noise = torch.randn(scale.shape, generator=self.draws, dtype=scale.dtype, device=scale.device)
            latent = mean + scale * noise
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
        for places, is_category in self.parts:
            if is_category:
                level = (output[:, places] + gumbel[places]).argmax(dim=1)
                value[:, places] = one_hot(level, places.stop - places.start).to(value.dtype)
        return value

    def _misfit(self, output: Tensor, value: Tensor) -> Tensor:  # (b, w), (b, w) -> (b,)
        total = output.new_zeros(len(output))
        for places, is_category in self.parts:
            said, seen = output[:, places], value[:, places]
            if is_category:
                total = total - (seen * log_softmax(said, dim=1)).sum(dim=1)
            else:
                log_scale = self.log_scale[places].clamp_min(_LEAST_LOG_SCALE)
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


@dataclass(frozen=True)
class Correction:
    """How one node follows its causes."""

    # places, causes: where the node and its causes stand in an encoded row
    places: list[int]
    causes: list[int]
    replaced: list[int]  # those places of protected causes that act along unfair edges
    node: LatentNode  # in double precision

    def posterior(self, rows: Tensor) -> tuple[Tensor, Tensor]:  # (n, width) -> (n, d), (n, d)
        """Mean and scale of the node's latent given observed rows."""
        with torch.no_grad():
            return self.node.posterior(rows[:, self.causes], rows[:, self.places])

    def value(self, rows: Tensor, baseline: Tensor, latent: Tensor, gumbel: Tensor) -> Tensor:
        """The node's value with its causes as in ``rows`` and A at the baseline where its effect is unfair."""
        causes = rows[:, self.causes]
        causes[:, [self.causes.index(place) for place in self.replaced]] = baseline[self.replaced]
        with torch.no_grad():
            return self.node.decoded(causes, latent, gumbel)


@dataclass(frozen=True)
class FairRows:
    """Draws of corrected rows."""

    corrections: Sequence[Correction]  # each after its causes
    baseline: Tensor  # (width,): an encoded row with A at its baseline; only the places of A matter
    fixed: list[int]  # places of protected variables that the predictor is shown at the baseline
    seed: int

    def draws(self, rows: Tensor, n_draws: int) -> Iterator[Tensor]:  # (n, width) -> n_draws times (n, width)
        """Draw latents from their posteriors and yield the corrected rows; one draw where no latent is drawn."""
        rows = rows.to(self.baseline)
        posteriors = [correction.posterior(rows) for correction in self.corrections]
        generator = torch.Generator().manual_seed(self.seed)
        blocks = row_blocks(len(rows)) if rows.device.type == "cpu" else [slice(None)]
        for _ in range(n_draws if self.corrections else 1):
            noises = []
            for correction, (mean, _) in zip(self.corrections, posteriors, strict=True):
                # The same noise for every row: a row's answer does not depend on the rows it is asked with.
                noise = torch.randn(mean.shape[1], generator=generator, dtype=torch.float64).to(rows)
                uniform = torch.rand(len(correction.places), generator=generator, dtype=torch.float64)
                noises.append((noise, -torch.log(-torch.log(uniform.clamp(1e-12, 1 - 1e-12))).to(rows)))
            changed = rows.clone()
            for block in blocks:
                some = changed[block]  # a view
                given = zip(self.corrections, posteriors, noises, strict=True)
                for correction, (mean, scale), (noise, gumbel) in given:
                    latent = mean[block] + scale[block] * noise
                    value = correction.value(some, self.baseline, latent, gumbel)
                    # The places of a column stand together: they are written as slices, not one by one.
                    for own, _ in correction.node.parts:
                        first = correction.places[own.start]
                        some[:, first : first + own.stop - own.start] = value[:, own]
            changed[:, self.fixed] = self.baseline[self.fixed]
            yield changed
