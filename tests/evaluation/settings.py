"""Simulated settings of a test of Ŷ ⊥ R | S: both sides follow S, and `strength` makes Ŷ follow R beyond it."""

import numpy as np
import pandas as pd


def continuous(n, generator, strength=0.0):
    s, e, v = generator.normal(size=(3, n))
    return s**2 / 2 + np.cos(s) + 0.5 * (1 + 0.5 * np.abs(s)) * (v + strength * e), np.sin(2 * s) + 0.5 * e, s


def categorical(n, generator, strength=0.0):
    e, v = generator.normal(size=(2, n))
    c = generator.integers(4, size=n)
    spread = np.array([0.5, 1, 1.5, 0.7])[c]
    y_hat = np.array([1, 0, 2, -1.0])[c] + spread * (v + strength * e)
    return y_hat, np.array([0, 1, -1, 2.0])[c] + spread * e, pd.Series(np.array(list("abcd"))[c])


def mixed(n, generator, strength=0.0):
    z, e, v = generator.normal(size=(3, n))
    c = generator.integers(3, size=n)
    label = generator.uniform(size=n) < 1 / (1 + np.exp(-z - c + 1))
    right = pd.DataFrame({"r": np.sin(z) * (c + 1) + 0.7 * e, "t": np.where(label, "yes", "no")})
    given = pd.DataFrame({"z": z, "c": np.array(list("abc"))[c]})
    return z * (c - 1) + z**2 / 2 + 0.7 * (v + strength * e), right, given


def several(n, generator, strength=0.0):
    s = generator.normal(size=(n, 2))
    e = generator.normal(size=(n, 5))
    means = np.stack([np.sin(s[:, 0]), s[:, 1] ** 2 / 2, s[:, 0] * s[:, 1] / 2, s[:, 0], s[:, 1]], axis=1)
    y_hat = np.tanh(s.sum(axis=1)) + s[:, 0] ** 2 / 2 + 0.7 * (generator.normal(size=n) + strength * e[:, 0])
    return y_hat, means + 0.7 * e, s


def function_of_s(n, generator, strength=0.0):
    """The strict end of training: a prediction that S determines."""
    s, e = generator.normal(size=(2, n))
    return np.sin(2 * s) + s + strength * e, np.sin(2 * s) + 0.5 * e, s


def of_a_common_cause(cause, given, generator, strength, noise=0.7):
    """Both sides are the same function of S plus noise, so that what a regression misses stands in both."""
    v, e = generator.normal(size=(2, len(cause)))
    return cause + noise * (v + strength * e), cause + noise * e, given


def steps(n, generator, strength=0.0):
    s = generator.normal(size=n)
    return of_a_common_cause(np.sign(s) + (np.abs(s) > 1), s, generator, strength, 0.5)


def stairs(n, generator, strength=0.0):
    s = generator.normal(size=n)
    return of_a_common_cause(np.floor(2 * s), s, generator, strength, 0.5)


def three_columns(n, generator, strength=0.0):
    s = generator.normal(size=(n, 3))
    return of_a_common_cause(np.sin(2 * s[:, 0]) + s[:, 1] * s[:, 2], s, generator, strength)


def ten_columns(n, generator, strength=0.0):
    s = generator.normal(size=(n, 10))
    return of_a_common_cause(s.sum(axis=1) / 10**0.5, s, generator, strength)


def two_of_ten_columns(n, generator, strength=0.0):
    s = generator.normal(size=(n, 10))
    return of_a_common_cause(np.sin(2 * s[:, 0]) + s[:, 1], s, generator, strength)


def ten_columns_bent(n, generator, strength=0.0):
    """More than 300 rows can teach: the test may say that it cannot judge."""
    s = generator.normal(size=(n, 10))
    bent = np.tanh(s[:, :5].sum(axis=1)) + np.sin(s[:, 5:].sum(axis=1) / 2)
    return of_a_common_cause(bent, s, generator, strength)


def heavy_tails(n, generator, strength=0.0):
    s = generator.standard_t(2, size=n)
    return of_a_common_cause(s, s, generator, strength, 1.0)


def twelve_labels(n, generator, strength=0.0):
    code = generator.integers(12, size=n)
    given = pd.Series(np.array(list("abcdefghijkl"))[code])
    return of_a_common_cause(generator.permutation(12)[code] / 3, given, generator, strength)


def labels_on_both_sides(n, generator, strength=0.0):
    s = generator.normal(size=n)
    chance = 1 / (1 + np.exp(-2 * s))
    right = generator.uniform(size=n) < chance
    tilted = np.where(right, chance + 0.8 * strength * (1 - chance), chance * (1 - 0.8 * strength))
    return np.where(generator.uniform(size=n) < tilted, "u", "v"), np.where(right, "a", "b"), s


def three_outputs(n, generator, strength=0.0):
    s = generator.normal(size=(n, 2))
    e = generator.normal(size=n)
    y_hat = np.stack([np.sin(s[:, 0]), s[:, 1], s[:, 0] * s[:, 1] / 2], axis=1) + 0.7 * generator.normal(size=(n, 3))
    y_hat[:, 1] += 0.7 * strength * e
    return y_hat, np.cos(s[:, 0]) + s[:, 1] + 0.7 * e, s


SETTINGS = {
    "continuous": continuous,
    "categorical": categorical,
    "mixed": mixed,
    "several": several,
    "function of S": function_of_s,
    "steps": steps,
    "stairs": stairs,
    "three columns": three_columns,
    "ten columns": ten_columns,
    "two of ten columns": two_of_ten_columns,
    "ten columns, bent": ten_columns_bent,
    "heavy tails": heavy_tails,
    "twelve labels": twelve_labels,
    "labels on both sides": labels_on_both_sides,
    "three outputs": three_outputs,
}


def weak_line(n, generator, strength=1.0):
    s = generator.normal(size=n)
    return of_a_common_cause(s, s, generator, 0.1 * strength, 1.0)


def sign_follows_s(n, generator, strength=1.0):
    """On average over S there is no correlation left; only weights that follow S see it."""
    s, e, v = generator.normal(size=(3, n))
    return s + v + 0.7 * strength * np.sign(s) * e, s + e, s


def square(n, generator, strength=1.0):
    s, e, v = generator.normal(size=(3, n))
    return s + v + 0.5 * strength * (e**2 - 1), s + e, s


def spread(n, generator, strength=1.0):
    s, e, v = generator.normal(size=(3, n))
    return s + v * np.exp(0.5 * strength * e), s + e, s


# Dependence only: what a test may fail to see.
POWER = {"weak line": weak_line, "sign follows S": sign_follows_s, "square": square, "spread": spread}
