"""Tables of people such as practitioners have, made up, so that each row's counterfactual values are known.

Every table is a function of its rows' noise and of what is set by an intervention: the same noise, with another value
of a protected column, is the same person in another world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

Noise = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class People:
    """A table, its graph, and the worlds of its rows.

    Attributes
    ----------
    graph : str
    outcome : str
    protected : tuple of str
    rows : int
        As many as the public table that it resembles.
    equations : mapping from name to function of (values so far, uniform noise)
        In causal order.
    """

    graph: str
    outcome: str
    protected: tuple[str, ...]
    rows: int
    equations: Mapping[str, Callable[[dict[str, Any], np.ndarray], Any]]

    def noise(self, n: int, seed: int) -> Noise:
        """Draw the noise of n rows."""
        generator = np.random.default_rng(seed)
        return {name: generator.uniform(1e-6, 1 - 1e-6, n) for name in self.equations}

    def world(self, noise: Noise, do: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Return the rows that a noise makes, with some columns set."""
        values: dict[str, Any] = {}
        for name, equation in self.equations.items():
            fixed = (do or {}).get(name)
            own = noise[name]
            values[name] = equation(values, own) if fixed is None else np.full(len(own), fixed)
        return pd.DataFrame(values)

    def true_vcf(self, predict: Callable[[pd.DataFrame], np.ndarray], noise: Noise, worlds: int = 40) -> float:
        """Return the mean over rows of the variance of predictions over worlds, with protected values as they occur."""
        factual = self.world(noise)
        others = factual.sample(worlds, random_state=0)[list(self.protected)]
        said = [predict(self.world(noise, dict(own))) for _, own in others.iterrows()]
        return float(np.var(np.stack(said), axis=0).mean())


def _normal(u: np.ndarray) -> np.ndarray:
    return norm.ppf(u)


def _one_of(levels: list[str], weights: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Draw a level per row from weights of shape (n, levels), by the noise of the row."""
    shares = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    return np.array(levels, dtype=object)[np.minimum((u[:, None] > shares).sum(axis=1), len(levels) - 1)]


def _root(levels: list[str], weights: list[float]) -> Callable[[Any, np.ndarray], np.ndarray]:
    return lambda v, u: _one_of(levels, np.tile(weights, (len(u), 1)), u)


def _looked_up(column: Any, table: Mapping[str, float]) -> np.ndarray:
    return np.array([table[one] for one in column])


def _weights(*columns: Any) -> np.ndarray:  # (n, levels)
    return np.stack(np.broadcast_arrays(*columns), axis=1)


def _labels(chance: np.ndarray, u: np.ndarray, names: tuple[str, str]) -> np.ndarray:
    return np.where(u < 1 / (1 + np.exp(-chance)), names[1], names[0]).astype(object)


_RACE_LAW = {"white": 0.0, "black": -1.0, "asian": -0.2, "hispanic": -0.6, "other": -0.4}

law_like = People(
    graph="race -> gpa, race -> lsat, sex -> gpa, sex -> lsat, gpa -> lsat, race -> grade, gpa -> grade, "
    "lsat -> grade, region -> grade",
    outcome="grade",
    protected=("race", "sex"),
    rows=20_000,
    equations={
        "race": _root(list(_RACE_LAW), [0.84, 0.06, 0.04, 0.04, 0.02]),
        "sex": _root(["male", "female"], [0.56, 0.44]),
        "region": _root(["NE", "FW", "GL", "SC", "MW"], [0.3, 0.2, 0.2, 0.2, 0.1]),
        "gpa": lambda v, u: np.clip(
            3.2 + 0.3 * _looked_up(v["race"], _RACE_LAW) + 0.1 * (v["sex"] == "female") + 0.4 * _normal(u), 0, 4.2
        ).round(1),
        "lsat": lambda v, u: np.clip(
            37
            + 7 * _looked_up(v["race"], _RACE_LAW)
            - (v["sex"] == "female")
            + 2.5 * (v["gpa"] - 3.2)
            + 4.5 * _normal(u),
            11,
            48,
        ).round(0),
        "grade": lambda v, u: (
            0.25 * (v["gpa"] - 3.2)
            + 0.035 * (v["lsat"] - 37)
            + 0.25 * _looked_up(v["race"], _RACE_LAW)
            + 0.1 * (v["region"] == "NE")
            + 0.85 * _normal(u)
        ),
    },
)

german_like = People(
    graph="sex -> job, age -> job, age -> housing, sex -> housing, job -> amount, job -> savings, age -> savings, "
    "sex -> amount, amount -> duration, purpose -> amount, purpose -> risk, sex -> risk, age -> risk, savings -> risk, "
    "duration -> risk, amount -> risk, housing -> risk, checking -> risk, job -> checking",
    outcome="risk",
    protected=("sex", "age"),
    rows=1_000,
    equations={
        "sex": _root(["male", "female"], [0.69, 0.31]),
        "age": lambda v, u: np.floor(19 + 56 * u**2.2),
        "purpose": _root(["car", "radio", "furniture", "business"], [0.35, 0.28, 0.25, 0.12]),
        "job": lambda v, u: _one_of(
            ["unskilled", "skilled", "management"],
            _weights(0.2 + 0.1 * (v["sex"] == "female"), 0.63, 0.05 + 0.003 * (v["age"] - 19)),
            u,
        ),
        "housing": lambda v, u: _one_of(
            ["rent", "own", "free"],
            _weights(0.35 - 0.004 * (v["age"] - 19) + 0.1 * (v["sex"] == "female"), 0.7, 0.1),
            u,
        ),
        "amount": lambda v, u: np.exp(
            7.6
            + 0.5 * (v["job"] == "management")
            + 0.3 * (v["purpose"] == "car")
            + 0.4 * (v["purpose"] == "business")
            - 0.2 * (v["sex"] == "female")
            + 0.65 * _normal(u)
        ).round(0),
        "duration": lambda v, u: np.clip(4 + 12 * np.log1p(v["amount"] / 2000) + 8 * _normal(u), 4, 72).round(0),
        "savings": lambda v, u: _one_of(
            ["none", "little", "rich"],
            _weights(0.5 - 0.003 * (v["age"] - 19), 0.3, 0.1 + 0.2 * (v["job"] == "management")),
            u,
        ),
        "checking": lambda v, u: _one_of(
            ["none", "negative", "positive"], _weights(0.4 + 0.1 * (v["job"] != "unskilled"), 0.3, 0.3), u
        ),
        "risk": lambda v, u: _labels(
            -1.6
            + 0.035 * (v["duration"] - 20)
            + 0.00008 * v["amount"]
            + 1.5 * (v["checking"] == "negative")
            - 0.7 * (v["checking"] == "none")
            + 0.4 * (v["sex"] == "female")
            - 0.02 * (v["age"] - 35)
            - 0.8 * (v["savings"] == "rich")
            + 0.4 * (v["housing"] == "rent")
            + 0.4 * (v["purpose"] == "business"),
            u,
            ("good", "bad"),
        ),
    },
)

_RACE_COURT = {"african-american": 1.0, "caucasian": 0.0, "hispanic": 0.3, "other": 0.1}


def _count(rate: np.ndarray, spread: float, u: np.ndarray) -> np.ndarray:
    """Counts with more spread than Poisson's, zero in many rows."""
    return np.floor(np.exp(np.log(rate) + spread * _normal(u)))


court_like = People(
    graph="race -> juvenile, age -> juvenile, sex -> juvenile, race -> priors, age -> priors, sex -> priors, "
    "juvenile -> priors, priors -> charge, race -> charge, race -> again, age -> again, sex -> again, "
    "juvenile -> again, priors -> again, charge -> again",
    outcome="again",
    protected=("race",),
    rows=6_000,
    equations={
        "race": _root(list(_RACE_COURT), [0.51, 0.34, 0.09, 0.06]),
        "sex": _root(["male", "female"], [0.81, 0.19]),
        "age": lambda v, u: np.floor(18 + 50 * u**1.8),
        "juvenile": lambda v, u: _count(
            0.15 + 0.25 * _looked_up(v["race"], _RACE_COURT) + 0.1 * (v["sex"] == "male") + 0.4 * (v["age"] < 25),
            0.9,
            u,
        ),
        "priors": lambda v, u: _count(
            0.8
            + 0.05 * (v["age"] - 18)
            + 1.2 * _looked_up(v["race"], _RACE_COURT)
            + 0.6 * (v["sex"] == "male")
            + 0.8 * v["juvenile"],
            1.0,
            u,
        ),
        "charge": lambda v, u: _labels(
            0.3 + 0.15 * np.minimum(v["priors"], 8) + 0.3 * _looked_up(v["race"], _RACE_COURT), u, ("M", "F")
        ),
        "again": lambda v, u: (
            u
            < 1
            / (
                1
                + np.exp(
                    0.5
                    - 0.28 * np.minimum(v["priors"], 10)
                    + 0.05 * (v["age"] - 32)
                    - 0.3 * v["juvenile"]
                    - 0.3 * (v["sex"] == "male")
                    - 0.2 * (v["charge"] == "F")
                    - 0.1 * _looked_up(v["race"], _RACE_COURT)
                )
            )
        ).astype(int),
    },
)

TABLES = {"law-like": law_like, "German-like": german_like, "court-like": court_like}
