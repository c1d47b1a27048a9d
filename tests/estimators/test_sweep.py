import numpy as np
import pytest
import torch

from ciplearn import CIPRegressor, Frontier, frontier
from ciplearn._core.errors import InputError
from ciplearn.estimators import stacking
from ciplearn.estimators.prepared import Prepared


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
    found = frontier(quick(scm), X, y, gammas=[0])
    with pytest.raises(InputError, match="'vcf' was not measured"):
        found.pareto(violation="vcf")


@pytest.mark.parametrize("setting", ["mixed_precision", "early_stopping"])
def test_networks_are_stacked_on_a_device_unless_a_setting_needs_its_own_loop(setting, scm, monkeypatch):
    assert not stacking.can_stack(quick(scm).set_params(device="cpu"))
    monkeypatch.setattr(stacking, "chosen_device", torch.device)
    model = quick(scm).set_params(device="cuda")
    assert stacking.can_stack(model)
    assert not stacking.can_stack(model.set_params(**{setting: True}))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_default_model_stacked_on_a_device_ends_where_it_does_on_the_cpu(scm, X, y):
    trained = []
    for device in ("cpu", "cuda"):
        model = quick(scm).set_params(device=device)
        trained.append(stacking.fit_stacked(Prepared(model, X, y), [(0.0, 1), (1.0, 2)]))
    for on_cpu, on_gpu in zip(*trained, strict=True):
        assert on_gpu.gamma_scale_ == pytest.approx(on_cpu.gamma_scale_, rel=1e-3)
        np.testing.assert_allclose(on_gpu.predict(X), on_cpu.predict(X), atol=1e-2 * y.std())
