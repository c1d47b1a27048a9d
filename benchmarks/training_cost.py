"""What a penalty costs in whole trainings: an epoch with it against one without, and a million rows.

Run: python benchmarks/training_cost.py [--rows 1000000]
"""

import argparse
import resource
import time

import numpy as np
import pandas as pd
import torch

from ciplearn import CIPRegressor
from ciplearn.experiments.speed import paper_network, synthetic
from ciplearn.kernels import Gaussian
from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, train
from ciplearn.penalties import ResidualHSCIC


def epoch_ratio(n, batch, rounds=7, epochs=3):
    """Median over rounds of the time of epochs with a prepared penalty over that of epochs without."""
    inputs, right, given = synthetic(n)
    rows = TrainingRows((inputs,), inputs.sum(dim=1, keepdim=True), right, given)
    operator = ResidualHSCIC(kernel=Gaussian(0.1)).prepare(right, given)
    ratios = []
    for _ in range(rounds):
        seconds = []
        for gamma in (0.0, 1.0):
            settings = TrainingSettings(gamma=gamma, epochs=epochs, batch_size=batch)
            start = time.perf_counter()
            train(paper_network(), rows, SquaredError(), settings, operator)
            seconds.append(time.perf_counter() - start)
        ratios.append(seconds[1] / seconds[0])
    return float(np.median(ratios))


def many_rows(n, epochs=5):
    """Fit a table of n rows and 20 columns with and without the penalty, preparation included."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.random((n, 20), dtype=np.float32), columns=[f"c{i}" for i in range(20)])
    target = table.sum(axis=1) + table["c0"] * table["c1"]
    seconds = []
    for gamma in (0.0, 1.0):
        model = CIPRegressor(
            protected=["c0", "c1"], adjustment=["c2", "c3"], gamma=gamma, epochs=epochs, batch_size=512, random_state=0
        )
        start = time.perf_counter()
        model.fit(table, target)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{n} rows × 20 columns, {epochs} epochs: {seconds[1]:.1f} s with, {seconds[0]:.1f} s without, "
        f"{seconds[1] / seconds[0]:.2f} ×; peak memory {peak:.2f} GB",
        flush=True,
    )


def main():
    """Print one line a measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for n in (1000, 8000):
        for batch in (256, 512):
            print(f"epoch of the paper's network, n = {n}, batch {batch}: {epoch_ratio(n, batch):.2f} ×", flush=True)
    many_rows(options.rows // 10)
    many_rows(options.rows)


if __name__ == "__main__":
    main()
