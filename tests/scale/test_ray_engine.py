"""What two Ray workers find is what one process finds, also where a worker is killed."""

import importlib.util
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone

from ciplearn import CIPRegressor, Gaussian, ResidualHSCIC, frontier
from ciplearn._core.errors import InputError
from ciplearn._core.workers import OneProcess
from ciplearn.estimators.streaming import fit_stream
from ciplearn.sources import TableFiles, open_source
from tests.estimators.test_counterfactual_route import process, quick
from tests.estimators.test_streaming import SETTINGS, table
from tests.estimators.test_streaming_routes import FEW, files
from tests.penalties.parts import parts_of, rows, value_and_gradient

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("rows")
    frame = table()
    for number, start in enumerate(range(0, len(frame), 1000)):
        frame.iloc[start : start + 1000].to_parquet(place / f"{number}.parquet", index=False)
    return place


@dataclass(frozen=True)
class KilledOnce:
    """Ends its process with SIGKILL where a file is not there yet, and does its work from then on."""

    flag: Path

    def __call__(self, item):
        if item == 3 and not self.flag.exists():
            self.flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item**2


def test_results_come_in_order_and_a_killed_task_is_done_again(engine, tmp_path):
    flag = tmp_path / "killed"
    assert list(engine.each(KilledOnce(flag), range(8))) == [item**2 for item in range(8)]
    assert flag.exists()


def test_operator_of_two_workers_is_that_of_one_process(engine):
    right, given = rows()
    parts = parts_of(right, given, (700, 2000, 4000))
    penalty = ResidualHSCIC(kernel=Gaussian(0.5))
    alone, shared = penalty.prepare_parts(parts), penalty.prepare_parts(parts, engine)
    y_hat = (right + given)[:200].double()
    value, gradient = value_and_gradient(lambda y: alone(y, right[:200], given[:200]), y_hat)
    again, steps = value_and_gradient(lambda y: shared(y, right[:200], given[:200]), y_hat)
    assert float(again) == pytest.approx(float(value), rel=1e-6)
    assert float((steps - gradient).norm() / gradient.norm()) < 1e-6


def test_a_ray_dataset_is_a_table_that_streams(engine, folder):
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    source = open_source(ray.data.read_parquet(str(folder)))
    parts = source.parts()
    assert source.names == ("S", "A", "L", "Y")
    assert sum(part.n_rows for part in parts) == 4000
    sums = engine.each(_sum_of_outcomes, parts)
    assert sum(sums) == pytest.approx(table()["Y"].sum())


def _sum_of_outcomes(part):
    return sum(float(chunk["Y"].sum()) for chunk in part.chunks(["Y"]))


def test_a_bad_file_is_named_by_the_worker_that_reads_it(engine, tmp_path):
    frame = table(300)
    frame.to_csv(tmp_path / "0.csv", index=False)
    frame.drop(columns="L").to_csv(tmp_path / "1.csv", index=False)
    with pytest.raises(InputError, match=r"1\.csv lacks the column 'L'") as error:
        CIPRegressor(**SETTINGS, epochs=1).fit(tmp_path, engine=engine)
    assert "\n" not in str(error.value)


def test_predictions_of_two_workers_are_those_of_one_process(engine, folder, tmp_path):
    from ciplearn.cli.app import run

    model = [
        "fit",
        str(folder / "0.parquet"),
        "--graph",
        "S -> A, A -> L, S -> L, L -> Y, A -> Y, S -> Y",
        "--outcome",
        "Y",
    ]
    settings = ["--protected", "A", "--gamma", "1", "--no-compare", "--epochs", "1", "--out", str(tmp_path / "model")]
    assert run([*model, *settings]) == 0
    found = []
    for more in ([], ["--engine", "ray", "--workers", "2"]):
        out = tmp_path / f"{len(more)}.csv"
        assert run(["predict", str(tmp_path / "model"), str(folder), "--out", str(out), *more]) == 0
        found.append(out.read_bytes())
    assert found[0] == found[1]
    assert found[0].count(b"\n") == 4001


@pytest.mark.parametrize("share", [None, 0.25], ids=["counterfactual", "line"])
def test_a_route_of_two_workers_predicts_what_that_of_one_process_does(engine, tmp_path, share):
    scm = process()
    files(tmp_path, scm.sample(900, random_state=0))
    fresh, source = scm.sample(300, random_state=1), TableFiles.matching(tmp_path / "*.csv")
    made = quick(scm, **FEW) if share is None else quick(scm, **FEW).set_params(counterfactuals=None, gamma=0.0)
    alone, shared = (fit_stream(clone(made), source, None, one, share=share) for one in (OneProcess(), engine))
    assert shared.route_ == alone.route_ == ("counterfactual" if share is None else "line")
    errors = [1 - model.score(fresh[["A", "L", "Z"]], fresh["Y"]) for model in (alone, shared)]
    assert errors[1] == pytest.approx(errors[0], rel=0.05)


@dataclass(frozen=True)
class Saying:
    """A training that says which worker it is, and takes a while."""

    def __call__(self, workers):
        sys.stderr.write(f"worker {workers.rank} of {workers.size}\n")
        time.sleep(2)
        sys.stderr.write("done\n")
        return workers.rank


def test_what_the_first_worker_of_a_training_says_is_said_here(engine, capsys):
    assert engine.train(Saying()) == 0
    assert capsys.readouterr().err == "worker 0 of 2\ndone\n"


class DiesOnce(torch.nn.Module):
    """A network whose process is killed once, in the fifth of eight epochs."""

    def __init__(self, flag):
        super().__init__()
        self.flag, self.calls = flag, 0
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def forward(self, inputs):
        self.calls += self.training
        if self.training and not Path(self.flag).exists():
            # Slow enough to leave a checkpoint.
            time.sleep(0.08)
            if self.calls == 70:
                Path(self.flag).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return self.layers(inputs)


@pytest.mark.slow
def test_a_training_that_loses_a_worker_ends_as_one_that_does_not(engine, folder, tmp_path):
    settings = {**SETTINGS, "gamma": 1.0, "epochs": 8, "batch_size": 256}
    killed, spared = tmp_path / "killed", tmp_path / "spared"
    spared.touch()
    found = [
        CIPRegressor(**settings, module=DiesOnce(str(flag))).fit(folder, engine=engine) for flag in (killed, spared)
    ]
    assert killed.exists()
    # It went on from its checkpoint, not from the beginning.
    assert found[0].module_.calls < found[1].module_.calls
    fresh = table(1000, seed=1)
    errors = [1 - model.score(fresh.drop(columns="Y"), fresh["Y"]) for model in found]
    assert errors[0] == pytest.approx(errors[1], rel=1e-5)
    assert len(found[0].history_) == 8
    alone = CIPRegressor(**settings, module=DiesOnce(str(spared))).fit(folder, engine=OneProcess())
    assert errors[0] == pytest.approx(1 - alone.score(fresh.drop(columns="Y"), fresh["Y"]), rel=0.02)
    assert not any(np.isnan(error) for error in errors)


def test_a_frontier_of_tasks_is_that_of_processes_and_goes_on_where_it_was(engine, tmp_path):
    frame = table(300)
    X, y, file = frame.drop(columns="Y"), frame["Y"], tmp_path / "sweep.csv"
    model = CIPRegressor(**SETTINGS, epochs=2)
    here = frontier(model, X, y, gammas=(0.0, 1.0))
    frontier(model, X, y, gammas=(0.0,), engine=engine, file=file)
    there = frontier(model, X, y, gammas=(0.0, 1.0), engine=engine, file=file)
    np.testing.assert_allclose(there.table["loss"], here.table["loss"], rtol=1e-6)
    assert len(file.read_text().splitlines()) == 3


def test_more_workers_than_cores_are_refused(engine):
    from ciplearn.scale import RayEngine

    with pytest.raises(InputError, match="64 workers were asked for, but the cluster has"):
        RayEngine(workers=64)
    with pytest.raises(InputError, match="add nodes with a GPU"):
        RayEngine(workers=2, gpus=1)
