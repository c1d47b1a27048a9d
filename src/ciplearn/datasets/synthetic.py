"""Known causal models: the story that the pages tell, and the paper's data-generating processes [quinzan2024].

Every equation of the paper has an inverse, so counterfactuals are exact. N(m, s) there names the standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import norm, uniform

from ciplearn._core.arguments import one_of, whole
from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, GumbelMax, StructuralCausalModel, Vector
from ciplearn.scm.kinds import Array
from ciplearn.scm.mechanism import Parents

_CONFOUNDED = "Z -> A, Z -> L, A -> L, Z -> Y, A -> Y, L -> Y"

_STORY = """
region -> {age training income}
sex -> {training hours income}
age -> {training hours income}
training -> income
hours -> income
"""


def applicants() -> StructuralCausalModel:
    """Return the model of the story: a bank predicts the income of people who apply for a loan.

    Nobody's answer should depend on sex or age. Both act on training and hours, which act on income; the region, coast
    or inland, acts on age, training and income. What is left of training and hours is a person's own::

        age      = 42 + 6 [inland] + U,                                 U ~ U(-20, 20)
        training = 12 + 2 [m] + 2 [coast] - 0.06 (age - 42) + U,        U ~ N(0, 2)
        hours    = 34 + 6 [m] - 0.1 (age - 42) + U,                     U ~ N(0, 4)
        income   = 2 training + 0.8 hours + 4 [m] + 0.3 (age - 42) + 6 [coast] - 20 + U,   U ~ N(0, 4)

    Training in years, hours per week, income in thousands per year. These people are made up.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> world = datasets.applicants()
    >>> sorted(world.sample(2, random_state=0).columns)
    ['age', 'hours', 'income', 'region', 'sex', 'training']
    """

    def income(p: Parents) -> Array:
        own = 2 * p["training"] + 0.8 * p["hours"] - 20
        return own + 4 * (p["sex"] == "m") + 0.3 * (p["age"] - 42) + 6 * (p["region"] == "coast")

    return StructuralCausalModel(
        CausalGraph.from_edges(_STORY),
        equations={
            "region": GumbelMax(["coast", "inland"], [0.5, 0.5]),
            "sex": GumbelMax(["f", "m"], [0.5, 0.5]),
            "age": Additive(lambda p: 42 + 6 * (p["region"] == "inland")),
            "training": Additive(
                lambda p: 12 + 2 * (p["sex"] == "m") + 2 * (p["region"] == "coast") - 0.06 * (p["age"] - 42)
            ),
            "hours": Additive(lambda p: 34 + 6 * (p["sex"] == "m") - 0.1 * (p["age"] - 42)),
            "income": Additive(income),
        },
        noise={"age": uniform(-20, 40), "training": norm(0, 2), "hours": norm(0, 4), "income": norm(0, 4)},
    )


def first_synthetic() -> StructuralCausalModel:
    """Return the model of the first synthetic experiment.

    Z ~ N(0, 1), A = Z² + ε_A, L = exp(−A²/2) sin(2A) + 2Z + ε_L / 5, Y = exp(−LZ) sin(2LZ) / 2 + 5A + ε_Y / 5, with
    ε_A ~ N(0, 1) and ε_L, ε_Y ~ N(0, 0.1). The plus before ε_L is lost in print.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> datasets.first_synthetic().sample(3, random_state=0).shape
    (3, 4)
    """
    return StructuralCausalModel(
        CausalGraph.from_edges(_CONFOUNDED),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: p["Z"] ** 2),
            "L": Additive(lambda p: np.exp(-(p["A"] ** 2) / 2) * np.sin(2 * p["A"]) + 2 * p["Z"], 1 / 5),
            "Y": Additive(lambda p: _wave(p["L"] * p["Z"], 2) + 5 * p["A"], 1 / 5),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(0, 0.1), "Y": norm(0, 0.1)},
    )


def scenario_1(sign: str = "-") -> StructuralCausalModel:
    """Return the model of scenario 1.

    Z ~ N(0, 1), A = exp(∓Z²/2) sin(2Z) + ε_A, L = (A + Z / 10) ε_L, Y = A + L + sin(Z) / 10, with ε_A, ε_L ~ N(0, 1).
    Y has no noise, as printed.

    Parameters
    ----------
    sign : "-" or "+"
        In the exponent of A. The paper prints a plus, with which A has no mean and one outlier flattens the scaled
        data; the minus is what its results were computed with.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> datasets.scenario_1().graph.parents("L")
    ('A', 'Z')
    """
    return StructuralCausalModel(
        CausalGraph.from_edges(_CONFOUNDED),
        equations={
            "Z": Additive(),
            "A": Additive(_bump(sign)),
            "L": lambda p, u: (p["A"] + 0.1 * p["Z"]) * u,
            "Y": Additive(lambda p: p["A"] + p["L"] + 0.1 * np.sin(p["Z"])),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(), "Y": 0.0},
        inverses={"L": lambda p, v: v / (p["A"] + 0.1 * p["Z"])},
    )


def scenario_2(sign: str = "-") -> StructuralCausalModel:
    """Return the model of scenario 2.

    Z and A as in `scenario_1`, L = exp(−A²/2) ε_L + 2Z, Y = sin(ZL) exp(−ZL) / 2 + ε_Y / 5, with ε_L ~ N(0, 1) and
    ε_Y ~ N(0, 0.1). Where ``|A| > 6``, which the printed sign makes common, ε_L vanishes in the rounding of L: keep
    the noise with ``sample_units`` there.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> datasets.scenario_2().sample(3, random_state=0).shape
    (3, 4)
    """

    def l_noise(p: Parents, v: Array) -> Array:
        readable = np.abs(p["A"]) <= 6  # beyond, rounding errors times exp(A²/2) are as large as the noise
        factor = np.exp(np.where(readable, p["A"], 0) ** 2 / 2)
        return np.where(readable, (v - 2 * p["Z"]) * factor, np.nan)

    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, Z -> L, A -> L, Z -> Y, L -> Y"),
        equations={
            "Z": Additive(),
            "A": Additive(_bump(sign)),
            "L": lambda p, u: np.exp(-(p["A"] ** 2) / 2) * u + 2 * p["Z"],
            "Y": Additive(lambda p: _wave(p["Z"] * p["L"], 1), 1 / 5),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(), "Y": norm(0, 0.1)},
        inverses={"L": l_noise},
    )


def veitch_causal() -> StructuralCausalModel:
    """Return the causal model of the comparison with Veitch et al.; Z is hidden.

    Z ~ N(0, 1), A = sin(Z / 10) + ε_A, X = exp(−A/2) sin(A) + ε_X / 10, Y = exp(−X) sin(2XZ) / 10 + A² + ε_Y / 10, with
    ε_A, ε_X ~ N(0, 1) and ε_Y ~ N(0, 0.1).

    Examples
    --------
    >>> from ciplearn import datasets
    >>> datasets.veitch_causal().graph.latent
    frozenset({'Z'})
    """
    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, A -> X, X -> Y, A -> Y, Z -> Y", latent=["Z"]),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: np.sin(0.1 * p["Z"])),
            "X": Additive(lambda p: np.exp(-p["A"] / 2) * np.sin(p["A"]), 1 / 10),
            "Y": Additive(lambda p: 0.1 * np.exp(-p["X"]) * np.sin(2 * p["X"] * p["Z"]) + p["A"] ** 2, 1 / 10),
        },
        noise={"Z": norm(), "A": norm(), "X": norm(), "Y": norm(0, 0.1)},
    )


def veitch_anticausal() -> StructuralCausalModel:
    """Return the anti-causal model of the comparison with Veitch et al.; Z is hidden.

    Z ~ N(0, 1), A = sin(Z) / 5 + ε_A, Y = sin(Z) / 10 + ε_Y, X = A + Y + ε_X / 10, with ε_A, ε_Y ~ N(0, 0.1) and
    ε_X ~ N(0, 1).

    Examples
    --------
    >>> from ciplearn import datasets
    >>> len(datasets.veitch_anticausal().sample(4, random_state=0))
    4
    """
    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, Z -> Y, A -> X, Y -> X", latent=["Z"]),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: 0.2 * np.sin(p["Z"])),
            "Y": Additive(lambda p: 0.1 * np.sin(p["Z"])),
            "X": Additive(lambda p: p["A"] + p["Y"], 1 / 10),
        },
        noise={"Z": norm(), "A": norm(0, 0.1), "Y": norm(0, 0.1), "X": norm()},
    )


def multidimensional(size: int) -> StructuralCausalModel:
    """Return the model with a protected vector A of ``size`` numbers, in columns ``A[0]`` to ``A[size-1]``.

    Z ~ N(0, 1), A_i = Z² + ε_A,i, L = exp(−A_1/2) + Σ A_i sin(Z) + ε_L / 10, Y = exp(−A_2/2) Σ A_i + L Z + ε_Y / 10,
    with ε_A,i ~ N(0, 1) and ε_L, ε_Y ~ N(0, 0.1).

    Parameters
    ----------
    size : int
        At least 2: the equation of Y reads the second number.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> datasets.multidimensional(3).columns("A")
    ['A[0]', 'A[1]', 'A[2]']
    """
    size = whole(size, "size", minimum=2)
    return StructuralCausalModel(
        CausalGraph.from_edges(_CONFOUNDED),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: p["Z"][:, None] ** 2),
            "L": Additive(lambda p: np.exp(-p["A"][:, 0] / 2) + p["A"].sum(axis=1) * np.sin(p["Z"]), 1 / 10),
            "Y": Additive(lambda p: np.exp(-p["A"][:, 1] / 2) * p["A"].sum(axis=1) + p["L"] * p["Z"], 1 / 10),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(0, 0.1), "Y": norm(0, 0.1)},
        kinds={"A": Vector(size)},
    )


def _bump(sign: str) -> Callable[[Parents], Array]:
    # '-' is what the paper's results come from.
    one_of(sign, "sign", ("-", "+"))
    factor = -0.5 if sign == "-" else 0.5
    return lambda p: np.exp(factor * p["Z"] ** 2) * np.sin(2 * p["Z"])


def _wave(product: Array, frequency: int) -> Array:
    return 0.5 * np.exp(-product) * np.sin(frequency * product)
