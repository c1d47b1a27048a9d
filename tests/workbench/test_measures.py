"""What a stop of a walk is measured by."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, r2_score

from ciplearn import CausalGraph, StructuralCausalModel
from ciplearn.workbench.measures import Judge

ABOUT_A = CausalGraph.from_edges("A -> Y").criterion("Y", ["A"])


class Echo:
    """Says what X is."""

    def predict(self, frame):
        assert list(frame.columns) == ["A", "X"]
        return frame["X"].to_numpy()


def test_an_outcome_that_acts_on_an_input_is_known_where_noise_is_told_and_hidden_from_the_model():
    scm = StructuralCausalModel(
        CausalGraph.from_edges("A -> X, Y -> X"),
        equations={"A": lambda p, u: u, "Y": lambda p, u: u, "X": lambda p, u: p["A"] + p["Y"] + u},
        noise={"A": norm(), "Y": norm(), "X": norm(0, 0.1)},
    )
    rows = scm.sample(100, random_state=0)[["A", "X", "Y"]]
    vcf = Judge(rows, scm.graph.criterion("Y", ["A"]), scm, None, 0)._vcf(Echo())
    assert 0.7 < vcf.value < 1.4, "A moves X by its own variance"


def test_loss_and_score_are_those_of_scikit_learn_with_intervals_around_them():
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"A": draw.normal(size=300)}).assign(Y=lambda t: t["A"] + draw.normal(size=300))
    model = LinearRegression().fit(rows[["A"]], rows["Y"])
    found = Judge(rows, ABOUT_A, None, None, 0).measured(model)
    said = model.predict(rows[["A"]])
    assert found["loss"]["value"] == pytest.approx(np.square(said - rows["Y"]).mean())
    assert found["score"]["value"] == pytest.approx(r2_score(rows["Y"], said))
    # Over samples of 300 rows R² varies by about 0.04: the delta method, 2 (1 − R²) sqrt(R² / n).
    width = (found["score"]["high"] - found["score"]["low"]) / 3.92
    assert width == pytest.approx(2 * (1 - 0.5) * np.sqrt(0.5 / 300), rel=0.25)


def test_label_that_training_has_not_seen_is_judged_as_wrong():
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"A": draw.normal(size=60), "Y": ["no", "yes", "yes"] * 20})
    model = LogisticRegression().fit(rows[["A"]], rows["Y"])
    judge = Judge(rows, ABOUT_A, None, model.classes_, 0)
    assert judge.measured(model)["loss"]["value"] == pytest.approx(
        log_loss(rows["Y"], model.predict_proba(rows[["A"]]))
    )
    strange = Judge(rows.assign(Y=["no", "perhaps", "perhaps"] * 20), ABOUT_A, None, model.classes_, 0)
    assert strange.measured(model)["score"]["value"] == 0
    assert strange.measured(model)["score"]["high"] > 0
