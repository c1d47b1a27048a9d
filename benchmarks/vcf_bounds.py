"""Whether the truth lies within the bounds on VCF that need no causal model.

Run: python benchmarks/vcf_bounds.py [--rows 2000] [--seeds 2]
Processes with overlap, predictors of several kinds; beside each, what a model estimated from the same rows says.
"""

import argparse

import numpy as np
import pandas as pd
import torch
from scipy.stats import norm

from ciplearn import CausalGraph, StructuralCausalModel, datasets, fit_scm, variance_of_counterfactuals, vcf_bounds
from ciplearn.scm import Additive


def linear(spread: float = 1.0) -> StructuralCausalModel:
    """A = S + spread u, L = A + S + u."""
    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, Z -> L, A -> L"),
        {"Z": Additive(), "A": Additive(lambda p: p["Z"]), "L": Additive(lambda p: p["A"] + p["Z"])},
        {"Z": norm(), "A": norm(0, spread), "L": norm()},
    )


def grouped() -> StructuralCausalModel:
    """A is 0 or 1 with a probability that rises with Z, and multiplies the noise of L."""
    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, Z -> L, A -> L"),
        {
            "Z": Additive(),
            "A": lambda p, u: (p["Z"] + 2 * u > 0).astype(float),
            "L": lambda p, u: p["Z"] + (1 - 2 * p["A"]) * u,
        },
        {"Z": norm(), "A": norm(), "L": norm()},
        inverses={"L": lambda p, v: (v - p["Z"]) / (1 - 2 * p["A"])},
    )


PROCESSES = {
    "linear": linear(),
    "linear, less overlap": linear(0.5),
    "sign of the noise": grouped(),
    "first case": datasets.first_synthetic(),
    "scenario 1": datasets.scenario_1(),
    "linear, no overlap": linear(0.05),
}
PREDICTORS = {
    "L": lambda f: f["L"],
    "A": lambda f: f["A"],
    "A + tanh L": lambda f: f["A"] + np.tanh(f["L"]),
    "sin Z": lambda f: np.sin(f["Z"]),
}


def compared(process: str, predictor: str, rows: int, seed: int) -> dict[str, object]:
    """Bounds, truth and the value of an estimated model."""
    scm, model = PROCESSES[process], PREDICTORS[predictor]
    table = scm.sample(rows, random_state=seed)[["Z", "A", "L"]]
    fresh = scm.sample(5000, random_state=1000 + seed)[["Z", "A", "L"]]
    graph = CausalGraph.from_edges("Z -> A, Z -> L, A -> L")
    bounds = vcf_bounds(model, table, protected="A", given="Z", random_state=seed)
    truth = variance_of_counterfactuals(model, scm, fresh, "A", 2000, 100).value
    told = variance_of_counterfactuals(model, fit_scm(graph, table, random_state=seed), table, "A", 500, 100)
    low, high = bounds.interval
    return {
        "process": process,
        "prediction": predictor,
        "low": low,
        "lower": bounds.lower,
        "truth": truth,
        "upper": bounds.upper,
        "high": high,
        # A hair of tolerance for predictions that nothing but Z moves.
        "inside": low - 1e-3 <= truth <= high + 1e-3,
        "alarm": bounds.alarm,
        "overlap": bounds.overlap,
        "estimated model": told.value,
        "contradicted": bounds.contradicts(told),
    }


def main() -> None:
    """Print a table and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = pd.DataFrame(
        compared(process, predictor, asked.rows, seed)
        for process in PROCESSES
        for predictor in PREDICTORS
        for seed in range(asked.seeds)
    )
    print(found.to_string(index=False, float_format=lambda number: f"{number:.3g}"))
    readable = found[~found["alarm"]]
    print(f"inside: {readable['inside'].sum()} of {len(readable)} without an alarm; alarms: {found['alarm'].sum()}")


if __name__ == "__main__":
    main()
