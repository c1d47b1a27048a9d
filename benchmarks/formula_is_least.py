"""No trained model lies below the closed form: E (m − f)² + γ VCF(f) is least for it, at every γ.

m is an unconstrained network. Networks are trained to say what m says and to be the same in imagined rows of the true
causal model, with weak to strong penalties. They and the repaired m, on the same true model, are measured on the same
fresh rows and their true worlds. Per process the smallest difference over all networks and strengths, trained less
repaired, as a share of the repaired value, and its standard error over rows: below zero only by chance.

Run: python benchmarks/formula_is_least.py [--only "linear,wavy"] [--epochs 60]
"""

import argparse

import numpy as np
import pandas as pd
import torch
from frontier_quality import Case
from processes import CHOSEN_ON, NEW, ROOTS

from ciplearn import CIPRegressor, repair
from ciplearn.estimators.preparation import Prepared

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0)
WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
ROWS = 400


def parts(answer, case, base):
    """Per row the squared distance to the network, and the variance over worlds."""
    count, table = case.worlds
    spread = answer(table.reset_index(drop=True)).reshape(count, -1).var(axis=0)
    shown = case.test.head(ROWS)
    return np.square(answer(shown) - base.predict(shown)), spread


def compared(name, process, epochs):
    """Return the smallest difference of one process, with its standard error."""
    case = Case(name, process(), points=ROWS)
    roles = {"graph": case.graph, "outcome": "Y", "protected": ["A"], "epochs": epochs, "random_state": 0}
    base = Prepared.of(CIPRegressor(**roles), case.X, case.y).trained(0.0)
    target = pd.Series(base.predict(case.X), index=case.X.index, name="Y")
    prepared = Prepared.of(CIPRegressor(**roles, counterfactuals=case.scm), case.X, target)
    trained = [parts(prepared.trained(weight).predict, case, base) for weight in WEIGHTS]
    repaired = repair(base, case.train, outcome="Y", protected=["A"], scm=case.scm)
    found = []
    for gamma in STRENGTHS:
        change, spread = parts(repaired.at(gamma).predict, case, base)
        least = change + gamma * spread
        for other_change, other_spread in trained:
            gap = other_change + gamma * other_spread - least
            found.append((gap.mean() / least.mean(), gap.std() / np.sqrt(len(gap)) / least.mean()))
    return min(found)


def main():
    """Print one line per process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    numbers = {name: process for name, process in (CHOSEN_ON | NEW | ROOTS).items() if not name.endswith("labels")}
    for name in numbers if options.only is None else options.only.split(","):
        gap, error = compared(name, numbers[name], options.epochs)
        print(f"{name}: trained less repaired {gap:+.3f} ± {error:.3f} of the repaired", flush=True)


if __name__ == "__main__":
    main()
