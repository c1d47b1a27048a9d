"""The default network."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class Perceptron(nn.Module):
    """Fully connected layers with hyperbolic tangents between them.

    Where an intervention takes a row outside the data, nothing that is learnt from data constrains the prediction.
    Saturating units stay nearly constant there, rectified ones go on linearly: on the paper's first synthetic case that
    is the difference between 0.67 and 0.76 of CF1's error at a twentieth of the variance of counterfactuals.
    """

    def __init__(self, n_inputs: int, hidden: Sequence[int], n_outputs: int) -> None:
        super().__init__()
        self.n_inputs = n_inputs
        self.hidden: tuple[int, ...] = tuple(hidden)
        self.n_outputs = n_outputs
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [nn.Linear(n_inputs, width), nn.Tanh()]
            n_inputs = width
        self.layers = nn.Sequential(*layers, nn.Linear(n_inputs, n_outputs))

    def forward(self, inputs: Tensor) -> Tensor:  # (b, n_inputs) -> (b, n_outputs)
        """Evaluate the network."""
        return self.layers(inputs)
