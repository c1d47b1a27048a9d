"""What studies share: the split and scaled case, its judge, the paper's penalty for a stack, trainings on disk."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from ciplearn import HSCIC, CIPRegressor, Independence, datasets, frontier, variance_of_counterfactuals
from ciplearn.estimators.preparation import Prepared
from reproduction import Conditions, trainings
from reproduction.cases import Case, Judge
from reproduction.in_batch import InBatchHSCIC, hscic_matrix
from reproduction.methods import METHODS, Training


@pytest.fixture(scope="module")
def case():
    return Case.draw(datasets.first_synthetic(), rows=300, seed=0)


def test_case_is_scaled_and_split(case):
    whole = pd.concat([case.train, case.test])
    assert (len(case.train), len(case.test)) == (240, 60)
    np.testing.assert_allclose([whole.min(), whole.max()], [[0] * 4, [1] * 4], atol=1e-12)
    assert case.independence() == Independence(right=["A", "L"], given=["Z"])


def test_counterfactual_rows_are_those_of_the_model(case):
    rows = Judge(case, points=5, interventions=3, seed=0).worlds
    assert list(rows.columns) == ["A", "L", "Z"]
    kept = rows["Z"].to_numpy().reshape(5, 3)
    assert (kept == kept[:, :1]).all()
    point = case.test[case.test["Z"] == kept[0, 0]]
    again = case.scm.counterfactual(pd.concat([point] * 3), {"A": rows["A"].to_numpy()[:3]})
    np.testing.assert_allclose(again["L"], rows["L"][:3])


@pytest.mark.parametrize(
    "process", [datasets.first_synthetic, datasets.veitch_causal, partial(datasets.multidimensional, 3)]
)
def test_judge_agrees_with_the_library(process):
    case = Case.draw(process(), rows=500, seed=1)
    statement = Independence(right=case.scm.columns(["A"]))
    judge = Judge(case, points=60, interventions=200, seed=0, independence=statement)
    model = CIPRegressor(inputs=case.inputs, epochs=3, random_state=0).fit(case.train[case.inputs], case.train["Y"])
    reference = variance_of_counterfactuals(
        model, case.scm, case.test, ["A"], n_points=60, n_interventions=200, random_state=0, n_draws=1
    )
    # The same 60 points, and each value of A in the 100 test rows.
    assert judge.vcf(model) == pytest.approx(reference.value, rel=1e-5)
    slow = model.predict(judge.worlds).reshape(-1, 100).var(axis=1, ddof=1).mean()
    assert judge.vcf(model) == pytest.approx(slow, rel=1e-5)
    residuals = model.predict(case.test[case.inputs]) - case.test["Y"]
    assert judge.mse(model) == pytest.approx(np.mean(residuals**2))


def test_predictor_that_ignores_what_a_changes_has_vcf_zero(case):
    class OnlyZ:
        def predict(self, rows):
            return rows["Z"].to_numpy() ** 2

    assert Judge(case, points=10, interventions=5, seed=0).vcf(OnlyZ()) == 0


def test_judges_criterion_is_the_papers(case):
    judge = Judge(case, points=5, interventions=2, seed=0)

    class Copy:
        def predict(self, rows):
            return rows["A"].to_numpy()

    test = case.test
    expected = HSCIC.paper()(
        torch.tensor(test["A"].to_numpy()),
        torch.tensor(test[["A", "L"]].to_numpy()),
        torch.tensor(test["Z"].to_numpy()),
    )
    assert judge.hscic(Copy()) == pytest.approx(float(expected), rel=1e-6)


def test_stacked_batches_have_the_value_and_gradient_of_the_papers_penalty():
    generator = torch.Generator().manual_seed(0)
    right, given = torch.rand(40, 6, generator=generator).double(), torch.rand(40, 1, generator=generator).double()
    predictions = torch.rand(3, 16, 1, generator=generator).double().requires_grad_()
    rows = torch.randperm(40, generator=generator)[:16]
    InBatchHSCIC.paper().prepare(right, given).stacked(predictions, rows).sum().backward()
    for number in range(3):
        alone = predictions[number].detach().clone().requires_grad_()
        HSCIC.paper()(alone, right[rows], given[rows]).backward()
        torch.testing.assert_close(predictions.grad[number], alone.grad)


def test_operator_of_a_batch_is_the_exact_one():
    generator = torch.Generator().manual_seed(0)
    right, given = torch.rand(30, 2, generator=generator).double(), torch.rand(30, 1, generator=generator).double()
    expected = HSCIC.paper().prepare(right, given).matrix()
    torch.testing.assert_close(hscic_matrix(HSCIC.paper(), right, given), expected, rtol=1e-9, atol=1e-12)
    y_hat = torch.rand(30, 1, generator=generator).double()
    whole = InBatchHSCIC.paper().prepare(right, given)(y_hat)
    torch.testing.assert_close(whole, HSCIC.paper()(y_hat, right, given))


def test_stack_trains_like_one_network_with_the_papers_penalty(case):
    """What runs on a GPU, stacked, is what runs on a CPU, one network at a time."""
    common = {"independence": case.independence(), "inputs": case.inputs, "epochs": 3, "batch_size": 60, "gamma": 10.0}
    X, y = case.train[case.inputs], case.train["Y"]
    alone = CIPRegressor(**common, penalty=HSCIC.paper(), prepare_once=False, random_state=5).fit(X, y)
    in_batch = CIPRegressor(**common, penalty=InBatchHSCIC.paper(), device="cpu")
    stacked = Prepared.of(in_batch, X, y).stacked([(10.0, 5)])[0]
    free = CIPRegressor(**{**common, "gamma": 0.0}, random_state=5).fit(X, y)
    np.testing.assert_allclose(stacked.predict(X), alone.predict(X), atol=1e-4)
    assert np.abs(free.predict(X) - alone.predict(X)).max() > 1e-2
    assert stacked.penalty_value(X) == pytest.approx(alone.penalty_value(X), rel=1e-2)


def test_frontier_of_a_stack_judges_its_networks(case):
    model = CIPRegressor(independence=case.independence(), epochs=1, penalty=InBatchHSCIC.paper(), device="cpu")
    judge = Judge(case, points=5, interventions=4, seed=0)
    measures = {"hscic": judge.hscic, "vcf": judge.vcf}
    test = case.test[case.inputs], case.test["Y"]
    found = frontier(model, case.train[case.inputs], case.train["Y"], [0.0, 1.0], [0], test=test, measures=measures)
    np.testing.assert_allclose(found.table["penalty"], found.table["hscic"], rtol=0.2)


def test_trainings_are_kept_and_continued(case, tmp_path, monkeypatch):
    conditions = Conditions(seed=0, device="cpu", cache=tmp_path)
    judge = Judge(case, points=5, interventions=4, seed=0)

    def run(gammas):
        return trainings.frontiers("toy", (1, 2), case, judge, gammas, [0, 1], Training(epochs=1), conditions)

    first = run([0.0, 1.0])
    assert list(first["method"].unique()) == list(METHODS)
    assert len(first) == 2 * 2 * 2
    assert tuple(first.columns) == trainings.COLUMNS
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(Prepared, "trained", lambda *arguments, **more: pytest.fail("trained again"))
    pd.testing.assert_frame_equal(run([0.0, 1.0]), first)


def test_another_statement_is_another_training(case, tmp_path):
    conditions = Conditions(seed=0, device="cpu", cache=tmp_path)
    judge = Judge(case, points=5, interventions=4, seed=0)
    for statement in (None, Independence(right=["A"])):
        trainings.frontiers("toy", 1, case, judge, [0.0], [0], Training(epochs=1), conditions, statement)
    assert len(list(tmp_path.iterdir())) == 4


def test_fits_are_kept_and_continued(case, tmp_path):
    conditions = Conditions(seed=0, device="cpu", cache=tmp_path)
    judge = Judge(case, points=5, interventions=4, seed=0)
    made = []

    def make(seed):
        made.append(seed)
        return CIPRegressor(inputs=["Z"], epochs=1, random_state=seed)

    baseline = trainings.BaselineTraining("baseline", "key", case, judge, make)
    first = trainings.begin_fits([baseline], [0, 1], conditions)()["baseline"]
    more = trainings.begin_fits([baseline], [0, 1, 2], conditions)()["baseline"]
    assert made == [0, 1, 2]
    pd.testing.assert_frame_equal(more.iloc[:2], first)
    assert (more["vcf"] == 0).all()


def test_another_text_of_what_makes_a_baseline_is_another_training(case, tmp_path):
    conditions = Conditions(seed=0, device="cpu", cache=tmp_path)
    judge = Judge(case, points=5, interventions=4, seed=0)

    def wide(inputs, seed):
        return CIPRegressor(inputs=inputs, hidden=(4,), epochs=1, random_state=seed)

    def narrow(inputs, seed):
        return CIPRegressor(inputs=inputs, hidden=(2,), epochs=1, random_state=seed)

    for make in (wide, narrow, narrow):
        baseline = trainings.BaselineTraining("baseline", "key", case, judge, partial(make, ["Z"]))
        trainings.begin_fits([baseline], [0], conditions)()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(("device", "began"), [("cuda", 1), ("cpu", 0)])
def test_processes_begin_at_once_beside_a_gpu_only(case, tmp_path, monkeypatch, device, began):
    started = []

    def start(missing, n_jobs):
        started.append(n_jobs)
        return [(baseline.name, baseline.trained(seed)) for baseline, seed in missing]

    monkeypatch.setattr(trainings, "_started", start)
    judge = Judge(case, points=5, interventions=4, seed=0)
    baseline = trainings.BaselineTraining(
        "baseline", "key", case, judge, lambda seed: CIPRegressor(inputs=["Z"], epochs=1)
    )
    finish = trainings.begin_fits([baseline], [3], Conditions(seed=0, device=device, cache=tmp_path, n_jobs=4))
    assert len(started) == began
    assert finish()["baseline"]["seed"].tolist() == [3]
    assert started == ([3] if device == "cuda" else [4])
