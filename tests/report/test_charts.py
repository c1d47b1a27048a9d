import math
import re

from hypothesis import example, given
from hypothesis import strategies as st

from ciplearn.report.charts import Dot, Scale, agreement, over_correlation, over_gamma, trade_off

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_linear_scale_keeps_all_values_on_paper_and_ticks_inside(values):
    scale = Scale.around(values, 50, 450)
    assert all(50 <= scale(value) <= 450 for value in values)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 12
    assert all(scale.low - 1e-9 * abs(scale.low) <= tick <= scale.high + 1e-9 * abs(scale.high) for tick in ticks)


@given(st.lists(st.floats(1e-12, 1e9), min_size=1, max_size=8))
@example([1395044.0, 358411833.0])
def test_logarithmic_scale_keeps_all_values_on_paper(values):
    scale = Scale.decades(values, 0, 100)
    assert all(-1e-6 <= scale(value) <= 100 + 1e-6 for value in values)
    assert all(scale.low <= tick * (1 + 1e-9) for tick in scale.ticks())
    assert len(scale.ticks()) <= 7


def test_numbers_beneath_all_decades_stand_apart():
    scale = Scale.decades([0.0, 5e-324], 0, 100, 1e-4)
    assert scale(0.0) == scale(5e-324) == scale.beneath


def dots(*triples):
    return [Dot(x, y, gamma, chosen=gamma == 1) for x, y, gamma in triples]


def test_trade_off_shows_every_candidate_the_choice_and_the_baselines():
    path = dots((1, 0, 0), (0.5, 1, 1), (0, 2, 10))
    drawn = trade_off([path], [Dot(0.0, 3.0, 0.0, name="CF1")], "difference", "loss")
    assert drawn.count('class="dot p0"') == 3
    assert drawn.count('class="ring"') == 1
    assert drawn.count('class="baseline') == 1
    assert "<title>CF1: 0, 3</title>" in drawn
    centres = re.findall(r'class="dot p0" cx="([0-9.]+)" cy="([0-9.]+)"', drawn)
    assert float(centres[0][0]) > float(centres[2][0]), "a larger violation stands to the right"
    assert float(centres[0][1]) > float(centres[2][1]), "a larger loss stands higher"


def test_chosen_baseline_has_a_ring():
    drawn = trade_off([], [Dot(0, 1, 0, True, "CF2"), Dot(1, 0, 0, False, "free")], "x", "y")
    assert drawn.count('class="ring"') == 1


def test_chosen_point_is_named_where_a_baseline_takes_the_place_beside_it():
    path = [Dot(0, 2, 0), Dot(5, 1, 1, True, "line, 60 %"), Dot(9, 0, 2)]
    other = [Dot(0, 1, 0), Dot(9, 2, 1)]
    drawn = trade_off([path, other], [Dot(5.6, 1.1, 0, name="CF2")], "x", "y")
    assert re.findall(r'class="gamma[^>]*>([^<]*)<', drawn) == ["line, 60 %"], "a key names the others"


def test_labels_never_lie_on_each_other():
    crowd = dots(*((1 + step / 1000, 1 + step / 1000, step) for step in range(20)))
    drawn = trade_off([[*crowd, Dot(0, 0, 99)]], [], "x", "y")
    places = [(float(x), float(y)) for x, y in re.findall(r'class="gamma[^"]*" x="([0-9.]+)" y="([0-9.]+)"', drawn)]
    assert len(places) < 5
    assert all(math.dist(p, q) > 15 for i, p in enumerate(places) for q in places[:i])


def test_gamma_zero_stands_before_the_logarithmic_axis():
    drawn = over_gamma(dots((0, 3, 0), (1, 2, 1), (10, 1, 10)), "VCF")
    assert ">0</text>" in drawn
    centres = [float(x) for x in re.findall(r'class="dot " cx="([0-9.]+)"', drawn)]
    assert centres == sorted(centres)
    assert over_gamma(dots((0, 3, 0)), "VCF") == ""


def test_what_is_next_to_zero_stands_apart_on_a_logarithmic_axis_and_is_not_moved_to_its_end():
    drawn = agreement(dots((1, 1, 0), (0.1, 0.1, 1), (0.01, 0.01, 3), (1e-18, 1e-19, 2)), "penalty", "VCF")
    ticks = re.findall(r'class="tick"[^>]*>([^<]*)<', drawn)
    assert "e-18" not in "".join(ticks)
    assert ticks.count("less") == 2
    assert "1e-18, 1e-19" in drawn, "its own value is told"
    xs = [float(x) for x in re.findall(r'class="dot " cx="([0-9.]+)"', drawn)]
    floor = float(re.search(r'd="M([0-9.]+),[0-9.]+V', drawn)[1])
    assert xs[3] == floor < xs[2] - 10
    assert agreement(dots((0, 0, 0)), "penalty", "VCF") == ""


@given(st.lists(st.floats(0, 1e9), min_size=3, max_size=8))
def test_logarithmic_scale_with_a_depth_has_a_place_for_all(values):
    scale = Scale.decades(values, 0, 100, 1e-4)
    assert all(-1e-6 <= scale(value) <= 100 + 1e-6 for value in values)
    # Beneath 1e-300 powers of ten run out of digits.
    apart = [value for value in values if value < max(1e-4 * max(values), 1e-300)]
    assert (scale.beneath is not None) == bool(apart)
    assert all(scale(value) == scale.beneath for value in apart)


def test_axis_labels_are_escaped():
    assert "<b>" not in trade_off([dots((1, 0, 0), (0, 1, 1))], [Dot(0, 0, 0, True, "<b>")], "<b>", '"><b>')


def labels_of(drawn):
    found = re.findall(r'class="gamma" x="([0-9.]+)" y="([0-9.]+)">([^<]*)<', drawn)
    return [(float(x), float(y), float(x) + 6.8 * len(name), name) for x, y, name in found]


def test_names_of_measured_causes_stand_apart_and_on_the_chart_however_alike_their_correlations():
    curves = [[Dot(rho, 1.0, rho) for rho in (-0.5, 0.0, 0.5)]]
    seen = [(0.0, "district"), (-0.01, "sex"), (0.02, "age"), (0.49, "parents_degree"), (0.3, "wait_days")]
    labels = labels_of(over_correlation(curves, seen, 0.5, "difference"))
    assert sorted(name for *_, name in labels) == sorted(name for _, name in seen)
    for number, (left, y, right, _) in enumerate(labels):
        assert 0 < left < right <= 460
        assert all(other[1] != y or other[2] <= left or right <= other[0] for other in labels[:number])


def test_a_dozen_paths_look_different():
    paths = [[Dot(number, number, 0), Dot(number + 1, number, 1)] for number in range(12)]
    drawn = trade_off(paths, [], "x", "y")
    assert len(set(re.findall(r'class="line ([^"]*)"', drawn))) == 12
