"""Level and power of `independence_test`: how often it rejects, and how often it says that it cannot judge.

python benchmarks/independence_level.py --rows 300 1000 --repetitions 500 --jobs 2
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).parent.parent))

from ciplearn import independence_test
from tests.evaluation.settings import POWER, SETTINGS


def tested(setting, n, seed, strength):
    """Whether one sample is rejected, and whether it is left unjudged."""
    torch.set_num_threads(1)
    sides = setting(n, np.random.default_rng([20_262, seed]), strength)
    found = independence_test(*sides, n_bootstrap=399, random_state=seed)
    return found.rejects, not found.is_judged


def main():
    """Print one line per setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--settings", nargs="+", default=[])
    parser.add_argument("--only", choices=["level", "power"])
    options = parser.parse_args()
    print(f"{'setting':24s} {'rows':>6s} {'strength':>9s} {'rejected':>9s} {'not judged':>11s}")
    with Parallel(n_jobs=options.jobs) as parallel:
        for what, strength, settings in (("level", 0.0, SETTINGS), ("power", 1.0, {**SETTINGS, **POWER})):
            for name, setting in settings.items():
                if options.only not in (None, what):
                    continue
                if options.settings and name not in options.settings:
                    continue
                for n in options.rows:
                    jobs = (delayed(tested)(setting, n, seed, strength) for seed in range(options.repetitions))
                    rejected, unjudged = np.mean(parallel(jobs), axis=0)
                    print(f"{name:24s} {n:6d} {strength:9.1f} {rejected:9.1%} {unjudged:11.1%}", flush=True)


if __name__ == "__main__":
    main()
