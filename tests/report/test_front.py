"""The page as a person reads it, and as a screen reader does: one page to sign, then an appendix."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from ciplearn.doubt import falsify, hidden_confounding, sensitivity
from ciplearn.report import Report

MOST_WORDS = 600


class Outline(HTMLParser):
    """Collects headings with their levels, the words before the appendix, and what lacks a name."""

    def __init__(self):
        super().__init__()
        self.headings, self.front, self.nameless, self.open = [], [], [], []
        self.heading = self.table = None

    @property
    def is_front(self):
        return "main" in self.open and ["Appendix"] not in [words for _, words in self.headings]

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag in ("meta", "link", "br", "img"):
            return
        self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.heading = (int(tag[1]), [])
            self.headings.append(self.heading)
        if tag == "table":
            self.table = {"caption"}
        if tag == "caption":
            self.table.discard("caption")
        if tag == "th" and "scope" not in attrs:
            self.nameless.append("th")
        if tag == "svg" and not attrs.get("aria-label") and attrs.get("aria-hidden") != "true":
            self.nameless.append(f"svg {attrs.get('class')}")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if re.fullmatch("h[1-6]", tag):
            self.heading = None
        if tag == "table":
            self.nameless += [f"table without {part}" for part in self.table]

    def handle_data(self, data):
        if self.heading is not None:
            self.heading[1].append(data)
        if self.is_front and "svg" not in self.open:
            self.front += [word for word in data.split() if re.search(r"\w", word)]


def outline(page):
    reader = Outline()
    reader.feed(page)
    return reader


@pytest.fixture(scope="module")
def doubted(decisions):
    """The report on decisions, with all that can be asked about the graph."""
    audit = decisions.audit
    graph = audit.verdict.graph
    rows, small = (
        decisions.rows.assign(Y=decisions.rows["Y"].astype("category")),
        {"n_points": 20, "n_interventions": 8},
    )
    answers = {
        "Do the rows contradict the graph?": falsify(graph, rows, n_permutations=0),
        "What if an arrow is wrong?": sensitivity(
            decisions.model, graph, rows, outcome="Y", protected=["sex", "race"], limit=3, **small
        ),
        "What if something hidden acts?": hidden_confounding(
            decisions.model, graph, rows, "sex", nodes=["X"], rho=[0.0, 0.3], **small
        ),
    }
    return Report.of(audit, doubts=answers, settings={"ciplearn audit": {"seed": 0}})


def test_front_part_has_the_words_of_one_page(doubted, make_report):
    for report in (doubted, make_report()):
        words = outline(report.to_html()).front
        assert 150 < len(words) <= MOST_WORDS


def test_title_is_a_question(decisions, make_report):
    assert Report.of(decisions.audit).title == "Does the predicted probability that Y is “yes” depend on race and sex?"
    assert Report.of(make_report().audit).title == "Does the predicted Y depend on A?"


def test_no_sign_of_the_theory_stands_before_the_appendix(doubted, make_report):
    for report in (doubted, make_report()):
        front = " ".join(outline(report.to_html()).front)
        assert not [sign for sign in ("VCF", "Ŷ", "⊥", "gamma", "mechanism", "HSCIC") if sign in front]


def test_outline_has_one_title_and_no_gap(doubted, make_report):
    for report, profile in ((doubted, "decision"), (make_report(), "decision"), (doubted, "model-card")):
        levels = [level for level, _ in outline(report.to_html(profile)).headings]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert np.diff(levels).max() <= 1, "nothing skips a level"


def test_tables_and_drawings_have_names_for_a_screen_reader(doubted, make_report):
    for profile in ("decision", "bias-audit", "model-card"):
        assert outline(doubted.to_html(profile)).nameless == []
    assert outline(make_report().to_html()).nameless == []


def test_rates_have_the_rate_of_a_constant_and_what_was_before(doubted):
    page = doubted.to_html()
    tiles = dict(
        re.findall(r'class="name">([^<]*)</div><div class="value">[^<]*</div><div class="note">([^<]*)<', page)
    )
    shares = doubted.rows["Y"].value_counts(normalize=True)
    before = doubted.audit.before.scores
    constant = f"always “{shares.index[0]}”: {100 * shares.iloc[0]:.1f} %"
    assert tiles["right decisions"] == f"{constant}; before {100 * before['accuracy']:.1f} %"
    assert tiles["AUC"] == f"tossing a coin: 0.50; before {before['auc']:.2f}"


def test_strips_stand_over_an_axis_with_numbers(doubted, make_report):
    for report in (doubted, make_report()):
        page = report.to_html()
        for table in re.findall(r"<table[^>]*>.*?</table>", page, flags=re.DOTALL):
            if 'class="strip"' in table:
                numbers = re.findall(r'class="tick"[^>]*>([^<]*)<', table)
                assert len(numbers) >= 2, table[:200]


def test_screen_reader_hears_the_conclusion_as_a_heading_and_of_each_drawing_what_it_shows(doubted):
    page = doubted.to_html()
    assert f'<h2 class="state">{doubted.conclusion.state.capitalize()}</h2>' in page
    drawn = [tag for tag in re.findall(r"<svg[^>]*>", page) if 'aria-hidden="true"' not in tag]
    said = [re.search(r'aria-label="([^"]*)"', tag)[1] for tag in drawn]
    assert "axis" not in said
    assert all(
        re.search(r"\d", words) for words in said if words.startswith(("typical difference w", "predictions for row"))
    )
    assert any(words.startswith("causal graph: ") for words in said)


def test_a_question_that_could_not_be_asked_stands_before_the_place_to_sign(make_report):
    question, answer = "What if something acts on A?", "This could not be asked: A has 3 labels."
    report = make_report(doubts={question: answer})
    assert f"{question} {answer}" in report.how_wrong
    assert report.to_html().index(f"<li>{question} {answer}</li>") < report.to_html().index("To sign")


def test_a_limit_is_exceeded_and_never_passed_where_passing_is_the_conclusion(doubted):
    sentence = next(each for each in doubted.how_wrong if "unmeasured" in each)
    assert re.search(r"exceeds the limit of 5\.0 points beyond a correlation of −?0\.\d\d", sentence)
    assert not [each for each in doubted.how_wrong if "passes the limit" in each]


def test_largest_effect_names_its_pair_so_that_another_pair_before_is_no_second_number(make_report):
    report = make_report()
    pair = report.effects.largest("this model")
    tile = re.search(r'largest effect</div>.*?<div class="note">(.*?)</div>', report.to_html(), re.S)[1]
    assert tile.replace("\N{NO-BREAK SPACE}", " ").startswith(f"{pair['first']} → {pair['second']}; before ")


def test_what_is_known_of_the_next_step_stands_before_it(make_report):
    steps = {"fails": "ciplearn fit again"}
    page = make_report(remedy="This passes, and explains 40 %.", next_steps=steps).to_html()
    words = "<span>ciplearn</span> <span>fit</span> <span>again</span>"
    assert f'<p class="next">This passes, and explains 40 %. Next: <code>{words}</code></p>' in page
    alone = make_report(remedy="Nothing useful passes.", next_steps={}).to_html()
    assert '<p class="next">Nothing useful passes.</p>' in alone
