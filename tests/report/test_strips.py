import re

from hypothesis import given
from hypothesis import strategies as st

from ciplearn.report.charts import Mark, Strip

TRIPLES = st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 3).map(sorted), min_size=1, max_size=6)


@given(TRIPLES)
def test_marks_stay_on_their_bars_and_bars_on_the_strip(triples):
    marks = [Mark(value, low, high, "now") for low, value, high in triples]
    strip = Strip.of([end for triple in triples for end in triple], zero=True)
    for mark in marks:
        drawn = strip.draw([mark], "effect", limit=1.0)
        x = float(re.search(r'cx="([0-9.-]+)"', drawn)[1])
        ends = re.search(r'whisker now" d="M([0-9.]+),[0-9.]+H([0-9.]+)"', drawn)
        if ends is not None:
            assert 0 <= float(ends[1]) - 0.1 <= x <= float(ends[2]) + 0.1 <= 190
        zone = re.search(r'zone" x="([0-9.]+)" y="0" width="([0-9.]+)"', drawn)
        assert 0 <= float(zone[1]) <= float(zone[1]) + float(zone[2]) <= 190


def test_span_covers_every_mark():
    drawn = Strip(0.0, 1.0).draw_on_one_line([Mark(v, v, v, "now") for v in (0.2, 0.9, 0.5)], "row")
    left, right = map(float, re.search(r'span" d="M([0-9.]+),[0-9.]+H([0-9.]+)"', drawn).groups())
    places = [float(x) for x in re.findall(r'cx="([0-9.]+)"', drawn)]
    assert (min(places), max(places)) == (left, right)


def test_unknown_values_are_left_out_and_names_are_escaped():
    nan = float("nan")
    drawn = Strip.of([nan, 1.0]).draw([Mark(nan, nan, nan, "now"), Mark(1, 1, 1, "now", "<b>")], '"><b>')
    assert drawn.count("<circle") == 1
    assert "<b>" not in drawn
