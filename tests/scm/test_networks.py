import numpy as np
import torch
from torch import nn

from ciplearn.scm.networks import AdamSettings, tanh_network, train

TRAINING = AdamSettings(epochs=3, batch_size=32, learning_rate=1e-2)


class Regression:
    """Squared error with a little noise, by two networks of which one has weights that no row reaches."""

    def __init__(self):
        draw = torch.Generator().manual_seed(0)
        self.x, self.y = torch.randn(100, 3, generator=draw), torch.randn(100, 2, generator=draw)

    def networks(self):
        return nn.ModuleDict({"used": tanh_network(3, 5, 2), "idle": nn.Linear(2, 2)})

    def tensors(self):
        return [self.x, self.y]

    def loss(self, networks, batch, generator):
        x, y = batch
        return (networks["used"](x + 0.1 * torch.randn(x.shape, generator=generator)) - y).square().mean()


def learn(problem, training, held_out=None):
    generator = np.random.default_rng(0)
    return train(problem.networks, problem.tensors(), problem.loss, training, generator, held_out)


def trained_weight_by_weight(problem, generator):
    seed = int(generator.integers(2**31))
    draws = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        networks = problem.networks()
    optimizer = torch.optim.Adam(networks.parameters(), lr=TRAINING.learning_rate)
    for _ in range(TRAINING.epochs):
        for chosen in torch.randperm(100, generator=draws).split(TRAINING.batch_size):
            loss = problem.loss(networks, [part[chosen] for part in problem.tensors()], draws)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return networks


def test_steps_on_all_weights_at_once_are_those_on_each():
    learnt, epochs = learn(Regression(), TRAINING)
    expected = trained_weight_by_weight(Regression(), np.random.default_rng(0))
    assert epochs == TRAINING.epochs
    for name, weights in expected.state_dict().items():
        torch.testing.assert_close(learnt.state_dict()[name], weights, rtol=1e-6, atol=1e-7)


def test_trained_weights_lie_apart_and_need_no_gradient():
    for weights in learn(Regression(), TRAINING)[0].parameters():
        assert weights.untyped_storage().nbytes() == 4 * weights.numel()
        assert weights.grad is None
        assert not weights.requires_grad


def test_training_ends_when_held_out_rows_no_longer_gain():
    # Targets are pure noise: what is learnt after the first epochs is learnt by heart.
    problem, other = Regression(), Regression()
    other.y = -other.y
    long = AdamSettings(epochs=60, batch_size=32, learning_rate=3e-2)
    networks, epochs = learn(problem, long, other.tensors())
    assert epochs < 20
    expected, _ = learn(problem, AdamSettings(epochs, 32, 3e-2))
    for name, weights in expected.state_dict().items():
        torch.testing.assert_close(networks.state_dict()[name], weights, rtol=1e-6, atol=1e-7)
