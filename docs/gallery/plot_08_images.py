"""
Images: the size should count, the light should not
===================================================

Discs of some size under some light. The light follows the season, which may be known. A small convolutional network
is trained on the pictures, with the penalty on Ŷ ⊥ light | season.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.data import TensorDataset

from ciplearn import Gaussian, ResidualHSCIC
from ciplearn.learning import DatasetRows, SquaredError, TrainingSettings, train

torch.manual_seed(0)
n = 600
season, size = torch.rand(n, 1), torch.rand(n, 1)
light = 0.5 * season + 0.2 * torch.randn(n, 1)
outcome = (size + light + 0.02 * torch.randn(n, 1)) / 2
radius = torch.cartesian_prod(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16)).norm(dim=1).view(16, 16)


def picture(size, light):
    """Draw discs; in your case, read a file."""
    return (torch.sigmoid(20 * (size[:, :, None] - radius)) + light[:, :, None]).unsqueeze(1)


class Pictures(TensorDataset):
    """Items are (inputs, target, right, given); yours may read a file per item."""

    def __getitem__(self, i):
        image, s, y, a = super().__getitem__(i)
        return (image, s), y, a, s


class Network(nn.Module):
    """Looks at the picture, then adds the season."""

    def __init__(self):
        super().__init__()
        self.see = nn.Sequential(nn.Conv2d(1, 8, 4, 4), nn.Tanh(), nn.Flatten(), nn.Linear(128, 16), nn.Tanh())
        self.say = nn.Sequential(nn.Linear(17, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, image, season):
        return self.say(torch.cat([self.see(image), season], dim=1))


# %%
# Below the pictures stands what two networks say of the same disc as the light grows.

rows = DatasetRows.of(Pictures(picture(size, light), season, outcome, light))
operator = ResidualHSCIC(kernel=Gaussian(0.1)).prepare(rows.right, rows.given)
lights = torch.linspace(0, 0.9, 6)[:, None]
same = torch.full_like(lights, 0.5)
discs = picture(same, lights)

figure = plt.figure(figsize=(8, 4.6))
for i in range(6):
    panel = figure.add_subplot(2, 6, i + 1, xticks=[], yticks=[])
    panel.imshow(discs[i, 0], cmap="gray", vmin=0, vmax=1.9)
panel = figure.add_subplot(2, 1, 2, xlabel="light", ylabel="prediction")
for gamma in (0.0, 10.0):
    settings = TrainingSettings(gamma=gamma, epochs=15, batch_size=100, learning_rate=5e-3)
    network = train(Network(), rows, SquaredError(), settings, operator).module
    with torch.no_grad():
        panel.plot(lights, network(discs, same), "o-", label=f"gamma = {gamma:g}")
panel.legend(frameon=False)
figure.tight_layout()
