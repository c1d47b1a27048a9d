import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from ciplearn import Frontier, FrontierDisplay
from ciplearn._core.errors import InputError
from ciplearn.learning.frontier import Point

FRONTIER = Frontier(
    tuple(
        Point(gamma, seed, {"loss": 0.1 * gamma + 0.01 * seed, "penalty": 1 / (1 + gamma), "vcf": 2 / (1 + gamma)})
        for gamma in (0.0, 1.0, 3.0)
        for seed in (0, 1)
    )
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_display_draws_curve_baselines_and_the_chosen_gamma():
    shown = FrontierDisplay.from_frontier(FRONTIER, baselines={"CF1": (0.0, 0.4)}, chosen=1.0).plot()
    labels = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert any("chosen" in label and "1" in label for label in labels)
    assert "CF1" in labels
    assert "VCF" in shown.ax_.get_xlabel()
    assert shown.figure_ is shown.ax_.figure


def test_other_frontiers_are_drawn_beside_it():
    under_doubt = Frontier(
        tuple(Point(g, 0, {"loss": 0.3 * g, "penalty": 1.0, "vcf": 1 / (1 + g)}) for g in (0.0, 1.0, 5.0))
    )
    alone = FrontierDisplay.from_frontier(FRONTIER).plot()
    shown = FrontierDisplay.from_frontier(FRONTIER, beside={"under doubt": under_doubt}).plot()
    assert "under doubt" in [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    curves = [container.lines[0] for container in shown.ax_.containers]
    assert len(curves) == len(alone.ax_.containers) + 1
    np.testing.assert_allclose(curves[1].get_xydata(), [[1, 0], [0.5, 0.3], [1 / 6, 1.5]])
    other = Frontier((Point(0.0, 0, {"loss": 1.0, "penalty": 1.0}),))
    with pytest.raises(InputError, match="'vcf' was not measured"):
        FrontierDisplay.from_frontier(FRONTIER, beside={"under doubt": other})


def test_display_draws_on_a_given_axis():
    _, ax = plt.subplots()
    assert FrontierDisplay.from_frontier(FRONTIER, violation="penalty").plot(ax=ax).ax_ is ax


def test_measure_that_was_not_taken_is_named():
    with pytest.raises(InputError, match="'auc' was not measured"):
        FrontierDisplay.from_frontier(FRONTIER, cost="auc")


def test_what_is_no_frontier_is_refused_and_an_empty_one_has_an_empty_table():
    with pytest.raises(InputError, match="A Frontier is drawn, got int"):
        FrontierDisplay.from_frontier(5)
    assert list(Frontier(()).table.columns) == ["gamma", "seed"]


@pytest.mark.parametrize("make", [FrontierDisplay, FrontierDisplay.from_frontier])
def test_gamma_that_was_not_tried_cannot_be_the_chosen_one(make):
    with pytest.raises(InputError, match="got 700; pass one of 0, 1, 3"):
        make(FRONTIER, chosen=700)
    assert make(FRONTIER, chosen=3 * (1 + 1e-12)).chosen == 3.0


def test_the_straight_line_from_cf1_is_the_reference():
    shown = FrontierDisplay.from_frontier(FRONTIER, baselines={"CF1": (0.0, 0.4)}).plot()
    (line,) = [line for line in shown.ax_.get_lines() if line.get_label() == "straight line from CF1"]
    vcf, loss = line.get_data()
    # From CF1, which never varies, to the mean over seeds at gamma 0; half of s leaves a quarter of VCF.
    assert (vcf[0], loss[0]) == pytest.approx((0.0, 0.4))
    assert (vcf[-1], loss[-1]) == pytest.approx((2.0, 0.005))
    half = 0.5
    assert np.interp(half**2 * 2.0, vcf, loss) == pytest.approx(0.005 + half**2 * 0.395, abs=1e-3)
    without = FrontierDisplay.from_frontier(FRONTIER, violation="penalty", baselines={"CF1": (0.0, 0.4)}).plot()
    assert "straight line from CF1" not in [line.get_label() for line in without.ax_.get_lines()]
