"""Intervals and sets of labels that are the same in every world: how often they hold, and how far they move.

Per table a plain model is trained on a third of the rows, repaired with another third, and asked about the last third,
as its people are and as the true model makes them with another value of A. Printed are means over tables: coverage
(0.9 is asked for), how much wider intervals or larger sets are in the other world, how far ends move as a share of the
width, how many sets differ, and the same of conformal intervals and sets around the model itself, which may move.

Run: python benchmarks/intervals.py [--count 200] [--first 0] [--rows 3000]
"""

import argparse

import numpy as np
import pandas as pd
import torch
from processes import ROOTS
from repair import additive
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from ciplearn import repair

COVERAGE = 0.9


def numbers(seed, rows):
    """A process with A at the root, its table, and the same people with A of another person."""
    name = ("root group", "root number")[seed % 2]
    scm = ROOTS[name]()
    table = scm.sample(rows, random_state=seed)
    other = table["A"].sample(frac=1, random_state=seed).to_numpy()
    moved = scm.counterfactual(table, {"A": other})
    return scm.graph, table, moved


def one(seed, rows, labels):
    """Return what one table says."""
    graph, table, moved = additive(seed) if labels else numbers(seed, rows)
    a, b = len(table) // 3, 2 * len(table) // 3
    inputs = [name for name in table.columns if name != "Y"]
    last = LogisticRegression(max_iter=1000) if labels else LinearRegression()
    model = make_pipeline(SplineTransformer(5, extrapolation="linear"), StandardScaler(), last)
    model.fit(table[inputs][:a].astype(float), table["Y"][:a])
    repaired = repair(model, table[a:b].astype(dict.fromkeys(inputs, float)), graph=graph, outcome="Y", protected=["A"])
    here, there, truth = (frame[b:].reset_index(drop=True) for frame in (table, moved, table["Y"]))
    here, there = here[inputs].astype(float), there[inputs].astype(float)
    found = {}
    for name, one in (("same in every world", repaired), ("plain", repaired.at(strength=0))):
        if labels:
            scores = 1 - one.predict_proba(table[inputs][a:b].astype(float))
            known = scores[np.arange(b - a), np.searchsorted(model.classes_, table["Y"][a:b])]
        else:
            known = np.abs(one.predict(table[inputs][a:b].astype(float)) - table["Y"][a:b])
        radius = np.sort(known)[int(np.ceil((b - a + 1) * COVERAGE)) - 1]
        if labels:
            sets = [1 - one.predict_proba(frame) <= radius for frame in (here, there)]
            holds = sets[0][np.arange(len(truth)), np.searchsorted(model.classes_, truth)]
            moves, sizes = (sets[0] != sets[1]).any(axis=1).mean(), [each.sum(axis=1).mean() for each in sets]
        else:
            middles = [one.predict(frame) for frame in (here, there)]
            holds = np.abs(middles[0] - truth) <= radius
            moves, sizes = np.abs(middles[1] - middles[0]).mean() / (2 * radius), [1.0, 1.0]
        found |= {f"{name}: coverage": np.mean(holds), f"{name}: moves": moves}
        found[f"{name}: size in the other world"] = sizes[1] / sizes[0]
    asked = repaired.predict_set(here) if labels else repaired.predict_interval(here, COVERAGE)
    inside = [y in each for y, each in zip(truth, asked, strict=True)] if labels else None
    held = inside if labels else (asked[:, 0] <= truth) & (truth <= asked[:, 1])
    return found | {"as ciplearn gives them: coverage": np.mean(held)}


def main():
    """Read what is asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=int, default=3000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for labels in (False, True):
        table = pd.DataFrame(
            [one(seed, options.rows, labels) for seed in range(options.first, options.first + options.count)]
        )
        print("labels" if labels else "numbers", table.mean().round(4).to_string(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
