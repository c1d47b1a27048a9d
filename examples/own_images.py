"""Your own pictures, your own network: a dataset of (inputs, target, right, given), and a penalty on all rows.

Discs of some size under some light; the prediction shall not depend on the light once the season is known.
Run: python examples/own_images.py
"""

import torch
from torch import nn
from torch.utils.data import Dataset

from ciplearn import Gaussian, ResidualHSCIC
from ciplearn.learning import DatasetRows, SquaredError, TrainingSettings, train

torch.manual_seed(0)
torch.set_num_threads(1)
n = 1000
season, size = torch.rand(n, 1), torch.rand(n, 1)
light = 0.5 * season + 0.2 * torch.randn(n, 1)
outcome = (size + light + 0.02 * torch.randn(n, 1)) / 2

radius = torch.cartesian_prod(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16)).norm(dim=1).view(16, 16)


def picture(size, light):  # (n, 1), (n, 1) -> (n, 1, 16, 16)
    """Draw discs; in your case, read a file."""
    return (torch.sigmoid(20 * (size[:, :, None] - radius)) + light[:, :, None]).unsqueeze(1)


class Pictures(Dataset):
    """Reads one row when it is needed."""

    def __len__(self):
        return n

    def __getitem__(self, i):
        return (picture(size[i : i + 1], light[i : i + 1])[0], season[i]), outcome[i], light[i], season[i]


class Network(nn.Module):
    """Takes the inputs in the order of the dataset, returns one column."""

    def __init__(self):
        super().__init__()
        self.see = nn.Sequential(nn.Conv2d(1, 8, 4, 4), nn.Tanh(), nn.Flatten(), nn.Linear(128, 16), nn.Tanh())
        self.say = nn.Sequential(nn.Linear(17, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, picture, season):
        """Evaluate the network."""
        return self.say(torch.cat([self.see(picture), season], dim=1))


rows = DatasetRows.of(Pictures())
operator = ResidualHSCIC(kernel=Gaussian(0.1)).prepare(rows.right, rows.given)
for gamma in (0.0, 1.0, 10.0):
    settings = TrainingSettings(gamma=gamma, epochs=15, batch_size=100, learning_rate=5e-3)
    network = train(Network(), rows, SquaredError(), settings, operator).module
    with torch.no_grad():
        error = nn.functional.mse_loss(network(picture(size, light), season), outcome)
        moved = torch.stack([network(picture(size, torch.full_like(light, a)), season) for a in (0.0, 0.25, 0.5)])
    print(f"gamma {gamma:4g}: error {error:.4f}, variance had the light been different {moved.var(dim=0).mean():.5f}")
