"""Several workers, each with its own rows of every batch, find what one process finds on all of them."""

import pickle
import socket
import subprocess
from datetime import timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import torch.distributed as distributed

from ciplearn import HSCIC, CIPRegressor, Gaussian, Linear, ResidualHSCIC
from ciplearn._core.errors import InputError
from ciplearn._core.workers import ALONE, ProcessGroup, Workers
from ciplearn.learning import SquaredError, StreamedRows, TrainingRows, TrainingSettings, train
from ciplearn.learning.invariance import (
    BatchDependence,
    CounterfactualVariance,
    Dependence,
    ImaginedRows,
    Worst,
)
from ciplearn.learning.streamed_rows import RowLayout, StoredPart, store
from ciplearn.scale import TorchRun
from tests import warm
from tests.penalties.parts import parts_of

N, B = 600, 157
NAMES = ("series", "streamed series", "linear", "two vectors", "each batch", "listed worlds", "drawn worlds", "worst")


def rows():
    generator = torch.Generator().manual_seed(0)
    given = torch.rand(N, 1, generator=generator)
    right = given + 0.3 * torch.randn(N, 1, generator=generator)
    target = right + given + 0.1 * torch.randn(N, 1, generator=generator)
    return TrainingRows((torch.cat([right, given], 1),), target, right, given)


@cache
def invariances():
    data = rows()
    worlds = torch.stack([data.inputs[0] + shift for shift in (0.0, 0.3, -0.2)], dim=1)
    listed = CounterfactualVariance(ImaginedRows((worlds,), torch.tensor([0.5, 0.3, 0.2])))
    drawn = CounterfactualVariance(ImaginedRows((worlds,)))
    scalar = ResidualHSCIC(kernel=Gaussian(0.5))
    streamed = scalar.prepare_parts(parts_of(data.right, data.given, (250,)))
    return {
        "series": Dependence(scalar.prepare(data.right, data.given)),
        "streamed series": Dependence(streamed),
        "linear": Dependence(ResidualHSCIC(kernel=Linear()).prepare(data.right, data.given)),
        "two vectors": Dependence(HSCIC(kernel=Gaussian(0.5), rank=1, exact_rows=0).prepare(data.right, data.given)),
        "each batch": BatchDependence(HSCIC(kernel=Gaussian(0.5))),
        "listed worlds": listed,
        "drawn worlds": drawn,
        "worst": Worst((listed, drawn), (1.0, 0.7)),
    }


def table():
    data = rows()
    return pd.DataFrame({"S": data.given[:, 0], "A": data.right[:, 0], "Y": data.target[:, 0]})


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def gradient(invariance, workers):
    """Loss, penalty and gradient of one batch, of which each worker has a part."""
    data, module, objective = rows(), network(), SquaredError()
    index = workers.own(torch.randperm(N, generator=torch.Generator().manual_seed(1))[:B])
    batch = data.take(index)
    output, more = module(*batch.inputs), invariance.imagined_inputs(index)
    imagined = output[:0] if more is None else module(*more)
    penalty = invariance.penalty(output, imagined, index, batch, workers)
    loss = objective.loss(output, batch.target, torch.linspace(0.1, 1, N)[index], workers)
    (loss + 3 * penalty).backward()
    workers.add_gradients(module.parameters())
    flat = torch.cat([part.grad.flatten() for part in module.parameters()])
    return torch.cat([torch.stack([loss, penalty]).detach(), flat])


def trained(workers, streamed=None):
    data, module = rows(), network()
    penalty = ResidualHSCIC(kernel=Gaussian(0.5))
    if streamed is not None:
        data = streamed
        penalty = penalty.prepare_parts(streamed.parts)
    else:
        penalty = penalty.prepare(data.right, data.given)
    settings = TrainingSettings(gamma=2.0, epochs=3, batch_size=150)
    fit = train(module, data, SquaredError(), settings, penalty, workers=workers)
    weights = torch.cat([part.flatten() for part in module.parameters()]).detach()
    return weights, fit.history


def square(number):
    if number < 0:
        raise InputError("A number is negative, got one below zero; pass others.")
    return number**2


def refused(engine):
    try:
        return list(engine.each(square, [1, -1, 2]))
    except InputError as error:
        return str(error)


def stored(folder):
    data = rows()
    layout = RowLayout.of(data)
    parts, start = [], 0
    for place, size in enumerate((300, 200, 100)):
        piece = data.take(torch.arange(start, start + size))
        path = folder / f"{place}.rows"
        assert store(path, iter([piece]), layout) == size
        parts.append(StoredPart(str(path), size, start, layout))
        start += size
    return StreamedRows(tuple(parts), layout)


def work(rank, size, port, folder):
    """What one of several processes does; it writes what it finds."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=size, timeout=timedelta(seconds=60)
    )
    workers = ProcessGroup()
    asked, streamed = pickle.loads((folder / "asked").read_bytes())
    found = {name: gradient(one, workers) for name, one in asked.items()}
    found["each"] = list(TorchRun().each(square, [3, 1, 2]))
    found["refused"] = refused(TorchRun())
    model = CIPRegressor(adjustment=["S"], protected=["A"], gamma=1.0, epochs=2, device="cpu", random_state=0)
    model.fit(folder / "*.csv", "Y", engine=TorchRun())
    found["fitted"] = model.predict(table()[["S", "A"]])
    found["trained"] = trained(workers)
    found["streamed"] = trained(workers, streamed)
    (folder / f"found {rank}").write_bytes(pickle.dumps(found))
    distributed.barrier()
    distributed.destroy_process_group()


WORKER = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.learning.test_workers import work
work(int(sys.argv[1]), 2, {port}, Path({folder!r}))
"""


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """What two workers find, by rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("workers")
    (folder / "asked").write_bytes(pickle.dumps((invariances(), stored(folder))))
    for number in range(3):
        table().iloc[number * 200 : (number + 1) * 200].to_csv(folder / f"{number}.csv", index=False)
    script = folder / "worker.py"
    script.write_text(WORKER.format(root=str(Path(__file__).parents[2]), port=port, folder=str(folder)))
    processes = [subprocess.Popen([warm.python(), str(script), str(rank)]) for rank in range(2)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    return [pickle.loads((folder / f"found {rank}").read_bytes()) for rank in range(2)]


@pytest.mark.parametrize("name", NAMES)
def test_gradient_of_two_workers_is_that_of_one_process(together, name):
    alone = gradient(invariances()[name], ALONE)
    for rank in range(2):
        shared = together[rank][name]
        torch.testing.assert_close(shared[:2], alone[:2], rtol=1e-5, atol=1e-7)
        assert float((shared[2:] - alone[2:]).norm() / alone[2:].norm()) < 1e-5


def test_work_is_shared_and_an_error_is_told_to_all(together):
    for rank in range(2):
        assert together[rank]["each"] == [9, 1, 4]
        assert together[rank]["refused"].startswith("A number is negative")


def test_a_fit_on_files_by_processes_gives_each_the_same_model(together):
    first, second = (together[rank]["fitted"] for rank in range(2))
    np.testing.assert_allclose(first, second, rtol=1e-6)
    assert np.corrcoef(first, table()["Y"])[0, 1] > 0.5


def test_a_training_of_two_workers_ends_with_the_same_weights_as_alone(together):
    weights, history = trained(ALONE)
    for rank in range(2):
        shared, told = together[rank]["trained"]
        torch.testing.assert_close(shared, weights, rtol=1e-3, atol=1e-4)
        assert told[-1]["loss"] == pytest.approx(history[-1]["loss"], rel=1e-3)
    torch.testing.assert_close(together[0]["trained"][0], together[1]["trained"][0])


def test_workers_that_stream_their_own_rows_learn_as_well(together, tmp_path):
    _, history = trained(ALONE, stored(tmp_path))
    torch.testing.assert_close(together[0]["streamed"][0], together[1]["streamed"][0])
    assert together[0]["streamed"][1][-1]["loss"] == pytest.approx(history[-1]["loss"], rel=0.05)


def test_streamed_rows_come_once_per_epoch_in_another_order(tmp_path):
    streamed, generator = stored(tmp_path), torch.Generator().manual_seed(0)
    first, second = (
        torch.cat([batch.target for _, batch in streamed.batches(streamed.plan(128, generator))]) for _ in range(2)
    )
    assert not torch.equal(first, second)
    expected = rows().target.sort(dim=0).values
    for found in (first, second):
        torch.testing.assert_close(found.sort(dim=0).values, expected)


def test_every_worker_has_rows_where_they_are_few(tmp_path):
    class Second(Workers):
        rank, size = 1, 2

    streamed, generator = stored(tmp_path), torch.Generator().manual_seed(0)
    own = [len(batch) for _, batch in streamed.batches(streamed.plan(128, generator, Second()))]
    assert len(own) == 5
    assert 0.4 * N < sum(own) < 0.6 * N
    assert min(own) > 0


def test_what_was_stored_is_read_as_it_was(tmp_path):
    data = rows()
    streamed = stored(tmp_path)
    again = streamed.layout.unpacked(streamed.parts[1].read(10, 5))
    expected = data.take(torch.arange(310, 315))
    for part in ("target", "right", "given"):
        torch.testing.assert_close(getattr(again, part), getattr(expected, part))
    torch.testing.assert_close(again.inputs[0], expected.inputs[0])


def test_a_process_without_others_is_told_so():
    with pytest.raises(ValueError, match="There is no process group"):
        ProcessGroup()
