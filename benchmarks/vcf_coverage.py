"""How often the 95 % interval of VCF covers the truth where interventions are drawn from the rows' own law.

Run: python benchmarks/vcf_coverage.py [--repetitions 1000] [--rows 300] [--interventions 500] [NAME ...]
The VCF of each process is known in closed form.
"""

import argparse
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import expon, norm

from ciplearn import CausalGraph, StructuralCausalModel, variance_of_counterfactuals
from ciplearn.scm import Additive, Categories


@dataclass(frozen=True)
class Process:
    """S -> A -> L, S -> L: equations of A and L, noise of A, a predictor, and its VCF."""

    a: Any
    l: Any  # noqa: E741
    predictor: Any
    truth: float
    noise: Any = norm()  # noqa: RUF009
    kinds: Any = None

    def model(self) -> StructuralCausalModel:
        """Return the process."""
        return StructuralCausalModel(
            CausalGraph.from_edges("S -> A, S -> L, A -> L"),
            {"S": Additive(), "A": self.a, "L": self.l},
            {"S": norm(), "A": self.noise, "L": norm()},
            kinds=self.kinds,
        )


EFFECTS = {"low": 0.0, "middle": 1.0, "high": 2.5}
SHARES = np.array([0.5, 0.3, 0.2])


def _levels(p: Any, u: Any) -> Any:
    """A label that rises with S; the levels have the probabilities of `SHARES`."""
    return np.array(list(EFFECTS))[np.digitize((p["S"] + u) / math.sqrt(2), norm.ppf(SHARES.cumsum()[:2]))]


def _effect(p: Any) -> Any:
    return (1 + p["S"]) * np.vectorize(EFFECTS.get)(p["A"])


PROCESSES = {
    # L = A + S + u, A = S + u: VCF = Var A = 2.
    "normal": Process(Additive(lambda p: p["S"]), Additive(lambda p: p["A"] + p["S"]), lambda f: f["L"], 2.0),
    # A = S + exp(S / 2) u, L = (1 + S / 2) A + u: VCF = E[(1 + S / 2)²] Var A = 1.25 (1 + e^½).
    "heteroscedastic": Process(
        lambda p, u: p["S"] + np.exp(p["S"] / 2) * u,
        Additive(lambda p: (1 + p["S"] / 2) * p["A"]),
        lambda f: f["L"],
        1.25 * (1 + math.exp(0.5)),
    ),
    # A = S + an exponential: VCF = Var A = 2.
    "skewed": Process(Additive(lambda p: p["S"]), Additive(lambda p: p["A"] + p["S"]), lambda f: f["L"], 2.0, expon()),
    # A exponential alone, skewness 2 and kurtosis 9: VCF = Var A = 1.
    "very skewed": Process(
        Additive(lambda p: 0 * p["S"]), Additive(lambda p: p["A"] + p["S"]), lambda f: f["L"], 1.0, expon()
    ),
    # Three labels with effects e, L = (1 + S) e(A) + u: VCF = E[(1 + S)²] Var e(A) = 2 Var e(A).
    "categorical": Process(
        _levels,
        Additive(_effect),
        lambda f: f["L"],
        2 * float(SHARES @ np.square(list(EFFECTS.values())) - (SHARES @ list(EFFECTS.values())) ** 2),
        kinds={"A": Categories(list(EFFECTS))},
    ),
}


def coverage(name: str, repetitions: int, rows: int = 300, n_interventions: int = 500) -> tuple[float, float, float]:
    """Return how often the interval covers the truth, how often it lies below it, and its mean width over the truth."""
    process = PROCESSES[name]
    scm = process.model()
    generators = [np.random.default_rng([rows, seed]) for seed in range(repetitions)]
    ends = np.array(
        [
            variance_of_counterfactuals(
                process.predictor, scm, scm.sample(rows, generator), "A", rows, n_interventions, generator
            ).interval
            for generator in generators
        ]
    )
    below, above = ends[:, 1] < process.truth, ends[:, 0] > process.truth
    return 1 - (below | above).mean(), below.mean(), (ends[:, 1] - ends[:, 0]).mean() / process.truth


def main() -> None:
    """Print one line per process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--interventions", type=int, default=500)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for name in asked.names or PROCESSES:
        covered, below, width = coverage(name, asked.repetitions, asked.rows, asked.interventions)
        print(f"{name:16s} covered {covered:.3f}, too low {below:.3f}, width {width:.2f} of the truth", flush=True)


if __name__ == "__main__":
    main()
