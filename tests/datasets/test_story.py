"""The story of the pages follows its equations, and its verdict is the one that they explain."""

import numpy as np
import pytest

from ciplearn import datasets


@pytest.fixture(scope="module")
def people():
    return datasets.applicants().sample(4000, random_state=0)


def test_sex_moves_training_hours_and_income_and_nothing_else(people):
    world = datasets.applicants()
    women = people[people["sex"] == "f"]
    men = world.counterfactual(women, {"sex": ["m"] * len(women)})
    moved = men[["age", "training", "hours", "income"]] - women[["age", "training", "hours", "income"]]
    np.testing.assert_allclose(moved, np.tile([0, 2, 6, 2 * 2 + 0.8 * 6 + 4], (len(women), 1)), atol=1e-9)
    assert men["region"].equals(women["region"])


def test_age_moves_training_down_and_leaves_the_region(people):
    older = datasets.applicants().counterfactual(people, {"age": people["age"] + 10})
    np.testing.assert_allclose(older["training"], people["training"] - 0.6, atol=1e-9)
    np.testing.assert_allclose(older["hours"], people["hours"] - 1, atol=1e-9)
    np.testing.assert_allclose(older["income"], people["income"] - 1.2 - 0.8 + 3, atol=1e-9)


def test_people_look_like_people(people):
    assert people["age"].between(22, 68).all()
    assert people.groupby("region")["age"].mean().diff().iloc[-1] == pytest.approx(6, abs=1)
    assert people["income"].mean() == pytest.approx(43, abs=1)


def test_verdict_conditions_on_the_region():
    verdict = datasets.applicants().graph.criterion(outcome="income", protected=["sex", "age"])
    assert verdict.holds
    assert str(verdict.independence) == "Ŷ ⊥ {age, hours, sex, training} | {region}"
