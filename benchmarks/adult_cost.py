"""What the penalty costs on real, mixed columns: preparing it, and an epoch with it against one without.

Run: python benchmarks/adult_cost.py [--data FOLDER]
Ratios are of one thread's own time, taken in turns, and never asserted. The goals: at most 20 s and 2 GB to prepare the
default penalty on 30 000 rows with 30 and more levels, and an epoch of at most 1.5 times plain training.
"""

import argparse
import itertools
import resource
import sys
import time

import torch

from ciplearn import CIPClassifier
from ciplearn.datasets import graphs, load_adult


def gigabytes() -> float:
    """The largest memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e9 if sys.platform == "darwin" else 1e6)  # bytes there, kilobytes elsewhere


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="the folder with adult.data and adult.test")
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    adult = load_adult(asked.data)
    X, y = adult.train.drop(columns="income"), adult.train["income"]
    levels = sum(X[name].nunique() for name in X.select_dtypes("category"))
    before = gigabytes()
    model = CIPClassifier(graph=graphs.adult_columns(), epochs=1, gamma=1.0, random_state=0).fit(X, y)
    start = time.process_time()
    operator = model.penalty_operator(X)
    print(
        f"prepare: {time.process_time() - start:.2f} s of one thread on {len(X)} rows with {levels} levels, peak "
        f"{gigabytes():.2f} GB ({before:.2f} GB of it before training); {operator.setting}"
    )
    for batch_size in (128, 256):
        taken: dict[tuple[float, int], list[float]] = {}
        for _ in range(asked.rounds):
            for gamma, count in itertools.product((0.0, 1.0), (1, 5)):
                taken.setdefault((gamma, count), []).append(_seconds(X, y, gamma, count, batch_size))
        # Four epochs more, so that reading the table and preparing the penalty cancel.
        plain, penalised = ((min(taken[gamma, 5]) - min(taken[gamma, 1])) / 4 for gamma in (0.0, 1.0))
        print(f"epoch, batch {batch_size}: {penalised / plain:.2f} × plain ({penalised:.3f} s against {plain:.3f} s)")


def _seconds(X, y, gamma, count, batch_size):
    model = CIPClassifier(
        graph=graphs.adult_columns(), epochs=count, gamma=gamma, batch_size=batch_size, random_state=0, device="cpu"
    )
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


if __name__ == "__main__":
    main()
