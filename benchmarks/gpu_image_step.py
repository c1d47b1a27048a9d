"""A step of an image network with a prepared penalty against one without, batch 512, on the device at hand.

Run: python benchmarks/gpu_image_step.py
"""

import torch
from torch import nn

from ciplearn.experiments.timing import interleaved
from ciplearn.kernels import Gaussian
from ciplearn.penalties import ResidualHSCIC


class ImageNetwork(nn.Module):
    """The paper's convolutions on 64 × 64 images, its perceptron on the table, and its head on both."""

    def __init__(self, n_columns=6):
        super().__init__()
        self.images = nn.Sequential(
            nn.Conv2d(1, 16, 5, 2, 2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(16, 64, 5, 1, 2),
            nn.ReLU(),
            nn.MaxPool2d(1, 2),
            nn.Conv2d(64, 64, 5, 1, 2),
            nn.ReLU(),
            nn.MaxPool2d(2, 1),
            nn.Conv2d(64, 16, 5, 1, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.LazyLinear(16),
        )
        self.table = nn.Sequential(nn.Linear(n_columns, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.head = nn.Sequential(
            nn.Linear(24, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)
        )

    def forward(self, images, table):
        """Evaluate the network."""
        return self.head(torch.cat([self.images(images), self.table(table)], dim=1))


def main(n=4096, batch=512):
    """Print one line."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)
    torch.manual_seed(0)
    images, table, target = (
        torch.rand(n, 1, 64, 64, device=device),
        torch.rand(n, 6, device=device),
        torch.rand(n, 1, device=device),
    )
    operator = ResidualHSCIC(kernel=Gaussian(0.1)).prepare(table[:, :4], table[:, 4:])

    def stepper(penalised):
        network = ImageNetwork().to(device)
        network(images[:2], table[:2])
        optimiser = torch.optim.Adam(network.parameters())
        order = torch.randperm(n)

        def epoch():
            for rows in order.split(batch):
                where = rows.to(device)
                y_hat = network(images[where], table[where])
                loss = nn.functional.mse_loss(y_hat, target[where])
                if penalised:
                    loss = loss + operator(y_hat, rows=rows)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            if device == "cuda":
                torch.cuda.synchronize()

        return epoch

    rounds = (15, 3) if device == "cuda" else (2, 1)
    without, with_penalty = interleaved(stepper(False), stepper(True), rounds=rounds[0], repeats=rounds[1])
    print(
        f"{device}: epoch of {n} images, batch {batch}: {with_penalty:.4f} s with, {without:.4f} s without, "
        f"{with_penalty / without:.3f} ×"
    )


if __name__ == "__main__":
    main()
