import pytest
import torch

from ciplearn.experiments import speed
from ciplearn.experiments.speed import against_literal, literal_hscic, rows_scaling, training_step
from ciplearn.penalties import HSCIC


def test_literal_evaluation_is_the_criterion():
    generator = torch.Generator().manual_seed(0)
    y_hat, right, given = (torch.rand(20, 1, dtype=torch.float64, generator=generator) for _ in range(3))
    expected = HSCIC.paper()(y_hat, right, given)
    torch.testing.assert_close(literal_hscic(y_hat, right, given, lengthscale=0.1, ridge=0.01), expected)


def test_ratios_are_those_of_the_times_taken(monkeypatch):
    taken = iter([0.25, 0.5, 0.002, 0.004, 0.006, 0.3, 0.9])

    def timed(*calls, **_):
        return [(call(), next(taken))[1] for call in calls]

    monkeypatch.setattr(speed, "interleaved", timed)
    monkeypatch.setattr(speed, "seconds", lambda call: timed(call)[0])
    with_prepare, prepared = against_literal(n=32, sampled_rows=2)
    assert (with_prepare.ratio, prepared.ratio) == (8, 2000)
    assert with_prepare.detail == "literal 4.0 s, from 2 of 32 rows; ours 500 ms"
    step = training_step(64, 16, trained=0)
    assert (step.ratio, step.detail) == (1.5, "6.00 ms against 4.00 ms")
    rows = rows_scaling(3000, 6000)
    assert rows.ratio == pytest.approx(1.5)
    assert rows.detail.startswith("0.9 s against 0.3 s, peak memory")
