from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from ciplearn import CIPRegressor
from ciplearn._core.errors import InputError, InputTypeError
from reproduction import sprites as dsprites
from reproduction.image_network import ImageNetwork

INPUTS = list(dsprites.FACTORS)


def printed_convolutions(network):
    """The paper's table line by line, ReLU before every pooling, with the network's weights."""
    first, second, third, fourth = (part for part in network.picture if isinstance(part, nn.Conv2d))
    literal = nn.Conv2d(16, 64, 5, stride=1, padding=2)
    literal.load_state_dict(second.state_dict())
    pools = [nn.MaxPool2d(3, 2), nn.MaxPool2d(1, 2), nn.MaxPool2d(2, 1), nn.MaxPool2d(2, 2)]
    groups = zip((first, literal, third, fourth), pools, strict=True)
    return nn.Sequential(*(part for layer, pool in groups for part in (layer, nn.ReLU(), pool)), nn.Flatten())


def test_convolutions_equal_the_papers_table():
    torch.manual_seed(0)
    network = ImageNetwork().double().eval()
    pictures = torch.rand(4, 1, 64, 64, dtype=torch.float64)
    literal = printed_convolutions(network).double()
    torch.testing.assert_close(network.picture(pictures), literal(pictures), rtol=1e-10, atol=1e-12)


def test_sizes_are_the_papers():
    network = ImageNetwork(n_columns=6)
    shapes = [tuple(part.weight.shape) for part in network.modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    assert shapes == [
        *((16, 1, 5, 5), (64, 16, 5, 5), (64, 64, 5, 5), (16, 64, 5, 5)),
        *((16, 6), (8, 16), (8, 264), (8, 8), (16, 8), (1, 16)),
    ]
    assert sum(isinstance(part, nn.Dropout) for part in ImageNetwork(dropout=0.2).modules()) == 6


def test_bytes_and_numbers_give_the_same_answer():
    network, table = ImageNetwork().eval(), torch.rand(3, 6)
    nn.init.ones_(network.head[-1].weight)
    pictures = torch.from_numpy(dsprites.render(dsprites.latents_of([5, 99_999, 700_000])))
    expected = network(table, pictures.float().unsqueeze(1))
    assert expected.std() > 0
    torch.testing.assert_close(network(table, pictures), expected)
    torch.testing.assert_close(network(table, pictures.bool()), expected)


def test_it_starts_at_zero_and_can_leave_it():
    torch.manual_seed(0)
    network, table, pictures = ImageNetwork(), torch.rand(64, 6), torch.rand(64, 64, 64)
    assert network(table, pictures).abs().max() == 0
    nn.functional.mse_loss(network(table, pictures), torch.rand(64, 1)).backward()
    assert network.head[-1].weight.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("pictures", "error", "says"),
    [
        (torch.zeros(3, 32, 32), InputError, r"shape \(n, 64, 64\), got \(3, 1, 32, 32\)"),
        (torch.zeros(3, 3, 64, 64), InputError, "leave one channel"),
        (torch.zeros(3, 4096), InputError, r"got \(3, 4096\)"),
        (torch.zeros(3, 64, 64, dtype=torch.int64), InputTypeError, "got torch.int64; convert"),
        (torch.zeros(3, 64, 64, dtype=torch.complex64), InputTypeError, "got torch.complex64"),
    ],
)
def test_other_pictures_are_refused(pictures, error, says):
    with pytest.raises(error, match=says):
        ImageNetwork()(torch.zeros(3, 6), pictures)


def test_the_regressor_trains_it_on_table_and_pictures():
    scm = dsprites.image_latents()
    rows = scm.sample(64, random_state=0)
    pictures = dsprites.pictures(rows)
    model = CIPRegressor(
        graph=scm.graph,
        outcome="Y",
        protected=["x_pos"],
        adjustment=["shape", "y_pos"],
        module=partial(ImageNetwork, len(INPUTS)),
        epochs=3,
        batch_size=32,
        random_state=0,
        device="cpu",
    )
    model.fit(rows[INPUTS], rows["Y"], tensors=(pictures,))
    assert str(model.independence_) == "Ŷ ⊥ {color, orientation, scale, x_pos} | {shape, y_pos}"
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    direct = model.predict(rows[INPUTS], tensors=(pictures,))
    np.testing.assert_allclose(dsprites.PicturePredictor(model).predict(rows), direct, rtol=1e-4)
    blank = model.predict(rows[INPUTS], tensors=(np.zeros_like(pictures),))
    assert np.abs(blank - direct).max() > 1e-3  # the pictures count
