"""The story that the pages tell: people who apply for a loan, and what they will earn."""

from __future__ import annotations

from scipy.stats import norm, uniform

from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, GumbelMax, StructuralCausalModel
from ciplearn.scm.kinds import Array
from ciplearn.scm.mechanism import Parents

_GRAPH = """
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

    def age(p: Parents) -> Array:
        return 42 + 6 * (p["region"] == "inland")

    def training(p: Parents) -> Array:
        return 12 + 2 * (p["sex"] == "m") + 2 * (p["region"] == "coast") - 0.06 * (p["age"] - 42)

    def hours(p: Parents) -> Array:
        return 34 + 6 * (p["sex"] == "m") - 0.1 * (p["age"] - 42)

    def income(p: Parents) -> Array:
        own = 2 * p["training"] + 0.8 * p["hours"] - 20
        return own + 4 * (p["sex"] == "m") + 0.3 * (p["age"] - 42) + 6 * (p["region"] == "coast")

    return StructuralCausalModel(
        CausalGraph.from_edges(_GRAPH),
        equations={
            "region": GumbelMax(["coast", "inland"], [0.5, 0.5]),
            "sex": GumbelMax(["f", "m"], [0.5, 0.5]),
            "age": Additive(age),
            "training": Additive(training),
            "hours": Additive(hours),
            "income": Additive(income),
        },
        noise={"age": uniform(-20, 40), "training": norm(0, 2), "hours": norm(0, 4), "income": norm(0, 4)},
    )
