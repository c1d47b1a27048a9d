import re
from html.parser import HTMLParser

import pytest

from ciplearn import audit
from ciplearn._core.errors import InputError
from ciplearn.report import Report
from tests.report.conftest import HOSTILE

HEADINGS = [
    "In short",
    "The graph and its verdict",
    "The statement enforced",
    "What invariance costs",
    "Had A been different",
    "Is the prediction independent?",
    "Scores by group",
    "Assumptions and limits",
    "To repeat it",
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


def test_numbers_of_the_audit_stand_on_the_page(make_report):
    report = make_report()
    text = "".join(read(report.to_html()).text)
    assert f"{report.audit.vcf.value:.3g}" in text
    assert str(report.audit.vcf) in text
    assert str(report.audit.test) in text
    assert "rank correlation of penalty and VCF is\n1.00." in text
    assert all(sentence in text for sentence in report.summary())
    assert all(sentence in text for sentence in report.audit.verdict.assumptions)


def test_summary_compares_trainings_on_the_same_rows(make_report):
    said = make_report().summary()
    assert "down to 40% of what it is without" in said[1]
    assert len(make_report(frontier=None).summary()) == len(said) - 1


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
    told = Report(audit=found, model=model, rows=rows, title="One column")
    assert "One column" in told.to_html()
    assert sum(group.n_rows for group in told.group_scores()) == len(rows)

    def total(frame):
        return frame.sum(axis=1)

    with_ids = audit(total, report.audit.scm, rows, "Y", ["A"], **effort)
    assert "All columns" in Report(audit=with_ids, model=total, rows=rows, title="All columns").to_html()


def test_group_that_is_no_column_is_named(make_report):
    with pytest.raises(InputError, match="'job'"):
        make_report(groups=["job"])
