"""What a million rows in memory cost: `prepare`, the memory it takes, and a training step, by numbers of columns.

    python benchmarks/million_rows.py [--rows 1000000] [--only 3+3,10+10]

Each setting runs in a process of its own, since memory that another needed would be counted. To compare with another
version, run it again with PYTHONPATH at that version's src: only names that every release has are used.
"""

import argparse
import multiprocessing
import resource
import time

import torch

from ciplearn import Gaussian, ResidualHSCIC

# Conditioning and right-hand columns.
SETTINGS = ((1, 1), (3, 3), (1, 10), (10, 10))
BATCHES = (256, 1024)
STEPS = 40


def peak():
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def made_rows(n, n_given, n_right):
    """S, and R that depends on it."""
    draw = torch.Generator().manual_seed(0)
    given = torch.randn(n, n_given, generator=draw)
    weights = torch.randn(n_given, n_right, generator=draw) / n_given**0.5
    return torch.tanh(given @ weights) + 0.7 * torch.randn(n, n_right, generator=draw), given


def step_time(operator, y_hat, size):
    """Milliseconds of the penalty and its gradient on a batch: the best of five times forty."""
    batches = torch.randperm(len(y_hat), generator=torch.Generator().manual_seed(0))[: size * STEPS].split(size)
    found = []
    for _ in range(5):
        began = time.process_time()
        for rows in batches:
            batch = y_hat[rows].requires_grad_()
            operator(batch, rows=rows).backward()
        found.append((time.process_time() - began) / len(batches) * 1e3)
    return min(found)


def study(n, n_given, n_right):
    """Print one line."""
    torch.set_num_threads(1)
    right, given = made_rows(n, n_given, n_right)
    data, began = peak(), time.process_time()
    operator = ResidualHSCIC(kernel=Gaussian(1.4)).prepare(right, given)
    seconds, whole = time.process_time() - began, peak()
    y_hat = right.sum(dim=1, keepdim=True) / n_right**0.5 + given[:, :1]
    steps = ", ".join(f"{step_time(operator, y_hat, size):.2f} ms at {size} rows" for size in BATCHES)
    print(
        f"{n_given}+{n_right}: prepare {seconds:.1f} s of CPU, peak {whole:.0f} MB of which {data:.0f} were there "
        f"before; a step {steps}",
        flush=True,
    )


def main():
    """Run every setting in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", help="settings like 3+3, with commas between them")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for n_given, n_right in SETTINGS:
        if options.only and f"{n_given}+{n_right}" not in options.only.split(","):
            continue
        process = context.Process(target=study, args=(options.rows, n_given, n_right))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
