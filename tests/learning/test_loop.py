"""Steps on a device: recorded where possible, watched where not."""

import math

import pytest
import torch
from torch import nn

from ciplearn._core.errors import InputError, NumericalError
from ciplearn._core.workers import ALONE
from ciplearn.kernels import Gaussian
from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, train
from ciplearn.learning.rows import shuffled
from ciplearn.penalties import HSIC, ResidualHSCIC


class Looking(nn.Sequential):
    """A network that looks at its numbers while it runs, which no recording can hold."""

    def forward(self, inputs):
        return super().forward(inputs) * (1.0 if inputs.sum().item() > -math.inf else 0.0)


def rows_of(n=530):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(n, 3, generator=generator)
    target = (inputs[:, :1] * inputs[:, 1:2]).sin()
    return TrainingRows((inputs,), target, inputs[:, :1], inputs[:, 1:2])


def trained(module, device, epochs=40, **settings):
    rows = rows_of().to(torch.device(device))
    operator = ResidualHSCIC(kernel=Gaussian(0.1), ridge=1e-3).prepare(rows.right, rows.given)
    chosen = TrainingSettings(gamma=1.0, epochs=epochs, batch_size=64, **settings)
    return train(module.to(device), rows, SquaredError(), chosen, operator)


def test_loss_that_is_not_finite_stops_with_its_step_and_restores_the_epoch_s_start(network):
    rows = rows_of()
    rows.target[7] = math.nan
    start = network()
    module = network()
    with pytest.raises(NumericalError, match=r"at step \d+ of epoch 1 \(loss nan"):
        train(module, rows, SquaredError(), TrainingSettings(batch_size=64))
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), start.parameters(), strict=True))


def test_history_says_nothing_of_a_penalty_that_was_not_computed(network):
    rows = rows_of(60)
    for gamma, said in ((0.0, ["loss"]), (1.0, ["loss", "penalty"])):
        operator = HSIC(Gaussian(0.5)).prepare(rows.right)
        fit = train(network(), rows, SquaredError(), TrainingSettings(gamma=gamma, epochs=2), operator)
        assert [list(record) for record in fit.history] == [said, said]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [nn.Sequential, Looking], ids=["recorded", "step by step"])
def test_training_on_a_device_ends_where_training_on_the_cpu_does(network, kind):
    here, there = trained(network(), "cpu"), trained(network(kind=kind), "cuda")
    for ours, theirs in zip(here.history, there.history, strict=True):
        assert theirs["loss"] == pytest.approx(ours["loss"], rel=1e-3)
        assert theirs["penalty"] == pytest.approx(ours["penalty"], rel=1e-2, abs=1e-6)


@pytest.mark.gpu
def test_mixed_precision_on_a_device(network):
    plain, mixed = trained(network(), "cuda"), trained(network(), "cuda", mixed_precision=True)
    assert mixed.history[-1]["loss"] == pytest.approx(plain.history[-1]["loss"], rel=0.2)


@pytest.mark.gpu
def test_loss_that_is_not_finite_on_a_device(network):
    rows = rows_of().to(torch.device("cuda"))
    rows.target[7] = math.nan
    module = network().cuda()
    with pytest.raises(NumericalError, match=r"at step \d+ of epoch 1 \(loss nan"):
        train(module, rows, SquaredError(), TrainingSettings(batch_size=64))
    assert all(torch.isfinite(part).all() for part in module.parameters())


@pytest.mark.gpu
def test_interrupted_training_on_a_device_goes_on(network, tmp_path, monkeypatch):
    from ciplearn.learning import loop

    monkeypatch.setattr(loop, "_SECONDS_BETWEEN", 0.0)
    rows = rows_of().to(torch.device("cuda"))
    settings = TrainingSettings(epochs=20, batch_size=64)
    whole = train(network().cuda(), rows, SquaredError(), settings)
    saved = loop.Checkpoint.save
    calls = []

    def save_and_die(self, state):
        saved(self, state)
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop.Checkpoint, "save", save_and_die)
    with pytest.raises(KeyboardInterrupt):
        train(network().cuda(), rows, SquaredError(), settings, checkpoint=tmp_path / "work")
    resumed = train(network().cuda(), rows, SquaredError(), settings, checkpoint=tmp_path / "work")
    assert len(resumed.history) == 20
    for ours, theirs in zip(whole.module.parameters(), resumed.module.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_target_without_columns_is_one_output(network):
    rows = rows_of()
    flat = TrainingRows(rows.inputs, rows.target[:, 0])
    histories = [train(network(), some, SquaredError(), TrainingSettings(epochs=2)).history for some in (rows, flat)]
    assert histories[0] == histories[1]


def on_rows(n):
    return HSIC().prepare(torch.rand(n, 1))


@pytest.mark.parametrize(
    ("module", "rows", "penalty", "words"),
    [
        (nn.Linear(3, 1), rows_of(), None, "no penalty to weigh"),
        (nn.Linear(3, 1), rows_of(), on_rows(900), "prepared on 900 rows, got 530"),
        (nn.Linear(3, 1), rows_of(), on_rows(9), "prepared on 9 rows, got 530"),
        (nn.Linear(3, 1), rows_of(), ResidualHSCIC(), "no length scale, got .* name one"),
        (nn.Linear(3, 1), rows_of(), HSIC().prepare(rows_of().right), "no length scale, got .* name one"),
        (None, rows_of(), HSIC(), "got NoneType"),
        (nn.Linear(3, 1), None, HSIC(), "got NoneType"),
    ],
)
def test_training_that_would_not_be_what_was_asked_for_is_refused(module, rows, penalty, words):
    with pytest.raises(InputError, match=words):
        train(module, rows, SquaredError(), TrainingSettings(gamma=1.0, epochs=1), penalty)


def test_rows_that_are_no_tensors_are_refused():
    rows = rows_of()
    with pytest.raises(InputError, match=r"convert it with torch\.as_tensor"):
        TrainingRows((rows.inputs[0].numpy(),), rows.target)


@pytest.mark.parametrize(("n", "batch_size"), [(7, 2), (3, 2), (2, 2), (1, 2), (100, 7), (513, 256)])
def test_no_batch_is_a_single_row(n, batch_size):
    batches = shuffled(n, batch_size, torch.Generator().manual_seed(0), ALONE)
    assert sorted(torch.cat(batches).tolist()) == list(range(n))
    assert min(map(len, batches)) >= min(n, 2)
