import dataclasses
import json
import re
from html import unescape
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ciplearn import CausalGraph, StructuralCausalModel, audit, paired_effects
from ciplearn._core.errors import InputError
from ciplearn.doubt import falsify, hidden_confounding, sensitivity
from ciplearn.report import Report
from tests.report.conftest import HOSTILE

HEADINGS = [
    "What changing A does",
    "Who is predicted too high or too low",
    "What it costs, and how wrong it may be",
    "To sign",
    "Appendix",
]
VOID = {"meta", "link", "br", "img"}


class Reader(HTMLParser):
    """Collects tags and text, and checks that what opens closes."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.links, self.text, self.attributes = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action", "xlink:href")]
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def test_page_has_every_part_and_fetches_nothing(make_report):
    page = make_report().to_html()
    reader = read(page)
    assert reader.open == []
    assert re.findall(r"<h2>(.*?)</h2>", page) == HEADINGS
    assert "script" not in reader.tags
    assert reader.links == ["data:,"]
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "").replace("http-equiv", "")
    assert page.count('class="chart"') == 3
    assert page.index('class="band') < page.index("<h2>"), "the conclusion comes first"


def test_names_from_the_data_are_text_everywhere(make_report):
    page = make_report(HOSTILE).to_html()
    reader = read(page)
    assert "script" not in reader.tags
    assert HOSTILE in "".join(reader.text)
    assert not [name for name in reader.attributes if name.startswith("on")]
    assert "<script" not in page


@pytest.mark.parametrize(
    "name", ['"><img src=x onerror=alert(1)>', "a' onmouseover='b", "{{ 7 * 7 }}", "</style>", "–→Ŷ 名"]
)
def test_other_hostile_names_are_text_too(name, make_report):
    reader = read(make_report(name).to_html())
    assert reader.open == []
    assert name in "".join(reader.text)
    assert not [attribute for attribute in reader.attributes if attribute.startswith("on")]
    assert "img" not in reader.tags


def test_sentences_of_the_audit_stand_on_the_page(make_report):
    report = make_report()
    text = "".join(read(report.to_html()).text).replace("\N{NO-BREAK SPACE}", " ")
    assert str(report.audit.vcf) in text
    assert str(report.audit.tested) in text
    assert all(check.sentence in text for check in report.conclusion.checks)
    assert report.rests_on in text
    assert all(said in text and said.check in text for said in report.audit.verdict.assumptions)
    assert "ciplearn check A" in text


def test_tiles_and_band_have_no_exponents(make_report, decisions):
    for report in (make_report(weight=1e-6), decisions):
        page = report.to_html()
        top = page[page.index('class="band') : page.index("<section>")]
        assert not re.search(r"\d\.?\d*e[-+]?\d", top)


def test_support_by_the_graph_is_no_certificate_of_the_model(make_report):
    page = make_report().to_html()
    assert "certified by the graph" not in page.lower()
    assert "not a certificate of the model" in page


def test_summary_says_what_is_on_the_band_and_what_was_before(make_report):
    said = make_report().summary()
    assert said[0].startswith("Fails: ")
    assert any(sentence.startswith("Trained for accuracy alone, its largest effect is") for sentence in said)
    alone = dataclasses.replace(make_report().audit, beside={})
    assert len(Report.of(alone).summary()) == len(said) - 1


def test_page_with_a_comparison_shows_its_recommendation(make_report):
    table = pd.DataFrame(
        {
            "name": ["gamma 1", "gamma 10", "CF2", "line at 5 %", "line at 20 %"],
            "kind": ["penalty", "penalty", "baseline", "line", "line"],
            "loss": [1.0, 2.0, 1.2, 1.9, 1.5],
            "vcf": [0.5, 0.1, 0.05, 0.05, 0.2],
            "relative": [0.5, 0.1, 0.05, 0.05, 0.2],
        }
    )
    unknown = "CF1 is not offered: it needs <rows>."
    chosen = SimpleNamespace(table=table, chosen="CF2", reason="Taken: CF2.", notes=(unknown,))
    report = make_report(comparison=chosen)
    page = report.to_html()
    assert '<p class="big">Taken: CF2.</p>' in page
    assert "<li>CF1 is not offered: it needs &lt;rows&gt;.</li>" in page
    assert "Measured when the" in page
    assert page.count('class="line p') == 4, "two paths, and both in the key"
    assert page.count('class="ring" cx') == 3, "on the frontier, and in both charts of the trainings"
    assert report.candidates["chosen"].tolist() == [False, False, True, False, False]
    # A folder of before has no words about what breaks the goal.
    earlier = table.assign(rests_on="the graph", allowed=[False, True, True, True, True])
    page = make_report(comparison=SimpleNamespace(**vars(chosen) | {"table": earlier})).to_html()
    assert page.count("<td>yes</td><td>the graph</td>") == 4
    assert page.count("<td>no</td><td>the graph</td>") == 1


def test_paths_of_one_route_and_learner_are_told_apart_and_all_named(make_report):
    made = (
        "linear, repaired",
        "linear, corrected",
        "network, repaired",
        "boosted, repaired",
        "linear, repaired blindly",
    )
    rows = [
        {"name": f"{how} at {strength}", "kind": "repair", "learner": how.split(",")[0], "loss": loss, "vcf": 1 / loss}
        for how in made
        for loss, strength in enumerate(("strength 1", "strength 3", "full strength"), 1)
    ]
    chosen = SimpleNamespace(table=pd.DataFrame(rows), chosen=rows[0]["name"], reason="Taken.", notes=())
    page = make_report(comparison=chosen).to_html()
    drawn = page[page.index('class="frontier"') : page.index("The candidates in numbers")]
    chart, key = drawn.split("<figcaption>")
    looks = re.findall(r'class="line ([^"]*)"', chart)
    assert len(set(looks)) == len(made)
    assert re.findall(r'class="line ([^"]*)"', key) == looks
    assert re.findall(r"</svg>([^<]*)</span>", key)[1:] == list(made)


def test_zone_that_is_allowed_spans_both_sides_of_no_effect(make_report):
    for weight in (0.5, 0.0):
        page = make_report(weight=weight).to_html()
        strips = re.findall(r'zone" x="([0-9.]+)" y="0" width="([0-9.]+)".*?class="zero" d="M([0-9.]+),', page)
        assert strips
        for left, width, zero in (map(float, strip) for strip in strips):
            assert left + width / 2 == pytest.approx(zero, abs=0.2)


def test_graph_is_drawn_once(make_report):
    effects = ", ".join(f"X{place}" for place in range(9))
    wide = CausalGraph.from_text(f"S | A | {effects} | Y")
    report = make_report()
    audit = dataclasses.replace(report.audit, verdict=wide.criterion("Y", "A", context=["A", "S"], inputs=["A", "S"]))
    page = Report.of(audit).to_html()
    assert page.count('class="cg"') == 1
    assert "seen by the predictor" in page


def test_doubts_are_answered_where_they_were_asked(make_report):
    report = make_report()
    refuted = falsify(report.audit.verdict.graph, report.rows, n_permutations=0)
    doubted = sensitivity(
        report.model,
        report.audit.verdict.graph,
        report.rows,
        outcome="Y",
        protected=["A"],
        n_points=20,
        n_interventions=10,
    )
    page = make_report(doubts={"Is it refuted?": refuted, "What if an edge is wrong?": doubted}).to_html()
    assert "<h3>Is it refuted?</h3>" in page
    assert str(refuted) in unescape(page)
    assert page.count("Here: ") >= 3
    assert 'data-of="changes"' in page
    assert str(doubted) in unescape(page)


def test_how_wrong_it_may_be_is_said_in_three_sentences_with_numbers(make_report):
    report = make_report()
    graph, rows = report.audit.verdict.graph, report.rows
    small = {"n_points": 20, "n_interventions": 10}
    turned = CausalGraph.from_edges("A -> S, A -> Y, S -> Y")
    answers = {
        "rows": falsify(graph, rows, n_permutations=0),
        "arrows": sensitivity(report.model, graph, rows, {"A first": turned}, outcome="Y", protected=["A"], **small),
        "hidden": hidden_confounding(report.model, graph, rows, "A", rho=[0.0, 0.3], **small),
    }
    asked = make_report(doubts=answers)
    rows_say, arrows, hidden = asked.how_wrong
    assert rows_say.startswith("The rows cannot say")
    assert re.search(r"between [0-9.]+ and [0-9.]+ instead of at [0-9.]+, over 1 other graph ", arrows)
    assert "most of all: A first" in arrows
    assert "graph that the rows do not contradict;" in arrows
    assert "moves both A and Y" in hidden
    assert "S, had it not been measured, would correlate them by" in hidden
    page = unescape(asked.to_html())
    assert all(sentence in page for sentence in asked.how_wrong)
    assert 'aria-label="typical difference against correlation ρ that a hidden cause would make"' in page
    assert "</svg>a hidden cause of A and Y</span>" in page
    assert json.loads(json.dumps(asked.to_dict()))["how_wrong"] == asked.how_wrong
    assert "--doubt 20" in unescape(report.to_html())


def test_a_graph_that_is_refuted_and_one_that_is_not_are_told_apart(make_report):
    report = make_report()
    without = CausalGraph(nodes=("S", "A", "Y"), directed=[("S", "A"), ("A", "Y")])
    refuted = make_report(doubts={"rows": falsify(without, report.rows, n_permutations=0)}).how_wrong[0]
    assert "contradict the drawn graph: of 1 statements that were tested, 1 is wrong" in refuted
    assert "(Y and S go together among rows with the same A)" in refuted
    fine = falsify(
        CausalGraph.from_edges("S -> A, S -> Z"), report.rows.assign(Z=report.rows["S"] + np.arange(200) % 7)
    )
    tests = pd.concat([fine.tests, fine.tests.assign(p=np.nan, p_adjusted=np.nan)], ignore_index=True)
    few = dataclasses.replace(fine, tests=tests, statements=2 * fine.statements)
    assert "1 of its 2 statements was tested, none fails" in make_report(doubts={"rows": few}).how_wrong[0]
    said = make_report(doubts={"rows": fine}).how_wrong[0]
    assert "1 statement was tested, none fails; a correlation of 0." in said


def test_a_page_about_an_outcome_that_acts_on_an_input():
    """What Y did to X is told from X only with Y: the rows keep it."""
    scm = StructuralCausalModel(
        CausalGraph.from_edges("A -> X, Y -> X"),
        equations={"A": lambda p, u: u, "Y": lambda p, u: u, "X": lambda p, u: p["A"] + p["Y"] + u},
        noise={"A": norm(), "Y": norm(), "X": norm(0, 0.1)},
    )
    rows = scm.sample(200, random_state=0)

    def model(frame):
        return frame["X"]

    found = audit(model, scm, rows, "Y", ["A"], n_points=50, n_interventions=10)
    report = Report.of(found)
    assert report.effects.largest()["effect"] > 1
    assert read(report.to_html()).open == []


def test_a_page_about_rows_in_which_the_protected_never_varies(make_report):
    report = make_report()
    rows = report.rows.assign(A=1.0)
    same = Report.of(dataclasses.replace(report.audit, rows=rows))
    assert same.effects is None
    assert read(same.to_html()).open == []
    with pytest.raises(InputError, match="A takes one value in these rows"):
        paired_effects(report.model, report.audit.scm, same.rows, ["A"])


def test_individuals_that_are_no_rows_are_refused(make_report):
    with pytest.raises(InputError, match="is not among the"):
        make_report(individuals=[[1, 2]])


def test_page_without_trials_says_that_there_is_nothing_to_compare(make_report):
    page = make_report(frontier=None, chosen=None, baselines={}).to_html()
    assert "nothing to compare it with" in page
    assert read(page).open == []


def test_page_asks_the_model_as_the_audit_did(make_report):
    """A model that has to be told its columns, and a table with a column that the graph does not know."""
    report = make_report()
    rows = report.rows.assign(id=[f"person {place}" for place in range(len(report.rows))])

    def model(frame):
        return frame.to_numpy() @ [0.5]

    effort = {"n_points": 30, "n_interventions": 10}
    found = audit(model, report.audit.scm, rows, "Y", ["A"], inputs=["S"], **effort)
    told = Report.of(found, title="One column")
    assert "One column" in told.to_html()
    assert told.by_group.table["n_rows"].sum() == len(rows)

    def total(frame):
        return frame.sum(axis=1)

    with_ids = audit(total, report.audit.scm, rows, "Y", ["A"], **effort)
    assert "All columns" in Report.of(with_ids, title="All columns").to_html()


def test_strips_of_groups_say_what_they_show(make_report, decisions):
    numbers, labels = make_report().to_html(), decisions.to_html()
    assert "prediction less outcome" in numbers
    assert "rate of positive decisions" not in numbers
    assert "rate of positive decisions" in labels[labels.index("<h3>Every group</h3>") :]
    assert "prediction less outcome" not in labels[labels.index("<h3>Every group</h3>") :]


def test_group_that_is_no_column_is_named(make_report):
    with pytest.raises(InputError, match="'job'"):
        make_report(groups=["job"])
    with pytest.raises(InputError, match="no column of the rows"):
        make_report(groups=np.zeros(2))


def test_profile_that_does_not_exist_is_named(make_report):
    with pytest.raises(InputError, match="'summary'"):
        make_report().to_html("summary")
