"""Rows of a linear chain with a confounder, and a predictor that the protected column reaches only through L."""

import numpy as np
import pandas as pd


def people(n=400):
    draw = np.random.default_rng(0)
    s = draw.normal(size=n)
    a = s + draw.normal(size=n)
    el = s + 2 * a + draw.normal(size=n)
    return pd.DataFrame({"S": s, "A": a, "L": el, "Y": el + s + draw.normal(size=n)})


def through(frame):
    return frame["L"]
