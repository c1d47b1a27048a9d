"""What training with a penalty does, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from ciplearn import (
    HSCIC,
    MMD,
    CausalGraph,
    CIPClassifier,
    CIPRegressor,
    Gaussian,
    Independence,
    datasets,
    variance_of_counterfactuals,
)
from ciplearn._core.errors import CiplearnError, GraphError, InputError, NumericalError
from tests.estimators.mixed_table import mixed_table

ROLES = {"outcome": "Y", "protected": ["A"]}


def test_penalty_makes_the_prediction_less_dependent_and_less_counterfactually_variable(scm, X, y, table):
    models = {
        gamma: CIPRegressor(graph=scm.graph, **ROLES, gamma=gamma, epochs=60, learning_rate=3e-3, random_state=0).fit(
            X, y
        )
        for gamma in (0.0, 4.0)
    }
    penalties = {gamma: model.fit(X, y).penalty_value(X) for gamma, model in models.items()}
    assert penalties[4.0] < 0.1 * penalties[0.0]
    vcf = {
        gamma: variance_of_counterfactuals(
            model, scm, table, protected=["A"], n_points=50, n_interventions=50, random_state=0
        ).value
        for gamma, model in models.items()
    }
    assert vcf[4.0] < 0.2 * vcf[0.0]
    assert models[0.0].score(X, y) > 0.95 > models[4.0].score(X, y)


def test_verdict_gives_the_independence(scm, X, y):
    model = CIPRegressor(graph=scm.graph, **ROLES, epochs=1, random_state=0).fit(X, y)
    assert model.independence_ == Independence(right=["A", "L"], given=["Z"])
    assert model.verdict_.holds
    assert model.gamma_ == 1.0


def test_verdict_that_does_not_hold_stops_fit_unless_told_to_warn(X, y):
    hidden = CausalGraph.from_dagitty("dag { H [latent] ; H -> A ; H -> L ; A -> Y ; L -> Y ; Z -> Y }")
    roles = {"graph": hidden, **ROLES, "context": ["A"], "adjustment": []}
    assert not hidden.criterion(outcome="Y", protected=["A"], context=["A"], adjustment=[]).holds
    with pytest.raises(GraphError, match="does not certify"):
        CIPRegressor(**roles, epochs=1).fit(X, y)
    with pytest.warns(UserWarning, match="does not certify"):
        CIPRegressor(**roles, epochs=1, on_violation="warn").fit(X, y)


def test_the_paper_s_penalty_is_one_keyword_away_prepared_once_or_per_batch(scm, X, y):
    for prepare_once in (True, False):
        model = CIPRegressor(
            graph=scm.graph,
            **ROLES,
            penalty=HSCIC.paper(),
            prepare_once=prepare_once,
            gamma=1.0,
            epochs=3,
            random_state=0,
        ).fit(X, y)
        assert model.history_[-1]["penalty"] > 0


def test_mixed_columns_are_seen_in_their_own_kind():
    X, signal = mixed_table()
    model = CIPClassifier(protected=["sex", "age"], adjustment=["region"], gamma=20.0, epochs=30, random_state=0)
    model.fit(X, signal > signal.mean())
    assert model.statement_encodings_[0][0].categories == (False, True)
    plain = CIPClassifier(protected=["sex", "age"], adjustment=["region"], gamma=0.0, epochs=30, random_state=0)
    plain.fit(X, signal > signal.mean())
    assert model.penalty_value(X) < 0.3 * plain.penalty_value(X)
    assert plain.score(X, signal > signal.mean()) > 0.8


def test_three_classes_and_two_outputs():
    X, signal = mixed_table()
    levels = np.array(["low", "mid", "top"])[np.digitize(signal, np.quantile(signal, [0.33, 0.67]))]
    classifier = CIPClassifier(protected=["sex"], gamma=0.5, epochs=15, learning_rate=1e-2, random_state=0).fit(
        X, levels
    )
    assert classifier.predict_proba(X).shape == (300, 3)
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1)
    assert classifier.score(X, levels) > 0.5
    regressor = CIPRegressor(protected=["sex"], gamma=0.5, epochs=5, random_state=0)
    assert regressor.fit(X, np.column_stack([signal, -signal])).predict(X).shape == (300, 2)


def test_groups_can_be_compared_by_mmd():
    X, signal = mixed_table()
    fitted = {
        gamma: CIPRegressor(protected=["sex"], penalty=MMD(Gaussian(0.1)), gamma=gamma, epochs=40, random_state=0).fit(
            X, signal
        )
        for gamma in (0.0, 10.0)
    }
    assert fitted[10.0].penalty_value(X) < 0.2 * fitted[0.0].penalty_value(X)


def test_unknown_level_at_predict_time_is_no_level():
    X, signal = mixed_table()
    model = CIPRegressor(inputs=["region"], epochs=2, random_state=0).fit(X, signal)
    strange = pd.DataFrame({"region": ["east"] * 3})
    assert (model.encoding_.features(strange) == 0).all()
    with pytest.warns(UserWarning, match="'region' holds levels that training never saw: 'east' in 3 rows; they are"):
        assert np.isfinite(model.predict(strange)).all()


class TestMissingValues:
    def test_are_refused_by_default(self):
        X, signal = mixed_table()
        X.loc[3, "sex"] = None
        with pytest.raises(InputError, match=r"1 of 300 rows miss a value in \['sex'\]"):
            CIPRegressor(epochs=1).fit(X, signal)

    def test_are_dropped_or_imputed_when_asked(self):
        X, signal = mixed_table()
        X = X.astype({"age": float})
        X.loc[:9, "age"] = np.nan
        X.loc[5:15, "sex"] = None
        for policy in ("drop", "impute"):
            model = CIPRegressor(protected=["sex"], missing=policy, epochs=2, random_state=0).fit(X, signal)
            assert np.isfinite(model.predict(X.iloc[50:])).all()
        assert np.isfinite(model.predict(X)).all()
        assert model.encoding_.columns[1].median == np.nanmedian(X["age"])

    def test_in_all_rows_leave_nothing_to_train_on(self):
        X, signal = mixed_table()
        X["sex"] = None
        with pytest.raises(InputError, match="0 of 300 rows"):
            CIPRegressor(protected=["age"], missing="drop", epochs=1).fit(X, signal)


def test_own_network_and_tensors_beside_the_table(X, y):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.image = nn.Linear(3, 4), nn.Conv2d(1, 2, 3)
            self.head = nn.Linear(4 + 2 * 36, 1)

        def forward(self, table, image):
            return self.head(torch.cat([self.table(table), self.image(image).flatten(1)], dim=1))

    images = torch.rand(600, 1, 8, 8)
    model = CIPRegressor(module=Two(), protected=["A"], gamma=0.1, epochs=2, random_state=0)
    model.fit(X, y, tensors=[images])
    assert model.predict(X, tensors=[images]).shape == (600,)


def test_function_that_makes_a_network_starts_from_the_seed(X, y):
    def make():
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    first, second, other = (
        CIPRegressor(module=make, epochs=1, random_state=seed).fit(X, y).predict(X) for seed in (0, 0, 1)
    )
    assert np.array_equal(first, second)
    assert not np.allclose(first, other)


def test_early_stopping_returns_to_the_best_epoch(X, y):
    model = CIPRegressor(early_stopping=True, patience=3, epochs=200, learning_rate=0.03, random_state=0).fit(X, y)
    judged = [record["validation"] for record in model.history_]
    assert len(judged) < 200
    assert int(np.argmin(judged)) == len(judged) - 1 - 3


def test_warm_start_goes_on_where_the_last_fit_ended(X, y):
    model = CIPRegressor(epochs=5, warm_start=True, random_state=0).fit(X, y)
    first = model.history_[-1]["loss"]
    assert model.fit(X, y).history_[-1]["loss"] < first


WARM = {
    "fewer columns": (CIPRegressor, lambda table: table.drop(columns="L"), "inputs are Z, A, L and G, got Z, A and G"),
    "another name": (CIPRegressor, lambda table: table.rename(columns={"Z": "Q"}), "L and G, got Q, A, L and G; pass"),
    "another kind": (CIPRegressor, lambda table: table.assign(A=table["G"]), "'A' are numbers, got u and v"),
    "another level": (CIPRegressor, lambda table: table.replace("v", "w"), "values of 'G' are u and v, got u and w"),
    "one more class": (CIPClassifier, lambda table: table.assign(Y=[0, 1, 2] * 20), "are 0 and 1, got 0, 1 and 2"),
    "other classes": (CIPClassifier, lambda table: table.assign(Y=[5, 6] * 30), "classes are 0 and 1, got 5 and 6"),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("case", WARM)
def test_a_warm_start_on_other_columns_or_classes_is_refused_and_the_model_stays(case, streamed, X, tmp_path):
    kind, change, words = WARM[case]
    table = X[:60].assign(G=["u", "v"] * 30, Y=[0, 1] * 30)
    known, changed = ((one.drop(columns="Y"), one["Y"]) for one in (table, change(table)))
    model = kind(epochs=1, warm_start=True, random_state=0).fit(*known)
    before = model.predict(known[0])
    change(table).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(InputError, match=words):
        model.fit(*((tmp_path / "rows.csv", "Y") if streamed else changed))
    assert np.array_equal(model.predict(known[0]), before)
    assert model.fit(*known).n_iter_ == 1


def test_a_warm_start_with_another_number_of_outcomes_is_refused(X, y):
    model = CIPRegressor(epochs=1, warm_start=True, random_state=0).fit(X, y)
    with pytest.raises(InputError, match="outcomes are one number, got 2 numbers"):
        model.fit(X, np.column_stack([y, y]))


def test_weights_count_in_the_loss():
    # Each row stands twice, with outcomes 0 and 1: the best prediction is the weighted mean.
    X = np.repeat(np.linspace(0, 1, 50)[:, None], 2, axis=0)
    y, weights = np.tile([0.0, 1.0], 50), np.tile([1.0, 3.0], 50)
    settings = {"epochs": 200, "batch_size": 100, "learning_rate": 1e-2, "random_state": 0}
    assert CIPRegressor(**settings).fit(X, y).predict(X) == pytest.approx(0.5, abs=0.02)
    assert CIPRegressor(**settings).fit(X, y, sample_weight=weights).predict(X) == pytest.approx(0.75, abs=0.02)


def test_loss_that_explodes_stops_with_its_step_and_keeps_good_weights(X, y):
    model = CIPRegressor(module=nn.Sequential(nn.Linear(3, 1)), learning_rate=1e30, epochs=5, random_state=0)
    with pytest.raises(NumericalError, match=r"no longer finite at step \d+ of epoch \d+"):
        model.fit(X, y)
    assert all(torch.isfinite(part).all() for part in model.module_.parameters())


MISTAKES = {
    "gamma without roles": ({"gamma": 0.5}, "no protected column"),
    "no protected column": ({"protected": []}, "No protected column"),
    "protected column not in X": ({"protected": ["a"]}, "did you mean 'A'"),
    "negative gamma": ({"protected": ["A"], "gamma": -1}, "gamma must not be negative"),
    "gamma as text": ({"protected": ["A"], "gamma": "large"}, "gamma must be a number"),
    "position out of range": ({"protected": [9]}, "columns 0 to 2"),
    "penalty by name": ({"protected": ["A"], "penalty": "hscic"}, "must be a penalty"),
    "unknown device": ({"device": "gpu7"}, "device must be"),
    "unknown policy": ({"missing": "ignore"}, "missing must be one of"),
    "no epochs": ({"epochs": 0}, "epochs must be at least 1"),
    "batch of one": ({"batch_size": 1}, "batch_size must be at least 2"),
    "network that is none": ({"module": "mlp"}, "torch.nn.Module"),
    "graph that is none": ({"graph": "A -> Y"}, "CausalGraph"),
    "violation": ({"protected": ["A"], "on_violation": "ignore"}, "on_violation"),
    "two statements": ({"protected": ["A"], "independence": Independence(right=["A"])}, "got both"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_gets_one_clear_sentence(mistake, X, y):
    settings, words = MISTAKES[mistake]
    with pytest.raises(InputError, match=words):
        CIPRegressor(**settings).fit(X, y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_asked_and_absent(X, y):
    with pytest.raises(InputError, match="no CUDA device"):
        CIPRegressor(device="cuda").fit(X, y)


def test_targets_and_columns_that_cannot_be_used_are_named(X, y):
    with pytest.raises(InputError, match="use CIPClassifier"):
        CIPRegressor(epochs=1).fit(X, ["text"] * 600)
    with pytest.raises(InputError, match="contains NaN"):
        CIPRegressor(epochs=1).fit(X, np.where(y > 0, np.nan, y))
    with pytest.raises(InputError, match="X has 600 rows and y has 50"):
        CIPRegressor(epochs=1).fit(X, y[:50])
    with pytest.raises(InputError, match="holds dates"):
        CIPRegressor(epochs=1).fit(X.assign(day=pd.Timestamp("2020-01-01")), y)
    many = pd.DataFrame({"id": [f"person {i}" for i in range(1200)]})
    with pytest.raises(InputError, match="1200 different values"):
        CIPRegressor(epochs=1).fit(many, np.arange(1200.0))


def test_outcome_in_x_constant_target_one_class_and_few_rows(scm, X, y, table):
    roles = {"graph": scm.graph, **ROLES, "epochs": 1}
    with pytest.raises(InputError, match="X holds the outcome 'Y'"):
        CIPRegressor(**roles).fit(table, y)
    with pytest.raises(InputError, match="constant"):
        CIPRegressor(**roles).fit(X, np.ones(600))
    with pytest.raises(InputError, match="only one class"):
        CIPClassifier(**roles).fit(X, ["a"] * 600)
    with pytest.raises(CiplearnError, match="1 sample"):
        CIPRegressor(**roles).fit(X.head(1), y.head(1))
    three = CIPRegressor(**roles, random_state=0).fit(X.head(3), y.head(3))
    assert np.isfinite(three.predict(X)).all()


def test_node_that_is_a_vector_stands_for_all_its_columns():
    scm = datasets.multidimensional(3)
    table = scm.sample(60, random_state=0)
    X, y = table.drop(columns="Y"), table["Y"]
    entries = ["A[0]", "A[1]", "A[2]"]
    for protected in (["A"], entries):
        model = CIPRegressor(graph=scm.graph, outcome="Y", protected=protected, epochs=1, random_state=0).fit(X, y)
        assert model.independence_ == Independence(right=[*entries, "L"], given=["Z"])
        assert model.verdict_.independence == Independence(right=["A", "L"], given=["Z"])
    with pytest.raises(InputError, match=r"leaves out 'A\[1\]'"):
        CIPRegressor(graph=scm.graph, outcome="Y", protected=["A[0]"]).fit(X, y)


def test_outcome_that_fills_a_small_part_of_its_range_is_learnt():
    generator = np.random.default_rng(0)
    X = pd.DataFrame({"x": generator.uniform(size=1000)})
    y = np.sin(6 * X["x"]) + 0.01 * generator.normal(size=1000)
    y.iloc[0] = 100.0
    model = CIPRegressor(epochs=100, learning_rate=1e-2, random_state=0).fit(X, y)
    assert model.score(X[1:], y[1:]) > 0.8


def test_a_nullable_column_that_begins_with_a_gap_varies(X, y):
    table = X.assign(A=pd.array([pd.NA, *[0, 1] * 299, 1], dtype="Int64"))
    # Warnings are errors here.
    model = CIPRegressor(protected=["A"], missing="impute", epochs=1, random_state=0).fit(table, y)
    assert not model.roles_.protects_nothing(table)


def test_protected_column_that_never_varies_is_pointed_out(scm, X, y):
    with pytest.warns(UserWarning, match="The protected A has the same value in all 600 rows"):
        CIPRegressor(graph=scm.graph, **ROLES, epochs=1).fit(X.assign(A=1.0), y)
