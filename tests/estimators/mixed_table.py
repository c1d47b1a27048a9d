"""A table of text, whole numbers, pandas categories and booleans, and a signal in it."""

import numpy as np
import pandas as pd


def mixed_table(n=300):
    generator = np.random.default_rng(0)
    sex = generator.choice(["f", "m"], n)
    age = generator.integers(18, 80, n)
    region = generator.choice(["north", "south", "west"], n)
    member = generator.random(n) < 0.5
    signal = age / 80 + (sex == "m") + 0.3 * member + 0.2 * generator.standard_normal(n)
    X = pd.DataFrame({"sex": sex, "age": age, "region": pd.Categorical(region), "member": member})
    return X, signal
