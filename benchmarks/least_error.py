"""The least error that any predictor can have on the processes with A at the root, where 5 % and 1 % of VCF are left.

Among predictors h of A and the noises U with E Var_a(h | U) = s² E Var_a(f | U), where f is the best unconstrained one,
g + s (f − g) has the least squared error, with g = E_a[f | U]: the best strictly invariant one. Both are functions of
the equations of `processes.py`, written out here. For labels, f and g are probabilities and the loss is the log loss,
for which the mixture is near the optimum. CF1 sees Z alone, or nothing.

Run: python benchmarks/least_error.py
"""

import numpy as np
from scipy.stats import norm

SHARES = (0.05, 0.01)
DRAW = np.random.default_rng(0)


def root_group():
    """Y = U + 2A + Z/2 + 0.3 ε: nothing has to be drawn."""
    kept = 0.09 + 4 * 0.24 * np.square(1 - np.sqrt(SHARES))
    return kept / (0.09 + 4 * 0.24 + 1)


def root_number(n=4000, worlds=400):
    """Y = sin(L) + M + 0.2 ε with L = tanh(1.5 A) + U and M = L + A/2 + V."""
    a, u, v = DRAW.normal(size=n), 0.7 * DRAW.normal(size=n), 0.7 * DRAW.normal(size=n)

    def free(a, u, v):
        level = np.tanh(1.5 * a) + u
        return np.sin(level) + level + 0.5 * a + v

    strict = free(DRAW.normal(size=(1, worlds)), u[:, None], v[:, None]).mean(axis=1)
    own = free(a, u, v)
    return (0.04 + np.square((own - strict)[:, None] * (1 - np.sqrt(SHARES))).mean(axis=0)) / (own.var() + 0.04)


def root_labels(n=20_000, pieces=40):
    """P(yes) = Φ((L + M + Z/2 − 0.3) / 0.5) with L and M moved by the group."""
    shift = np.array([0.0, 1.0, -0.8])
    group, z, u, v = DRAW.integers(3, size=n), DRAW.normal(size=n), DRAW.normal(size=n), 0.5 * DRAW.normal(size=n)
    moved = shift + 0.5 * shift**2
    worlds = norm.cdf((moved + (u + v + 0.5 * z - 0.3)[:, None]) / 0.5)
    own, strict = worlds[np.arange(n), group], worlds.mean(axis=1)
    place = np.searchsorted(np.quantile(z, np.linspace(0, 1, pieces + 1)[1:-1]), z)
    cf1 = np.array([own[place == each].mean() for each in range(pieces)])[place]

    def loss(said):
        said = np.clip(said, 1e-9, 1 - 1e-9)
        return -np.mean(own * np.log(said) + (1 - own) * np.log(1 - said))

    return np.array([loss(strict + np.sqrt(share) * (own - strict)) for share in SHARES]) / loss(cf1)


if __name__ == "__main__":
    for process in (root_group, root_number, root_labels):
        least = process()
        print(f"{process.__name__}: {least[0]:.3f} of CF1's error at 5 %, {least[1]:.3f} at 1 %")
