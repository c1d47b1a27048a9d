"""What many rows cost: `prepare` and `predict` on Parquet files, one process beside Ray workers, and kills.

    python benchmarks/scale.py prepare --rows 1000000 10000000
    python benchmarks/scale.py prepare --rows 1000000 100000000 --workers 2
    python benchmarks/scale.py workers --rows 3000000
    python benchmarks/scale.py fit --rows 200000
    python benchmarks/scale.py kills --times 10

Files are generated in chunks under --folder and removed. Times are ratios within one run; CPU seconds are said beside
wall seconds, because a busy machine stretches the latter.
"""

import argparse
import importlib
import multiprocessing
import os
import random
import resource
import shutil
import signal
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import torch

from ciplearn import CausalGraph, CIPRegressor, Gaussian, ResidualHSCIC
from ciplearn._core.workers import OneProcess
from ciplearn.sources import Part, TableFiles

NAMES = ("S1", "S2", "S3", "A", "L", "Y")
GRAPH = CausalGraph.from_text("{S1 S2 S3} -> {A L Y}, A -> {L Y}, L -> Y")
FILE_ROWS = 2_000_000
CHUNK = 250_000


def table(n, seed):
    """Rows of six columns."""
    generator = np.random.default_rng(seed)
    s = generator.normal(size=(n, 3))
    a = s @ [0.5, 0.3, 0.2] + generator.normal(size=n)
    level = np.tanh(a) + s[:, 0] + 0.3 * generator.normal(size=n)
    y = level - 0.5 * a + s[:, 1] + 0.3 * generator.normal(size=n)
    return pd.DataFrame(np.column_stack([s, a, level, y]), columns=NAMES)


def write(folder, n):
    """Write n rows as Parquet files of two million rows at most, each row group a chunk that was generated."""
    folder.mkdir(parents=True)
    for number, start in enumerate(range(0, n, FILE_ROWS)):
        size, writer = min(FILE_ROWS, n - start), None
        for first in range(0, size, CHUNK):
            rows = pyarrow.Table.from_pandas(table(min(CHUNK, size - first), start + first), preserve_index=False)
            writer = writer or pyarrow.parquet.ParquetWriter(folder / f"{number:05d}.parquet", rows.schema)
            writer.write_table(rows)
        writer.close()
    return folder


@dataclass(frozen=True)
class FileRows:
    """A part of the files as rows of a penalty: {A, L} given {S1, S2, S3}."""

    part: Part
    start: int

    def pairs(self):
        """Right-hand side and conditioning variables."""
        for chunk in self.part.chunks(("A", "L", "S1", "S2", "S3")):
            numbers = torch.from_numpy(chunk.to_numpy(np.float32, copy=True))
            yield numbers[:, :2], numbers[:, 2:]


def file_rows(folder):
    """Parts of all files, with the numbers of their first rows."""
    found, start = [], 0
    for part in TableFiles.matching(folder).parts():
        found.append(FileRows(part, start))
        start += part.n_rows
    return found


def prepare(folder, engine):
    """The operator, wall and CPU seconds of this process."""
    penalty = ResidualHSCIC(kernel=Gaussian(0.5))
    began = time.perf_counter(), time.process_time()
    operator = penalty.prepare_parts(file_rows(folder), engine)
    return operator, time.perf_counter() - began[0], time.process_time() - began[1]


def alone(answers, folder):
    """Prepare, and say what it took."""
    torch.set_num_threads(1)
    operator, wall, cpu = prepare(folder, OneProcess())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers.put((operator.n_rows, operator.relative_error, wall, cpu, peak))


def up(engine):
    """Wait until every Ray worker has answered, with what it needs imported; their numbers, and seconds."""
    began, seen = time.perf_counter(), set()
    while len(seen) < engine.workers:
        seen.update(process for process, _ in engine.each(worker_peak, range(4 * engine.workers)))
    return seen, time.perf_counter() - began


def tables(arguments, place):
    """A folder with a table per number of rows, one at a time: disks are small beside them."""
    for n in arguments.rows:
        folder = write(place / str(n), n)
        yield folder
        shutil.rmtree(folder)


def row(cells):
    """Print a row of the table at once: the next takes minutes."""
    print(f"| {cells} |", flush=True)


def prepare_costs_of_workers(arguments, place):
    """Time per row and peak memory of Ray workers, at several numbers of rows."""
    import ray

    from ciplearn.scale import RayEngine

    ray.init(num_cpus=arguments.workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    engine = RayEngine(workers=arguments.workers)
    print(f"{arguments.workers} workers are up after {up(engine)[1]:.1f} s")
    print("| rows | seconds | µs per row | ratio | peak MB of a worker | peak MB of the driver | relative error |")
    print("|---|---|---|---|---|---|---|")
    first = None
    for folder in tables(arguments, place):
        operator, wall, _ = prepare(folder, engine)
        n = operator.n_rows
        peak = max(memory for _, memory in engine.each(worker_peak, range(4 * engine.workers)))
        first = first or wall / n
        row(
            f"{n} | {wall:.1f} | {wall / n * 1e6:.2f} | {wall / n / first:.2f} | {peak:.0f} | "
            f"{worker_peak(None)[1]:.0f} | {operator.relative_error:.3f}"
        )
    ray.shutdown()


def prepare_costs(arguments, place):
    """Time per row and peak memory of one process, at several numbers of rows."""
    if arguments.workers:
        return prepare_costs_of_workers(arguments, place)
    print("| rows | CPU µs per row | wall µs per row | ratio of CPU | peak MB | relative error |")
    print("|---|---|---|---|---|---|")
    first = None
    for folder in tables(arguments, place):
        # In a process of its own: memory that another size needed would be counted.
        context = multiprocessing.get_context("spawn")
        answers = context.SimpleQueue()
        process = context.Process(target=alone, args=(answers, folder))
        process.start()
        rows, error, wall, cpu, peak = answers.get()
        process.join()
        first = first or cpu / rows
        row(
            f"{rows} | {cpu / rows * 1e6:.2f} | {wall / rows * 1e6:.2f} | {cpu / rows / first:.2f} | {peak:.0f} | "
            f"{error:.3f}"
        )


def worker_peak(_):
    """The process number of a worker, and the most memory that it has held."""
    importlib.import_module("ciplearn.estimators")
    time.sleep(0.1)  # or the first worker answers for all
    return os.getpid(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def count(_):
    """A second of arithmetic: what two workers can gain at most, on a machine that others use too."""
    began = time.process_time()
    while time.process_time() - began < 1:
        pass


def score_part(model, part):
    """Mean prediction of a part."""
    return float(np.mean([model.predict(chunk).mean() for chunk in part.chunks(model.roles_.inputs)]))


@dataclass(frozen=True)
class Predicting:
    """Predictions for a part."""

    model: CIPRegressor

    def __call__(self, part):
        """Their mean."""
        torch.set_num_threads(1)
        return score_part(self.model, part)


def worker_gains(arguments, place):
    """`prepare` and `predict` by one and by two Ray workers, and how near their operators are to one process's."""
    import ray

    from ciplearn.scale import RayEngine

    folder = write(place / "workers", arguments.rows[0])
    reference, wall, _ = prepare(folder, OneProcess())
    some = table(500, 1)
    right, given = (
        torch.from_numpy(some[list(names)].to_numpy(np.float32, copy=True)) for names in (("A", "L"), NAMES[:3])
    )
    y_hat = torch.from_numpy(some[["Y"]].to_numpy(copy=True))
    value = float(reference(y_hat, right, given))
    model = CIPRegressor(GRAPH, "Y", ["A"], gamma=0.0, epochs=1, device="cpu").fit(some.drop(columns="Y"), some["Y"])
    parts = TableFiles.matching(folder).parts()
    print(f"rows {arguments.rows[0]}; prepare in one process: {wall:.1f} s")
    times = {}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    for workers in (1, 2, 1, 2):
        engine = RayEngine(workers=workers)
        up(engine)
        operator, wall, _ = prepare(folder, engine)
        began = time.perf_counter()
        list(engine.each(Predicting(model), parts))
        predicted = time.perf_counter() - began
        began = time.perf_counter()
        list(engine.each(count, range(4)))
        times.setdefault(workers, []).append((wall, predicted, time.perf_counter() - began))
        apart = abs(float(operator(y_hat, right, given)) / value - 1)
        peak = max(memory for _, memory in engine.each(worker_peak, range(4 * workers)))
        print(
            f"{workers} workers: prepare {wall:.1f} s, predict {predicted:.1f} s, operator apart {apart:.1e}, "
            f"peak per worker {peak:.0f} MB",
            flush=True,
        )
    best = {workers: np.min(found, axis=0) for workers, found in times.items()}
    gains = best[1] / best[2]
    print(f"two against one: prepare {gains[0]:.2f} x, predict {gains[1]:.2f} x; a loop that counts {gains[2]:.2f} x")
    ray.shutdown()


def fit_costs(arguments, place):
    """A whole fit on files: two Ray workers beside one process, errors on fresh rows."""
    import ray

    from ciplearn.scale import RayEngine

    folder, fresh = write(place / "fit", arguments.rows[0]), table(20_000, 10**9)
    for name, make in (("one process", OneProcess), ("two Ray workers", lambda: RayEngine(workers=2))):
        engine = make()
        began = time.perf_counter()
        model = CIPRegressor(GRAPH, "Y", ["A"], gamma=1.0, epochs=3, batch_size=1024, device="cpu", random_state=0)
        model.fit(folder, engine=engine)
        error = 1 - model.score(fresh.drop(columns="Y"), fresh["Y"])
        print(f"{name}: {time.perf_counter() - began:.1f} s, 1 - R² on fresh rows {error:.4f}", flush=True)
    ray.shutdown()


def busy_workers():
    """Ray workers of this program that are at work: process numbers, and what they do."""
    parents, named = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_text()
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        for sign, what in (("ray::_alone_on_a_core", "a pass"), ("ray::_Trainer", "training")):
            if words.startswith(sign):
                named[int(place.name)] = what

    def is_ours(process):
        while process in parents:
            process = parents[process]
            if process == os.getpid():
                return True
        return False

    return {process: what for process, what in named.items() if is_ours(process)}


def killed_fits(arguments, place):
    """Kill a Ray worker with SIGKILL at random moments of a fit and a prediction; each must end as if nothing was.

    Moments at which nobody is at work wait for the next worker that is; runs that end before that do not count.
    """
    import ray

    from ciplearn.scale import RayEngine

    folder = write(place / "kills", arguments.rows[0])
    engine, parts = RayEngine(workers=2), TableFiles.matching(folder).parts()
    fresh, stage = table(2000, 10**9).drop(columns="Y"), ["fit"]

    def run():
        began, stage[0] = time.perf_counter(), "fit"
        model = CIPRegressor(GRAPH, "Y", ["A"], gamma=1.0, epochs=4, batch_size=1024, device="cpu", random_state=0)
        own, stage[0] = model.fit(folder, engine=engine).predict(fresh), "predict"
        means = list(engine.each(Predicting(model), parts))
        return np.concatenate([own, means]), time.perf_counter() - began

    expected, duration = run()
    print(f"undisturbed: {duration:.1f} s")
    moments, hits = random.Random(0), 0
    while hits < arguments.times:
        done, killed = threading.Event(), []

        def kill(moment, done=done, killed=killed):
            done.wait(moment)
            while not done.wait(0.01) and not killed:
                busy = busy_workers()
                if busy:
                    process = moments.choice(sorted(busy))
                    os.kill(process, signal.SIGKILL)
                    killed.append(f"{busy[process]} of {stage[0]}")

        killer = threading.Thread(target=kill, args=(moments.uniform(0, duration),))
        killer.start()
        found, took = run()
        done.set()
        killer.join()
        if not killed:
            continue
        hits += 1
        apart = float(np.abs(found - expected).max())
        print(f"{hits}: killed in {killed[0]}, {took:.1f} s, largest difference {apart:.1e}", flush=True)
    ray.shutdown()


def main():
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("prepare", "workers", "fit", "kills"))
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--workers", type=int, default=0, help="of Ray, for prepare; 0 is this process")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    work = {"prepare": prepare_costs, "workers": worker_gains, "fit": fit_costs, "kills": killed_fits}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        work[arguments.what](arguments, Path(place))


if __name__ == "__main__":
    main()
