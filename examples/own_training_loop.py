"""A penalty in a training loop of your own: any network, any optimiser.

Run: python examples/own_training_loop.py
"""

import torch
from torch import nn

from ciplearn import Gaussian, ResidualHSCIC

torch.manual_seed(0)
torch.set_num_threads(1)

# S confounds A and Y; the prediction shall not depend on A once S is known.
n = 1000
s = torch.rand(n, 1)
a = s + 0.3 * torch.randn(n, 1)
y = torch.sin(3 * s) + a + 0.05 * torch.randn(n, 1)
inputs = torch.cat([s, a], dim=1)

penalty = ResidualHSCIC(kernel=Gaussian(0.3))
operator = penalty.prepare(right=a, given=s)  # once, without gradients
print(operator)


def train(gamma, epochs=80, batch_size=250):
    """Return a trained network."""
    network = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(epochs):
        for rows in torch.randperm(n).split(batch_size):
            y_hat = network(inputs[rows])
            loss = nn.functional.mse_loss(y_hat, y[rows]) + gamma * operator(y_hat, rows=rows)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network


for gamma in (0.0, 1.0, 10.0, 100.0):
    network = train(gamma)
    with torch.no_grad():
        y_hat = network(inputs)
        error = nn.functional.mse_loss(y_hat, y).item()
        print(f"gamma {gamma:5g}: error {error:.3f}, penalty {operator(y_hat).item():.5f}")
