"""
Your own PyTorch loop
=====================

A penalty is one object: prepare it once on all rows, then add it to the loss of each batch. Any network, any
optimiser.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from ciplearn import Gaussian, ResidualHSCIC

torch.manual_seed(0)
n = 800
s = torch.rand(n, 1)  # may be known
a = s + 0.3 * torch.randn(n, 1)  # should not count
y = torch.sin(3 * s) + a + 0.05 * torch.randn(n, 1)
inputs = torch.cat([s, a], dim=1)

operator = ResidualHSCIC(kernel=Gaussian(0.3)).prepare(right=a, given=s)  # once, without gradients
print(operator)

# %%
# The loop is the usual one.


def train(gamma, epochs=40):
    """Return a network, and error and penalty after each epoch."""
    network = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    history = []
    for _ in range(epochs):
        for rows in torch.randperm(n).split(200):
            y_hat = network(inputs[rows])
            loss = nn.functional.mse_loss(y_hat, y[rows]) + gamma * operator(y_hat, rows=rows)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            y_hat = network(inputs)
            history.append((nn.functional.mse_loss(y_hat, y).item(), operator(y_hat).item()))
    return network, history


figure, axes = plt.subplots(1, 3, figsize=(8, 3.6))
for gamma in (0, 10, 100):
    network, history = train(gamma)
    errors, penalties = zip(*history, strict=True)
    axes[0].plot(errors, label=f"gamma = {gamma}")
    axes[1].semilogy(penalties)
    values = torch.linspace(-0.5, 1.5, 50)[:, None]
    with torch.no_grad():
        axes[2].plot(values, network(torch.cat([torch.full_like(values, 0.5), values], dim=1)))
axes[0].set(xlabel="epoch", ylabel="squared error")
axes[1].set(xlabel="epoch", ylabel="penalty")
axes[2].set(xlabel="a, at s = 0.5", ylabel="prediction")
axes[0].legend(frameon=False)
figure.tight_layout()
