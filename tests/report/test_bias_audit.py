import dataclasses

import numpy as np
import pytest

from ciplearn._core.errors import InputError
from ciplearn.report import Report
from ciplearn.report.sections import BiasAudit
from tests.report.html_tables import tables_of


def test_rates_and_ratios_are_counted_by_hand(decisions):
    found = BiasAudit.of(decisions)
    rows = decisions.rows.assign(selected=decisions.model.predict_proba(decisions.rows)[:, 1] > 0.5)
    for columns in (["sex"], ["race"], decisions.group_columns):
        rates = rows.groupby(columns)["selected"].agg(["size", "sum", "mean"])
        table = found.table[found.table["columns"] == " × ".join(columns)]
        by_hand = sorted(zip(rates["size"], rates["sum"], rates["mean"] / rates["mean"].max(), strict=True))
        ours = sorted(zip(table["n_rows"], table["selected"], table["ratio"], strict=True))
        assert [row[:2] for row in ours] == [row[:2] for row in by_hand]
        assert [row[2] for row in ours] == pytest.approx([row[2] for row in by_hand])


def test_rows_without_a_value_are_counted_and_left_out_of_the_tables(decisions):
    rows = decisions.rows.astype({"race": object})
    rows.loc[rows.index[:5], "race"] = None
    audit, model = decisions.audit, decisions.model
    changed = dataclasses.replace(audit, model=_without_race(model), rows=rows)
    report = Report.of(changed, groups=["race"], unknown={"race": 7})
    found = BiasAudit.of(report)
    assert found.unknown == {"race": 12}
    assert found.table["n_rows"].sum() == 395
    assert "missing" not in set(found.table["group"])


def _without_race(model):
    weights = {name: weight for name, weight in model.weights.items() if name != "race"}
    return type(model)(**weights)


def test_numbers_are_scored_above_their_median(make_report):
    report = make_report()
    found = BiasAudit.of(report)
    assert found.scored
    scores = report.model(report.rows)
    assert found.threshold == pytest.approx(np.median(scores))
    assert found.table["selected"].sum() == (scores > found.threshold).sum()


def test_pages_say_that_they_are_an_input_to_an_audit_and_assert_no_threshold(decisions):
    page = decisions.to_html("bias-audit")
    assert "An input to an audit, not the audit." in page
    assert "An input to an audit, not the audit." in decisions.to_html("model-card")
    assert "four-fifths" not in page
    assert "0.8 " not in page
    assert not any(word in page for word in ("Passes", "Fails"))
    tables = tables_of(page)
    assert ["race"] in [row[0] for row in tables["unknown"]]
    assert ["7"] in [row[1] for row in tables["unknown"] if row[0] == ["race"]]
    assert len(tables["impact"]) == 3 + len(BiasAudit.of(decisions).table)


def test_several_classes_have_no_selection(decisions):
    class Three:
        classes_ = np.array(["a", "b", "c"])

        def predict_proba(self, frame):
            return np.full((len(frame), 3), 1 / 3)

    from ciplearn import audit

    rows = decisions.rows.assign(Y=np.resize(["a", "b", "c"], len(decisions.rows)))
    found = audit(Three(), decisions.audit.scm, rows, "Y", ["sex"], n_points=10, n_interventions=5)
    report = Report.of(found)
    with pytest.raises(InputError, match="gives 3 numbers"):
        report.to_html("bias-audit")
    assert "What changing sex does" in report.to_html()
