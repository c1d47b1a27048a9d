"""The baselines behave as scikit-learn's own, in regression and in classification."""

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from ciplearn import CausalGraph, baselines
from tests.estimators.test_scikit_learn import ASKS_FOR_A_SCORE

QUICK = {"learning_rate": 2e-2, "random_state": 0}

STOCHASTIC = {
    "check_sample_weight_equivalence_on_dense_data": "training is stochastic",
    "check_sample_weight_equivalence_on_sparse_data": "training is stochastic",
}
# Classes and outcomes that follow from columns which the baseline does not see.
BLIND = {"check_classifiers_train": "the baseline does not see enough", "check_regressors_train": "as above"}
OTHER_COLUMNS = {
    "check_classifier_data_not_an_array": "the graph knows other columns",
    "check_dataframe_column_names_consistency": "the graph knows other columns",
    "check_fit2d_1feature": "the graph knows two columns",
    "check_regressor_data_not_an_array": "the graph knows other columns",
    "check_sample_weights_pandas_series": "the graph knows other columns",
}
GRAPH = CausalGraph.from_edges("x0 -> x1, x1 -> Y, x0 -> Y")
ROLES = {"graph": GRAPH, "outcome": "Y", "protected": ["x0"]}

# Baselines with the checks that they cannot pass, and why.
BASELINES = [
    (baselines.NaivePredictor(protected=[0], task="regression", epochs=60, **QUICK), STOCHASTIC),
    (baselines.NaivePredictor(protected=[0], task="classification", epochs=5, **QUICK), STOCHASTIC | BLIND),
    (baselines.Augmented(protected=[0], task="regression", epochs=60, copies=1, **QUICK), STOCHASTIC),
    (baselines.CF2(**ROLES, task="classification", epochs=5, **QUICK), STOCHASTIC | BLIND | OTHER_COLUMNS),
    (baselines.PSCF(**ROLES, task="regression", epochs=5, n_draws=2, **QUICK), STOCHASTIC | BLIND | OTHER_COLUMNS),
]


def excused(estimator):
    return next(
        checks
        for baseline, checks in BASELINES
        if type(baseline) is type(estimator) and baseline.task == estimator.task
    )


@parametrize_with_checks([baseline for baseline, _ in BASELINES], expected_failed_checks=excused)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator if check.func.__name__ in ASKS_FOR_A_SCORE else clone(estimator).set_params(epochs=3))
