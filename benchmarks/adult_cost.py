"""What the penalty costs on real, mixed columns: preparing it, and an epoch with it against one without.

Run: python benchmarks/adult_cost.py [--data FOLDER]
Ratios are taken in turns, on one thread, and never asserted. The goals: at most 20 s and 2 GB to prepare the default
penalty on 30 000 rows with 30 and more levels, and an epoch of at most 1.5 times plain training.
"""

import argparse
import resource
import sys
import time

import torch

from ciplearn import CIPClassifier
from ciplearn.datasets import graphs, load_adult
from ciplearn.experiments.timing import interleaved


def gigabytes() -> float:
    """The largest memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e9 if sys.platform == "darwin" else 1e6)  # bytes there, kilobytes elsewhere


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="the folder with adult.data and adult.test")
    parser.add_argument("--rounds", type=int, default=5)
    data = parser.parse_args()
    torch.set_num_threads(1)
    adult = load_adult(data.data)
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
        calls = [_epochs(X, y, gamma, count, batch_size) for gamma in (0.0, 1.0) for count in (1, 4)]
        # Three epochs more, so that reading the table and preparing the penalty cancel.
        plain, plain_more, penalised, penalised_more = interleaved(*calls, rounds=data.rounds, repeats=1)
        one, other = (plain_more - plain) / 3, (penalised_more - penalised) / 3
        print(f"epoch, batch {batch_size}: {other / one:.2f} × plain ({other:.3f} s against {one:.3f} s)")


def _epochs(X, y, gamma, count, batch_size):
    model = CIPClassifier(
        graph=graphs.adult_columns(), epochs=count, gamma=gamma, batch_size=batch_size, random_state=0, device="cpu"
    )
    return lambda: model.fit(X, y)


if __name__ == "__main__":
    main()
