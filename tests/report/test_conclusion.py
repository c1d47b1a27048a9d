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
    assert report.audit.limit == pytest.approx(0.1 * report.rows["Y"].std(ddof=0))
    assert report.effects.moved_by == report.audit.limit
    assert decisions.audit.limit == 0.05


def test_typical_difference_is_that_of_two_values_drawn_as_they_occur(make_report):
    """E (Ŷ*_a′ − Ŷ*_a″)² = 2 VCF, here 2 · 0.25 · Var(A)."""
    report = make_report()
    assert report.audit.typical == pytest.approx(math.sqrt(2 * report.audit.vcf.value))
    assert report.audit.typical == pytest.approx(math.sqrt(2 * 0.25 * report.rows["A"].var()), rel=0.3)


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
    least = within.unit.amount(within.floor.effect)
    assert within.conclusion.advice == f"Fit and audit on more rows, or allow more than {least}."
    passing = make_report(weight=1e-3).audit
    floored = dataclasses.replace(passing, floor=Floor(effect=100.0, moved=1.0, rows=200))
    assert floored.conclusion.state == "passes"


def test_the_interval_of_the_largest_effect_says_that_an_error_of_the_causal_model_comes_on_top(make_report):
    given = make_report(weight=0.5).audit
    estimated = dataclasses.replace(given, vcf=dataclasses.replace(given.vcf, model_based=True))
    known = dataclasses.replace(estimated, floor=Floor(effect=0.9, moved=1.0, rows=200))
    ends = [
        "; beyond it, the causal model itself may be wrong); at most",
        f" by about {given.unit.amount(0.9)}); at most",
    ]
    for audited, end in zip((estimated, known), ends, strict=True):
        assert end in audited.conclusion.checks[1].sentence
    assert "itself may be wrong" not in given.conclusion.checks[1].sentence


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


def test_headline_shows_its_figure_beside_the_limit_and_what_it_was_before(make_report):
    failing = make_report(weight=0.5)
    largest = failing.audit.effects.largest("this model")
    before = failing.audit.pair_before(largest, "effect")
    now, limit, was = (failing.audit.unit.amount(value) for value in (largest["effect"], failing.audit.limit, before))
    assert (
        f"by {'' if now.startswith('−') else '+'}{now} on average ({limit} is allowed, " in failing.conclusion.headline
    )
    assert failing.conclusion.headline.endswith(f"{was} before).")
    assert abs(before) == pytest.approx(2 * abs(largest["effect"]))
    alone = dataclasses.replace(failing.audit, beside={})
    vars(alone)["effects"] = failing.audit.effects
    assert alone.conclusion.headline.endswith(f"({limit} is allowed).")
    varies = make_report(limits=Limits(100.0, 0.005))
    typical, before = (varies.audit.unit.amount(value) for value in (varies.audit.typical, varies.audit.typical_before))
    assert f"typically by {typical}, up to " in varies.conclusion.headline
    assert varies.conclusion.headline.endswith(f"({varies.audit.unit.amount(0.1)} is allowed, {before} before).")


def test_without_pairs_of_values_the_headline_shows_the_limit_that_decides(make_report):
    found = make_report(weight=0.5, limits=Limits(100.0, 0.005)).audit
    amount, before = found.unit.amount, found.unit.amount(found.typical_before)
    vector = dataclasses.replace(found)
    vars(vector)["effects"] = None
    assert vector.conclusion.state == "fails"
    assert vector.conclusion.headline.endswith(f" by its interval ({amount(0.1)} is allowed, {before} before).")
    kept = dataclasses.replace(found, limits=Limits(100.0))
    vars(kept)["effects"] = None
    assert kept.conclusion.state == "passes"
    typical = f"typically by {amount(found.typical)} ({amount(100.0)} is allowed, {before} before)"
    assert typical in kept.conclusion.headline


def test_points_are_allowed_and_a_number_is(make_report, decisions):
    for found, said in ((decisions.conclusion, "5.0 points are allowed"), (make_report().conclusion, " is allowed")):
        assert said in found.headline
        assert said in next(check for check in found.checks if check.asks == "effect").sentence


def test_interval_that_alone_is_too_wide_is_shown(make_report):
    found = make_report(weight=1e-3).audit
    pairs = found.effects.table
    wide = pairs.assign(effect_high=np.where(pairs["model"] == "this model", 3 * found.limit, pairs["effect_high"]))
    other = dataclasses.replace(found)
    vars(other)["effects"] = dataclasses.replace(found.effects, table=wide)
    assert other.conclusion.state == "fails"
    assert f"up to +{found.unit.amount(3 * found.limit)} by its interval; " in other.conclusion.headline


def test_who_does_not_pass_is_told_what_to_do(make_report):
    passing, failing = make_report(weight=1e-3), make_report(weight=0.5)
    assert passing.conclusion.advice == ""
    assert failing.conclusion.advice in failing.summary()
    assert failing.conclusion.advice in failing.to_html()
    assert failing.conclusion.advice not in make_report(weight=0.5, remedy="Nothing useful passes.").to_html()


def test_limit_of_the_fit_counts_unless_another_is_named(make_report):
    asked = {"probability": False, "deviation": 20.0}
    assert Limits().effect(**asked) == 2.0
    assert Limits(of_fit=1.7).effect(**asked) == 1.7
    assert Limits(max_effect=3.0, of_fit=1.7).effect(**asked) == 3.0
    assert "These are the limits of the fit" in make_report(limits=Limits(of_fit=1.7)).to_html()
    assert "set by whoever asked" in make_report(limits=Limits(max_effect=3.0, of_fit=1.7)).to_html()
