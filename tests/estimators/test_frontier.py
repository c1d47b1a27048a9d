from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone

from ciplearn import HSIC, CIPClassifier, CIPRegressor, Frontier, frontier
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.estimators.criteria import split_rows
from ciplearn.estimators.preparation import Prepared


def quick(scm):
    return CIPRegressor(graph=scm.graph, outcome="Y", protected=["A"], epochs=10, learning_rate=1e-2)


def test_frontier_falls_in_penalty_and_rises_in_loss(scm, X, y):
    found = frontier(quick(scm), X, y, gammas=[0, 1, 10], seeds=[0, 1])
    table = found.summary()
    assert table["penalty"].is_monotonic_decreasing
    assert table["loss"].iloc[2] > table["loss"].iloc[0]
    assert len(found.table) == 6
    assert set(found.measures) == {"loss", "score", "penalty"}
    assert found.pareto()["gamma"].tolist() == [0.0, 1.0, 10.0]


def test_broken_sweep_continues_where_it_stopped(scm, X, y, tmp_path):
    file = tmp_path / "sweep.csv"
    calls = []

    def counted(model):
        calls.append(model.gamma_)
        return 0.0

    whole = frontier(quick(scm), X, y, gammas=[0, 1], seeds=[0, 1], file=file, measures={"seen": counted})
    lines = file.read_text().splitlines(keepends=True)
    # Two trainings finished, and a kill cut the third line short.
    file.write_text("".join(lines[:3]) + lines[3][:7])
    calls.clear()
    again = frontier(quick(scm), X, y, gammas=[0, 1], seeds=[0, 1], file=file, measures={"seen": counted})
    assert len(calls) == 2
    assert again.table.equals(whole.table)
    assert Frontier.from_csv(file).table.equals(whole.table)


def test_a_rare_class_is_among_the_rows_that_train(X):
    # These would all be measured on, were classes not split in equal parts.
    rare = split_rows(X, X["A"], 0.5, 0)[1][:4]
    y = np.where(np.isin(np.arange(len(X)), rare), "rare", "usual")
    seen = {"classes": lambda model: len(model.classes_)}
    curve = frontier(CIPClassifier(epochs=1), X, y, gammas=[0.0], seeds=[0], test_fraction=0.5, measures=seen)
    assert curve.table["classes"].tolist() == [2.0]


@pytest.mark.slow
def test_processes_give_the_same_frontier(scm, X, y):
    alone = frontier(quick(scm), X, y, gammas=[0, 1], seeds=[0])
    together = frontier(quick(scm), X, y, gammas=[0, 1], seeds=[0], n_jobs=2)
    assert alone.table.equals(together.table)


def test_bad_input_is_refused(scm, X, y, tmp_path):
    with pytest.raises(InputError, match="needs gammas and seeds"):
        frontier(quick(scm), X, y, gammas=[])
    with pytest.raises(InputError, match="gamma must not be negative"):
        frontier(quick(scm), X, y, gammas=[-1])
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no table of a frontier"):
        frontier(quick(scm), X, y, gammas=[0], file=other)
    for answer in ("much", None, [1, 2], 10**400):
        with pytest.raises(InputTypeError, match="measure 'own' must return a number"):
            frontier(quick(scm), X, y, gammas=[0], measures={"own": lambda model, answer=answer: answer})
    found = frontier(quick(scm), X, y, gammas=[0])
    with pytest.raises(InputError, match="'vcf' was not measured"):
        found.pareto(violation="vcf")


@pytest.mark.parametrize("setting", [{"mixed_precision": True}, {"early_stopping": True}, {"prepare_once": False}])
def test_networks_are_stacked_unless_a_setting_needs_its_own_loop(setting, scm, X, y):
    assert Prepared.of(quick(scm), X, y).can_stack
    assert not Prepared.of(quick(scm).set_params(**setting), X, y).can_stack


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_default_model_stacked_on_a_device_ends_where_it_does_on_the_cpu(scm, X, y):
    trained = []
    for device in ("cpu", "cuda"):
        model = quick(scm).set_params(device=device)
        trained.append(Prepared.of(model, X, y).stacked([(0.0, 1), (1.0, 2)]))
    for on_cpu, on_gpu in zip(*trained, strict=True):
        assert on_gpu.gamma_scale_ == pytest.approx(on_cpu.gamma_scale_, rel=1e-3)
        np.testing.assert_allclose(on_gpu.predict(X), on_cpu.predict(X), atol=1e-2 * y.std())


def test_finished_sweep_is_only_read_and_may_grow(scm, X, y, tmp_path, monkeypatch):
    file = tmp_path / "sweep.csv"
    small = quick(scm).set_params(epochs=1)
    first = frontier(small, X, y, gammas=[0, 1], file=file)
    # What is shown and where it is computed does not make another model, nor does the container of a list.
    same = clone(small).set_params(gamma=3.0, random_state=5, verbose=True, device="cpu", hidden=[64, 64])
    assert frontier(same, X.copy(), y, gammas=[0, 1, 2], file=file).table.iloc[:2].equals(first.table)
    monkeypatch.setattr(Prepared, "trained", lambda *arguments, **more: pytest.fail("trained again"))
    assert len(frontier(small, X, y, gammas=[0, 1, 2], file=file).points) == 3


OTHER_SWEEPS = {
    "another network": lambda run, model, X, y: run(model.set_params(hidden=(8,)), X, y),
    "another penalty": lambda run, model, X, y: run(model.set_params(penalty=HSIC(exact_rows=10)), X, y),
    "fewer rows": lambda run, model, X, y: run(model, X[:200], y[:200]),
    "another target": lambda run, model, X, y: run(model, X, y + 1),
    "other test rows": lambda run, model, X, y: run(model, X, y, test_fraction=0.3),
}


@pytest.mark.parametrize("case", OTHER_SWEEPS)
def test_file_of_another_sweep_is_refused(case, scm, X, y, tmp_path):
    run = partial(frontier, gammas=[0], file=tmp_path / "sweep.csv")
    small = quick(scm).set_params(epochs=1)
    run(small, X, y)
    with pytest.raises(InputError, match="another model or on other rows"):
        OTHER_SWEEPS[case](run, clone(small), X, y)


def test_file_with_other_measures_is_refused(scm, X, y, tmp_path):
    file = tmp_path / "sweep.csv"
    small = quick(scm).set_params(epochs=1)
    frontier(small, X, y, gammas=[0], file=file)
    with pytest.raises(InputError, match=r"holds the measures \[\], got \['more'\]"):
        frontier(small, X, y, gammas=[0], file=file, measures={"more": lambda model: 1.0})


def test_file_from_before_digests_is_trusted_and_goes_on_as_it_was(scm, X, y, tmp_path):
    file = tmp_path / "sweep.csv"
    file.write_text("gamma,seed,loss,score,penalty\n0.0,0,0.5,0.25,0.125\n")
    found = frontier(quick(scm).set_params(epochs=1), X, y, gammas=[0, 1], file=file)
    assert found.table["loss"][0] == 0.5
    assert "digest" not in file.read_text()
    assert Frontier.from_csv(file).table.equals(found.table)


def test_line_cut_within_its_last_digits_is_trained_again(scm, X, y, tmp_path):
    file = tmp_path / "sweep.csv"
    small = quick(scm).set_params(epochs=1)
    whole = frontier(small, X, y, gammas=[0], file=file)
    file.write_text(file.read_text()[:-5])
    assert frontier(small, X, y, gammas=[0], file=file).table.equals(whole.table)
    assert len(Frontier.from_csv(file).points) == 1
