import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from ciplearn._core.columns import log_losses
from ciplearn.estimators.criteria import Judged
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.scores import predictive_scores


def test_losses_are_those_of_scikit_learn():
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    places = np.arange(50) % 3
    assert log_losses(table, places).mean() == pytest.approx(log_loss(places, table))


def test_impossible_and_unseen_classes_cost_the_same_in_training_and_in_an_audit():
    class Sure:
        classes_ = np.array([0, 1])

        def predict_proba(self, rows):
            return np.tile([1.0, 0.0], (len(rows), 1))

    answers = Sure().predict_proba(range(3))
    losses = Judged(np.array([0, 1, -1]), answers, np.array([0.5, 0.5]), classes=2).losses()
    np.testing.assert_allclose(losses, [0, -math.log(1e-12), -math.log(1e-12)])
    predictor = Predictor(Sure(), "predict_proba", ("x",))
    audited = predictive_scores(predictor, answers, pd.Series([0, 1, 2]))["log_loss"]
    assert audited == pytest.approx(losses.mean())
