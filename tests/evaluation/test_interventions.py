import numpy as np
import pandas as pd
import pytest

from ciplearn import variance_of_counterfactuals
from ciplearn.evaluation.interventions import InterventionLaw
from tests.scm import models


def test_few_values_of_a_are_listed_with_their_shares():
    scm = models.coins()
    rows = scm.sample(90, random_state=3)
    score = lambda f: (f["A"] == "yes").astype(float)  # noqa: E731
    found = variance_of_counterfactuals(score, scm, rows, "A", 90, 500)
    share = (rows["A"] == "yes").mean()
    assert found.n_interventions == 2
    assert found.value == pytest.approx(share * (1 - share) * 90 / 89, rel=1e-12)


def test_rows_that_are_drawn_are_drawn_equally_often():
    law = InterventionLaw.of_rows(pd.DataFrame({"A": np.arange(70.0)}), k=10)
    given = law.draw(points=21, generator=np.random.default_rng(0))
    assert (np.bincount(given.seen.ravel()) == 3).all()
    assert (given.values["A"].to_numpy() == given.seen.ravel()).all()
