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


SETTINGS = {
    "continuous": continuous,
    "categorical": categorical,
    "mixed": mixed,
    "several": several,
    "function of S": function_of_s,
}
