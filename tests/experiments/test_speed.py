import pytest
import torch

from ciplearn.experiments.literal import literal_hscic
from ciplearn.experiments.speed import Measurement, against_literal, rows_scaling, training_step
from ciplearn.penalties import HSCIC


def test_literal_evaluation_is_the_criterion():
    generator = torch.Generator().manual_seed(0)
    y_hat, right, given = (torch.rand(20, 1, dtype=torch.float64, generator=generator) for _ in range(3))
    expected = HSCIC.paper()(y_hat, right, given)
    torch.testing.assert_close(literal_hscic(y_hat, right, given, lengthscale=0.1, ridge=0.01), expected)


@pytest.mark.parametrize(
    "measure",
    [lambda: against_literal(n=32, sampled_rows=2)[1], lambda: training_step(64, 16), lambda: rows_scaling(3000, 6000)],
    ids=["literal", "step", "rows"],
)
def test_measurements_are_ratios_with_their_times(measure):
    found = measure()
    assert isinstance(found, Measurement)
    assert found.ratio > 0
    assert " s" in found.detail or " ms" in found.detail
