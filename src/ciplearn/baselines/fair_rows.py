"""Rows as they would be, had A a baseline value along unfair paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn._core.blocks import row_blocks
from ciplearn.baselines.latents import LatentNode


@dataclass(frozen=True)
class Correction:
    """How one node follows its causes.

    Attributes
    ----------
    places, causes : list of int
        Where the node and its causes stand in an encoded row.
    replaced : list of int
        Those places of protected causes that act along unfair edges.
    node : LatentNode
        In double precision.
    """

    places: list[int]
    causes: list[int]
    replaced: list[int]
    node: LatentNode

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
    """Draws of corrected rows.

    Attributes
    ----------
    corrections : sequence of Correction
        Each after its causes.
    baseline : Tensor, shape (width,)
        An encoded row with A at its baseline; only the places of A matter.
    fixed : list of int
        Places of protected variables that the predictor is shown at the baseline.
    seed : int
    """

    corrections: Sequence[Correction]
    baseline: Tensor
    fixed: list[int]
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
                    for part in correction.node.parts:
                        first = correction.places[part.places.start]
                        some[:, first : first + part.width] = value[:, part.places]
            changed[:, self.fixed] = self.baseline[self.fixed]
            yield changed
