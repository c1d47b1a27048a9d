"""What `ciplearn fit` delivers without options, on tables of labels with true counterfactuals.

Per table: the share of the unconstrained total effect that is left, the AUC beside CF2's, and the seconds. The tables
are those of `repair.py`. Tables 101 and 102 were looked at when the choice at the floor (`_at_the_floor` in
`routes/goal.py`) was settled; report others.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
import torch
from repair import made_up
from sklearn.metrics import roc_auc_score

from ciplearn import CIPClassifier, compare_routes
from ciplearn.baselines import CF2
from ciplearn.learners import Boosted, Linear
from ciplearn.routes import WithinLimits


def main():
    """Print one line per table, and means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for seed in range(options.first, options.first + options.count):
        graph, table, other = made_up(seed)
        cut = int(0.7 * len(table))
        train, test = table.iloc[:cut], table.iloc[cut:].reset_index(drop=True)
        there = other.iloc[cut:].reset_index(drop=True).drop(columns="Y")
        X, truth = test.drop(columns="Y"), test["Y"] == "yes"
        roles = {"graph": graph, "outcome": "Y", "protected": ["A"], "early_stopping": True, "epochs": 60}
        started = time.process_time()
        comparison = compare_routes(
            CIPClassifier(**roles),
            train.drop(columns="Y"),
            train["Y"],
            WithinLimits(),
            routes=("repair", "left-out"),
            learners={"network": None, "boosted": Boosted(), "linear": Linear()},
            baselines=False,
            cv=2,
        )
        row = {"rows": len(train), "seconds": time.process_time() - started, "met": comparison.met}
        models = {"free": comparison.models[comparison.free], "taken": comparison.model}
        models["CF2"] = CF2(graph=graph, outcome="Y", protected=["A"], random_state=0).fit(
            train.drop(columns="Y"), train["Y"]
        )
        for name, model in models.items():
            here, moved = (model.predict_proba(part)[:, 1] for part in (X, there))
            row |= {f"AUC {name}": roc_auc_score(truth, here), f"effect {name}": np.abs(here - moved).mean()}
        rows.append(row)
        print(comparison.chosen, {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    found = pd.DataFrame(rows)
    print(found.mean().round(4).to_string())
    print("left:", round(found["effect taken"].mean() / found["effect free"].mean(), 3))


if __name__ == "__main__":
    main()
