"""Rows from a dataset are trained on as rows in memory are."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from ciplearn import CIPRegressor, Gaussian, Independence
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.learning import DatasetRows, SquaredError, TrainingRows, TrainingSettings, train
from ciplearn.penalties import ResidualHSCIC

N = 200


class Pictures(Dataset):
    """Small pictures, made when asked for; counts how often it was."""

    def __init__(self, images):
        self.images, self.asked = images, 0

    def __len__(self):
        return len(self.images)

    def __getitem__(self, position):
        self.asked += 1
        return self.images[position]


class PictureNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.picture, self.table = nn.Linear(16, 4), nn.Linear(2, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, table, images):
        return self.head(torch.tanh(self.picture(images.flatten(1)) + self.table(table)))


@pytest.fixture
def parts():
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(N, 4, 4, generator=generator)
    table = torch.rand(N, 2, generator=generator)
    target = images.mean(dim=(1, 2))[:, None] + table[:, :1]
    return images, table, target


def network():
    torch.manual_seed(0)
    return PictureNetwork()


def weights_of(module):
    return torch.cat([part.flatten() for part in module.state_dict().values()])


@pytest.mark.parametrize("once", [True, False], ids=["prepared once", "per batch"])
def test_dataset_of_items_trains_to_the_weights_of_rows_in_memory(parts, once):
    images, table, target = parts
    items = [((table[i], images[i]), target[i], table[i, :1], table[i, 1:]) for i in range(N)]
    read = DatasetRows.of(items)
    rows = TrainingRows((table, images), target, table[:, :1], table[:, 1:])
    settings = TrainingSettings(gamma=1.0, epochs=2, batch_size=64)
    trained = []
    for data in (rows, read):
        penalty = ResidualHSCIC(kernel=Gaussian(0.5), ridge=1e-3)
        trained.append(
            train(
                network(), data, SquaredError(), settings, penalty.prepare(data.right, data.given) if once else penalty
            )
        )
    assert torch.equal(weights_of(trained[0].module), weights_of(trained[1].module))
    assert trained[0].history == trained[1].history


def test_reading_leaves_torchs_generator_alone(parts):
    images, _, target = parts
    state = torch.get_rng_state()
    read = DatasetRows.of(TensorDataset(images, target))
    assert len(list(read.batches(torch.arange(N).split(50)))) == 4
    assert torch.equal(torch.get_rng_state(), state)


def test_workers_read_the_same_rows(parts):
    images, table, target = parts
    known = TrainingRows((table,), target)
    plan = torch.arange(N).split(50)
    alone, helped = (list(DatasetRows(known, Pictures(images), workers=workers).batches(plan)) for workers in (0, 1))
    for (index, batch), (other_index, other) in zip(alone, helped, strict=True):
        assert torch.equal(index, other_index)
        assert all(torch.equal(a, b) for a, b in zip(batch.inputs, other.inputs, strict=True))


@pytest.mark.parametrize("early_stopping", [False, True])
def test_estimator_reads_a_dataset_as_it_reads_a_tensor(parts, early_stopping):
    images, table, target = parts
    X = pd.DataFrame(table.numpy(), columns=["A", "S"])
    models = [
        CIPRegressor(
            independence=Independence(right=["A"], given=["S"]),
            module=PictureNetwork,
            epochs=3,
            early_stopping=early_stopping,
            random_state=0,
        ).fit(X, target[:, 0].numpy(), tensors=[pictures])
        for pictures in (images, Pictures(images))
    ]
    answers = [
        model.predict(X, tensors=[pictures]) for model, pictures in zip(models, (images, Pictures(images)), strict=True)
    ]
    assert np.array_equal(*answers)


def test_missing_rows_are_dropped_from_the_dataset_too(parts):
    images, table, target = parts
    X = pd.DataFrame(table.numpy(), columns=["A", "S"])
    X.loc[3, "A"] = np.nan
    pictures = Pictures(images)
    CIPRegressor(module=PictureNetwork, missing="drop", epochs=1).fit(X, target[:, 0].numpy(), tensors=[pictures])
    assert pictures.asked == N - 1


def test_several_datasets_become_several_arguments(parts):
    images, table, target = parts

    class Two(PictureNetwork):
        def forward(self, table, images, others):
            return super().forward(table, images + others)

    X = pd.DataFrame(table.numpy(), columns=["A", "S"])
    y = target[:, 0].numpy()
    lazy = CIPRegressor(module=Two, epochs=1, random_state=0).fit(X, y, tensors=[Pictures(images), Pictures(images)])
    eager = CIPRegressor(module=Two, epochs=1, random_state=0).fit(X, y, tensors=[images, images])
    assert torch.equal(weights_of(lazy.module_), weights_of(eager.module_))


def test_mixed_precision_trains_to_nearly_the_same_network(parts):
    images, table, target = parts
    rows = TrainingRows((table, images), target)
    losses = [
        train(network(), rows, SquaredError(), TrainingSettings(epochs=20, mixed_precision=mixed)).history[-1]["loss"]
        for mixed in (False, True)
    ]
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.1)


def test_what_is_no_dataset_is_refused_in_a_sentence(parts):
    images, table, target = parts
    with pytest.raises(InputTypeError, match="must have a length and items by position"):
        DatasetRows.of(iter([1, 2]))
    with pytest.raises(InputTypeError, match="got Tensor at position 0"):
        DatasetRows.of(Pictures(images))
    with pytest.raises(InputError, match="199 items for 200 rows"):
        DatasetRows(TrainingRows((table,), target), Pictures(images[1:]))
    X = pd.DataFrame(table.numpy(), columns=["A", "S"])
    with pytest.raises(InputError, match="Tensors come before datasets"):
        CIPRegressor(module=PictureNetwork).fit(X, target[:, 0].numpy(), tensors=[Pictures(images), images])
    with pytest.raises(InputTypeError, match="must be"):
        DatasetRows.of(TensorDataset(images))


class Items:
    """A dataset that makes its items."""

    def __init__(self, make, n=40):
        self.make, self.n = make, n

    def __len__(self):
        return self.n

    def __getitem__(self, position):
        return self.make(position)


@pytest.mark.parametrize(
    ("dataset", "settings", "words"),
    [
        (Items(lambda i: (torch.ones(3), 1.0), 0), {}, "got a dataset of 0"),
        (Items(lambda i: (torch.ones(3), "x")), {}, "numbers of one shape"),
        (Items(lambda i: (torch.ones(3), None)), {}, "numbers of one shape"),
        (Items(lambda i: (torch.ones(3), torch.ones(1 + i % 2))), {}, "numbers of one shape"),
        (Items(lambda i: (torch.ones(3), 1.0, "x")), {}, "numbers of one shape"),
        (Items(lambda i: (torch.ones(3), 1.0)), {"device": "abacus"}, "device must be"),
        (Items(lambda i: (torch.ones(3), 1.0)), {"workers": -1}, "workers must be at least 0"),
    ],
)
def test_items_and_settings_that_cannot_be_read_are_one_sentence(dataset, settings, words):
    with pytest.raises(InputError, match=words):
        DatasetRows.of(dataset, **settings)
