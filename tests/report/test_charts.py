import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciplearn.report.charts import Dot, agreement, curve, over_gamma
from ciplearn.report.scales import Scale
from ciplearn.report.wording import short

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_linear_scale_keeps_all_values_on_paper_and_ticks_inside(values):
    scale = Scale.around(values, 50, 450)
    assert all(50 <= scale(value) <= 450 for value in values)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 12
    assert all(scale.low - 1e-9 * abs(scale.low) <= tick <= scale.high + 1e-9 * abs(scale.high) for tick in ticks)


@given(st.lists(st.floats(1e-12, 1e9), min_size=1, max_size=8))
def test_logarithmic_scale_keeps_all_values_on_paper(values):
    scale = Scale.decades(values, 0, 100)
    assert all(-1e-6 <= scale(value) <= 100 + 1e-6 for value in values)
    assert all(scale.low <= tick * (1 + 1e-9) for tick in scale.ticks())
    assert len(scale.ticks()) <= 7


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0"), (0.12345, "0.123"), (1e-5, "1e-5"), (12345, "12 345"), (-2.5e-7, "-2.5e-7"), (3.0, "3"), (1e9, "1e9")],
)
def test_numbers_are_written_short(value, expected):
    assert short(value) == expected


def dots(*triples):
    return [Dot(x, y, gamma, chosen=gamma == 1) for x, y, gamma in triples]


def test_curve_shows_every_dot_the_choice_and_the_baselines():
    drawn = curve(dots((1, 0, 0), (0.5, 1, 1), (0, 2, 10)), "VCF", "loss", {"CF1": (0.0, 3.0)})
    assert drawn.count('class="dot"') == 3
    assert drawn.count('class="ring"') == 1
    assert drawn.count("baseline") == 1
    centres = re.findall(r'class="dot" cx="([0-9.]+)" cy="([0-9.]+)"', drawn)
    assert float(centres[0][0]) > float(centres[2][0]), "a larger violation stands to the right"
    assert float(centres[0][1]) > float(centres[2][1]), "a larger loss stands higher"


def test_labels_never_lie_on_each_other():
    crowd = dots(*((1 + step / 1000, 1 + step / 1000, step) for step in range(20)))
    drawn = curve([*crowd, Dot(0, 0, 99)], "x", "y")
    places = [(float(x), float(y)) for x, y in re.findall(r'class="gamma[^"]*" x="([0-9.]+)" y="([0-9.]+)"', drawn)]
    assert len(places) < 5
    assert all(math.dist(p, q) > 15 for i, p in enumerate(places) for q in places[:i])


def test_gamma_zero_stands_before_the_logarithmic_axis():
    drawn = over_gamma(dots((0, 3, 0), (1, 2, 1), (10, 1, 10)), "VCF")
    assert ">0</text>" in drawn
    centres = [float(x) for x in re.findall(r'class="dot" cx="([0-9.]+)"', drawn)]
    assert centres == sorted(centres)
    assert over_gamma(dots((0, 3, 0)), "VCF") == ""


def test_agreement_does_not_stretch_over_rounding_errors():
    drawn = agreement(dots((1, 1, 0), (0.1, 0.1, 1), (1e-18, 1e-19, 2)), "penalty", "VCF")
    assert "e-18" not in "".join(re.findall(r'class="tick"[^>]*>([^<]*)<', drawn))
    assert agreement(dots((0, 0, 0)), "penalty", "VCF") == ""


def test_axis_labels_are_escaped():
    assert "<b>" not in curve(dots((1, 0, 0), (0, 1, 1)), "<b>", '"><b>')
