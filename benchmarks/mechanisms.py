"""How far imagined values of a node are from the true ones, by how its noise enters; and who is called a misfit.

One node L with the causes A and Z. A is set to the value of another row; the error is the root mean square of
(imagined − true) over the standard deviation of L; "least" is the error of the true model, which is not zero where a
value does not tell its noise. The true values come from the equations below and from the noise
that made the rows, not from the library. Besides: the share of fits that the report calls a misfit or ambiguous, and
the same if additive noise is all that may be chosen.

    python benchmarks/mechanisms.py [--rows 4000] [--seeds 5] [--only unseen]
"""

import argparse
import time

import numpy as np
import pandas as pd
from scipy import stats

from ciplearn import CausalGraph, fit_scm
from ciplearn.scm import AdditiveNoise

GRAPH = CausalGraph.from_edges("Z -> A, Z -> L, A -> L")


def _normal(u):
    return stats.norm.ppf(u[:, 0])


def _expit(x):
    return 1 / (1 + np.exp(-x))


def _hurdle(a, z, u, v):
    """Zero with a probability that A moves, else positive; v may be the same noise or another one."""
    p = _expit(0.3 - 0.8 * a)
    return np.where(u < p, 0.0, np.exp(0.5 * a - 0.3 * z + 0.5 * stats.norm.ppf(v(p))))


# name -> L(a, z, u) with u of shape (n, 2), independent and uniform.
# These were looked at while the default was built: the families, the rule of choice and the test were judged on them.
DEVELOPED = {
    "additive": lambda a, z, u: a**2 / 2 + z + _normal(u),
    "skewed": lambda a, z, u: np.sin(a) + z + stats.expon.ppf(u[:, 0]),
    "location-scale": lambda a, z, u: a + z + np.exp(0.6 * a - 0.3 * z) * _normal(u),
    "multiplicative": lambda a, z, u: np.exp(0.7 * a + 0.3 * z + 0.5 * _normal(u)),
    "bounded": lambda a, z, u: _expit(a - z + 0.7 * _normal(u)),
    "counts": lambda a, z, u: stats.poisson.ppf(u[:, 0], np.exp(0.5 + 0.5 * a + 0.2 * z)),
    "zero-inflated, two noises": lambda a, z, u: _hurdle(a, z, u[:, 0], lambda p: u[:, 1]),
}

# These were written down when the default stood, and run then. Two things were mended after a look at them: a mechanism
# must pass the test of its noise to be chosen (gamma, beta), and no threshold of quantiles lies inside a shared value.
# No constant was changed for them.
UNSEEN = {
    "zero-inflated, one noise": lambda a, z, u: _hurdle(a, z, u[:, 0], lambda p: ((u[:, 0] - p) / (1 - p)).clip(1e-9)),
    "cut off at zero": lambda a, z, u: np.maximum(0.0, a + 0.5 * z + _normal(u)),
    "heavy tails": lambda a, z, u: np.tanh(2 * a) + 0.5 * z + 0.5 * stats.t.ppf(u[:, 0], 3),
    "two humps": lambda a, z, u: a * z / 2 + np.where(u[:, 0] < 0.5, -1.5, 1.5) + 0.4 * stats.norm.ppf(u[:, 1]),
    "gamma, shape by A": lambda a, z, u: stats.gamma.ppf(u[:, 0], np.exp(0.5 + 0.4 * a), scale=np.exp(0.2 * z)),
    "beta by A": lambda a, z, u: stats.beta.ppf(u[:, 0], np.exp(0.5 + 0.4 * a), np.exp(0.8 - 0.3 * z)),
    "overdispersed counts": lambda a, z, u: stats.nbinom.ppf(u[:, 0], 2, 2 / (2 + np.exp(1 + 0.5 * a - 0.3 * z))),
    "rare counts": lambda a, z, u: stats.poisson.ppf(u[:, 0], np.exp(-3 + 0.8 * a)),
    "whole years": lambda a, z, u: np.round(40 + 5 * a + 3 * z + 6 * _normal(u)),
    "multiplicative, shifted": lambda a, z, u: 5 - np.exp(0.5 * a + 0.5 * _normal(u)),
    "scale with a kink": lambda a, z, u: z + (0.2 + np.abs(a)) * _normal(u),
    "sign not identified": lambda a, z, u: (a + 0.1 * z) * _normal(u),
}


def draw(generator, n):
    """Return A, Z and two uniform noises of n rows."""
    z = generator.normal(size=n)
    a = 0.7 * z + generator.normal(size=n)
    return a, z, generator.uniform(1e-9, 1 - 1e-9, size=(n, 2))


def imagined(equation, rows, seed, mechanisms=None):
    """Return the error, the fitted model's line on L, the seconds that the fit took, and the true model's error."""
    generator = np.random.default_rng([seed, 17])
    a, z, u = draw(generator, rows)
    start = time.perf_counter()
    table = pd.DataFrame({"Z": z, "A": a, "L": equation(a, z, u)})
    model = fit_scm(GRAPH, table, mechanisms, random_state=seed)
    spent = time.perf_counter() - start
    a, z, u = draw(generator, 2000)
    other = generator.permutation(a)
    fresh = pd.DataFrame({"Z": z, "A": a, "L": equation(a, z, u)})
    found = model.counterfactual(fresh, {"A": other}, random_state=seed)["L"].to_numpy()
    truth = equation(other, z, u)
    known = equation(other, z, redrawn(equation, a, z, u, generator))
    error, least = (float(np.sqrt(np.mean((said - truth) ** 2)) / fresh["L"].std()) for said in (found, known))
    return error, next(fit for fit in model.report.nodes if fit.node == "L"), spent, least


def redrawn(equation, a, z, u, generator):
    """Return noise that makes the same values, another one where several do: what the true model can know of a row."""
    value, noise = equation(a, z, u), u.copy()
    shared = np.isin(value, (seen := np.unique(value, return_counts=True))[0][seen[1] > 1])
    left = np.flatnonzero(shared)
    for _ in range(3000):
        if not len(left):
            break
        trial = generator.uniform(1e-9, 1 - 1e-9, size=(len(left), 2))
        met = equation(a[left], z[left], trial) == value[left]
        noise[left[met]] = trial[met]
        left = left[~met]
    return noise


def main():
    """Print one line per process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=["developed", "unseen"])
    given = parser.parse_args()
    head = ("process", "least", "error", "worst", "misfit", "unclear", "additive:", "misfit", "s/fit")
    print(f"{given.rows} rows, {given.seeds} seeds")
    print(f"{head[0]:<26}" + "".join(f"{name:>10}" for name in head[1:]) + "  chosen")
    for part, cases in (("developed", DEVELOPED), ("unseen", UNSEEN)):
        if given.only not in (None, part):
            continue
        for name, equation in cases.items():
            runs = [imagined(equation, given.rows, seed) for seed in range(given.seeds)]
            plain = [imagined(equation, given.rows, seed, {"L": AdditiveNoise()}) for seed in range(given.seeds)]
            errors = [run[0] for run in runs]
            numbers = (
                np.mean([run[3] for run in runs]),
                np.mean(errors),
                max(errors),
                np.mean([run[1].misfit is not None for run in runs]),
                np.mean([run[1].ambiguity is not None for run in runs]),
                np.mean([run[0] for run in plain]),
                np.mean([run[1].misfit is not None for run in plain]),
                np.mean([run[2] for run in runs]),
            )
            chosen = "; ".join(sorted({run[1].mechanism for run in runs}))
            print(f"{name:<26}" + "".join(f"{number:>10.3f}" for number in numbers) + f"  {chosen}", flush=True)


if __name__ == "__main__":
    main()
