import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.report import Report
from ciplearn.report.sections import in_words


def test_most_affected_rows_come_first_with_all_columns_that_matter(decisions):
    top = decisions.audit.vcf.per_row["vcf"].sort_values(ascending=False).index[:6].tolist()
    assert [one.place for one in decisions.shown_individuals] == top
    one = decisions.shown_individuals[0]
    assert set(one.values) == {"sex", "race", "X", "Y"}
    assert one.values["Y"] in ("yes", "no")
    assert "of rows" in one.values["X"], "a number of many is put in its place"


def test_any_row_can_be_asked_about(decisions):
    report = Report.of(decisions.audit, individuals=[7])
    (one,) = report.shown_individuals
    row = decisions.rows.loc[[7]]
    assert one.answers[0].predictions == {
        name: pytest.approx(asked.model.predict_proba(row)[0, 1]) for name, asked in decisions.audit.predictors.items()
    }
    worlds = {answer.world: answer.predictions for answer in one.answers[1:]}
    assert list(worlds) == [*(f"sex = {v}" for v in (0, 1)), *(f"race = {v}" for v in (0, 1, 2))] or len(worlds) == 5
    # X = sex + 0.5 race + u: the noise of this row is kept.
    other = 1 - row["sex"].iloc[0]
    changed = row.assign(sex=other, X=row["X"] + other - row["sex"])
    told = next(value for world, value in worlds.items() if world.startswith("sex") and float(world[6:]) == other)
    assert told["this model"] == pytest.approx(decisions.model.predict_proba(changed)[0, 1])


def test_row_that_was_not_audited_is_named(decisions):
    with pytest.raises(InputError, match="Row 4000 is not among the 400 audited rows"):
        Report.of(decisions.audit, individuals=[4000])


@pytest.mark.parametrize(("value", "words"), [(1e300, "1e+300"), (-12345.6, "−12346"), (0.12345, "0.1235")])
def test_a_number_is_said_in_as_many_digits_as_people_read(value, words):
    assert in_words(pd.Series([value, 0.0]), value) == words
