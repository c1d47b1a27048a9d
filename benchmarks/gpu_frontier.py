"""Seconds for 13 gammas × 9 seeds of the first synthetic case as one stacked network, evaluation included.

Run on a machine with a CUDA device: python benchmarks/gpu_frontier.py [--epochs 1000]
"""

import argparse
import time

import numpy as np
import torch
from torch import nn

from ciplearn import CIPRegressor, datasets, frontier
from ciplearn.datasets import MinMaxScaling


def paper_network():
    """Eight layers of twenty rectified units."""
    layers, width = [], 3
    for _ in range(8):
        layers += [nn.Linear(width, 20), nn.ReLU()]
        width = 20
    return nn.Sequential(*layers, nn.Linear(20, 1))


def main():
    """Print the time and the frontier."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--interventions", type=int, default=500)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("No CUDA device: nothing to measure.")
        return
    scm = datasets.first_synthetic()
    raw = scm.sample(10_000, random_state=0)
    scaling = MinMaxScaling.fit(raw)
    table, scaled = scaling.transform(raw), scaling.model(scm)
    train, test = table.iloc[:8000], table.iloc[8000:]
    columns = ["Z", "A", "L"]
    # All models are asked about the same counterfactual rows, so these are made once.
    points = test.head(options.points)
    draws = train["A"].sample(options.interventions, random_state=0).to_numpy()
    worlds = np.concatenate([scaled.counterfactual(points, {"A": value})[columns].to_numpy() for value in draws])

    def vcf(model):
        inputs = torch.from_numpy(worlds).float().to("cuda")
        with torch.no_grad():
            answers = model.module_(_encoded(model, inputs)).reshape(options.interventions, -1)
        return float(answers.var(dim=0).mean())

    def _encoded(model, inputs):
        names = {name: position for position, name in enumerate(columns)}
        parts = [
            (inputs[:, names[column.name]] - column.low) / (column.high - column.low)
            for column in model.encoding_.columns
        ]
        return torch.stack(parts, dim=1)

    model = CIPRegressor(graph=scm.graph, outcome="Y", protected=["A"], epochs=options.epochs, module=paper_network)
    start = time.perf_counter()
    found = frontier(
        model,
        train[columns],
        train["Y"],
        gammas=[0, *np.logspace(-2, 1.5, 12)],
        seeds=range(9),
        test=(test[columns], test["Y"]),
        measures={"vcf": vcf},
    )
    print(f"{len(found.points)} networks, {options.epochs} epochs: {time.perf_counter() - start:.1f} s")
    print(found.summary().to_string())


if __name__ == "__main__":
    main()
