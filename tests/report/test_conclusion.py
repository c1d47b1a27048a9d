import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from ciplearn import audit
from ciplearn.evaluation import Floor, Limits
from ciplearn.report import Report
from tests.report.conftest import Logistic


def test_small_effects_pass_and_large_ones_fail(make_report):
    good, bad = make_report(weight=1e-3).conclusion, make_report(weight=0.5).conclusion
    assert (good.state, bad.state) == ("passes", "fails")
    assert all(check.holds for check in good.checks)
    assert [check.name for check in bad.checks if not check.holds] == ["Largest effect:", "Single rows:"]


def test_headline_names_the_largest_paired_effect_however_few_rows_show_its_values(decisions):
    largest = decisions.effects.largest("this model")
    amount = decisions.unit.amount(largest["effect"], signed=True)
    said = f"most from {largest['first']} to {largest['second']}, by {amount}"
    assert said in decisions.conclusion.headline
    pair = decisions.effects.table.query("model == 'this model'")
    assert abs(largest["effect"]) == pair["effect"].abs().max()


def test_limits_decide(make_report):
    assert make_report(limits=Limits(100.0)).conclusion.state == "passes"
    assert make_report(limits=Limits(100.0, 1e-9)).conclusion.state == "fails"
    assert make_report(weight=1e-3, limits=Limits(1e-9)).conclusion.state == "fails"


def test_average_that_hides_opposite_moves_does_not_pass(make_report):
    """Half of the rows move up and half move down, so that the average effect is next to none."""
    base = make_report()

    def model(frame):
        return 2 * frame["S"] + 0.5 * np.sign(frame["S"]) * frame["A"]

    effort = {"n_points": 200, "n_interventions": 20}
    report = audit(model, base.audit.scm, base.rows, "Y", ["A"], limits=Limits(max_effect=0.4), **effort)
    names = [check.name for check in report.conclusion.checks if not check.holds]
    assert report.conclusion.state == "fails"
    assert "Single rows:" in names
    assert "moves too many single rows by more than is allowed" in report.conclusion.headline
    assert abs(report.effects.largest()["effect"]) < 0.4


def test_predictor_that_is_hardly_better_than_a_constant_is_useless(make_report, decisions):
    base = make_report()
    mean = base.rows["Y"].mean()

    def constant(frame):
        return np.full(len(frame), mean)

    found = audit(constant, base.audit.scm, base.rows, "Y", ["A"], n_points=30, n_interventions=10)
    report = Report.of(found)
    assert report.conclusion.state == "useless"
    assert "0 %" in report.to_html()

    even = Logistic(X=0.0)
    found = audit(even, decisions.audit.scm, decisions.rows, "Y", ["sex"], n_points=30, n_interventions=10)
    assert found.conclusion.state == "useless"
    assert decisions.conclusion.state != "useless"


def test_limit_of_numbers_is_a_tenth_of_the_deviation_of_the_outcome(make_report, decisions):
    report = make_report()
    assert report.limit == pytest.approx(0.1 * report.rows["Y"].std(ddof=0))
    assert report.effects.moved_by == report.limit
    assert decisions.limit == 0.05


def test_typical_difference_is_that_of_two_values_drawn_as_they_occur(make_report):
    """E (Ŷ*_a′ − Ŷ*_a″)² = 2 VCF, here 2 · 0.25 · Var(A)."""
    report = make_report()
    assert report.typical == pytest.approx(math.sqrt(2 * report.audit.vcf.value))
    assert report.typical == pytest.approx(math.sqrt(2 * 0.25 * report.rows["A"].var()), rel=0.3)


def test_limit_below_the_floor_is_untold_unless_the_effect_is_clearly_above_it(make_report):
    """Two causal models of such rows disagree by the floor: less than that nobody can tell, much more everybody can."""
    audited = make_report(weight=0.5).audit
    effect = next(check.value for check in audited.conclusion.checks if check.asks == "effect")
    beyond, within = (
        dataclasses.replace(audited, floor=Floor(effect=abs(effect) * share, moved=1.0, rows=200))
        for share in (0.5, 1.5)
    )
    assert audited.conclusion.state == "fails"
    assert beyond.conclusion.state == "fails"
    assert within.conclusion.state == "cannot be told"
    assert "rows are needed" in within.conclusion.headline
    passing = make_report(weight=1e-3).audit
    floored = dataclasses.replace(passing, floor=Floor(effect=100.0, moved=1.0, rows=200))
    assert floored.conclusion.state == "passes"


def test_every_interval_keeps_to_the_limit_and_not_only_that_of_the_largest_effect(make_report):
    found = make_report(weight=1e-3).audit
    table = found.effects.table
    assert found.conclusion.state == "passes"
    wide = table.loc[[table["model"].eq("this model").idxmax()]].assign(second="another", effect=0.0)
    wide = wide.assign(effect_low=-2 * found.limit, effect_high=2 * found.limit)
    both = dataclasses.replace(found.effects, table=pd.concat([table, wide], ignore_index=True))
    other = dataclasses.replace(found, beside={})
    vars(other)["effects"] = both
    assert other.conclusion.state == "fails"
    assert "another" in next(check for check in other.conclusion.checks if check.asks == "effect").sentence
