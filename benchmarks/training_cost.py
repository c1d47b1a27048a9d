"""What a penalty costs in whole trainings: an epoch with it, or with imagined rows, against a plain one; many rows.

Run: python benchmarks/training_cost.py [--rows 1000000]
"""

import argparse
import resource
import time

import numpy as np
import pandas as pd
import torch

from ciplearn import CIPRegressor
from ciplearn.estimators.networks import Perceptron
from ciplearn.experiments.speed import paper_network, synthetic
from ciplearn.kernels import Gaussian
from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, train
from ciplearn.learning.invariance import CounterfactualVariance, ImaginedRows
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


def imagining_ratio(batch, per_row, n=8000, columns=20, rounds=5, epochs=2):
    """Median over rounds of an epoch that asks about imagined rows over a plain one, of the default network."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(n, columns, generator=generator)
    rows = TrainingRows((inputs,), inputs.sum(dim=1, keepdim=True))
    # Where every world is listed all of them count in each step, else four do.
    imagined = ImaginedRows(
        (torch.rand(n, per_row, columns, generator=generator),), torch.full((per_row,), 1 / per_row)
    )
    invariance = CounterfactualVariance(imagined)
    ratios = []
    for _ in range(rounds):
        seconds = []
        for gamma in (0.0, 1.0):
            settings = TrainingSettings(gamma=gamma, epochs=epochs, batch_size=batch)
            start = time.perf_counter()
            train(Perceptron(columns, (64, 64), 1), rows, SquaredError(), settings, invariance if gamma else None)
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
    """Print one line per measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for n in (1000, 8000):
        for batch in (256, 512):
            print(f"epoch of the paper's network, n = {n}, batch {batch}: {epoch_ratio(n, batch):.2f} ×", flush=True)
    for batch in (256, 512):
        for per_row in (2, 4):
            print(
                f"epoch of the default network with {per_row} imagined rows per row, batch {batch}: "
                f"{imagining_ratio(batch, per_row):.2f} × (at most {1.3 * (1 + per_row):.1f})",
                flush=True,
            )
    many_rows(options.rows // 10)
    many_rows(options.rows)


if __name__ == "__main__":
    main()
