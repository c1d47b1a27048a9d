"""Measure studies without judging them: nothing is drawn, and the command line is not needed.

    python -m ciplearn.experiments.reproduction fig3 adult --preset paper --device cuda --out results --data adult

`ciplearn reproduce judge --out results` then makes results and the page of the tables.
"""

import argparse
import os
import sys
from pathlib import Path

from ciplearn.experiments.reproduction.registry import find
from ciplearn.experiments.reproduction.runner import measure


def main() -> None:
    """Measure one study after the other."""
    parser = argparse.ArgumentParser(prog="python -m ciplearn.experiments.reproduction")
    parser.add_argument("names", nargs="+")
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("reproduction-output"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--data")
    asked = parser.parse_args()
    for name in asked.names:
        for study in find(name):
            options = {} if asked.data is None else {"data": asked.data}
            how = {"seed": asked.seed, "device": asked.device, "n_jobs": asked.jobs, "options": options}
            measure(study, asked.preset, asked.out, **how)
            sys.stdout.write(f"Measured: {asked.out / study.name}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
