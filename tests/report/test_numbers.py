"""The numbers of the page, recomputed from the JSON of the same report, agree."""

import json
import math

import pytest

from ciplearn.evaluation.scores import Unit, decimal, percent, short
from tests.report.html_tables import tables_of


@pytest.fixture(scope="module")
def both(decisions):
    content = json.loads(json.dumps(decisions.to_dict(), allow_nan=False))
    return content, decisions.to_html(), decisions.to_html("bias-audit"), decisions.to_html("model-card")


POINTS = Unit(probability=True)


def test_paired_effects_of_the_page_are_those_of_the_json(both):
    content, page, *_ = both
    rows = tables_of(page)["effects"]
    shown = {(row[0][0], row[1][0]): row for row in rows if len(row) == 7 and "=" in row[0][0]}
    pairs = content["effects"]["pairs"]
    now = [pair for pair in pairs if pair["model"] == "this model"]
    before = {(pair["first"], pair["second"]): pair for pair in pairs if pair["model"] == "unconstrained"}
    assert len(shown) == len(now) == len(before)
    for pair in now:
        key = pair["first"], pair["second"]
        cells = shown[key]
        assert cells[0][1] == f"{pair['n_first']} rows"
        assert cells[2] == [
            POINTS.bare(pair["effect"]),
            POINTS.between(pair["effect_low"], pair["effect_high"]),
            f"before {POINTS.bare(before[key]['effect'])}",
        ]
        for cell, name in zip(cells[4:], ("moved", "flips", "flips_at_equal_rate"), strict=True):
            assert cell == [
                percent(pair[name]),
                f"{percent(pair[f'{name}_low'])} to {percent(pair[f'{name}_high'])}",
                f"before {percent(before[key][name])}",
            ]


def test_front_shows_the_largest_effect_of_each_kind_and_the_groups_that_are_furthest_off(both):
    content, page, *_ = both
    tables = tables_of(page)
    now = [pair for pair in content["effects"]["pairs"] if pair["model"] == "this model"]
    largest = {}
    for pair in sorted(now, key=lambda pair: abs(pair["effect"])):
        largest[pair["variable"]] = pair
    front = [row for row in tables["effects"] if len(row) == 5 and "=" in "".join(row[0])]
    assert {(row[0][0], row[1][0], row[2][0], row[4][0]) for row in front} == {
        (pair["first"], pair["second"], POINTS.bare(pair["effect"]), percent(pair["moved"]))
        for pair in largest.values()
    }
    single = [one for one in content["groups"] if one["model"] == "this model" and "×" not in one["columns"]]
    worst = sorted(single, key=lambda one: -abs(one["calibration"]))[:4]
    assert [(row[0][0], row[2][0]) for row in tables["front groups"] if len(row) == 5][1:] == [
        (f"{one['columns']}: {one['group']}", POINTS.bare(one["calibration"]))
        for one in sorted(worst, key=lambda one: one["calibration"])
    ]


def test_groups_of_the_page_are_those_of_the_json_and_ratios_are_rates_over_the_highest(both):
    content, page, *_ = both
    rows = [row for row in tables_of(page)["groups"] if len(row) == 10 and row[2] and "%" in row[2][0]]
    now = [group for group in content["groups"] if group["model"] == "this model"]
    assert len(rows) == len(now)
    for row, group in zip(rows, now, strict=True):
        highest = max(one["positive_rate"] for one in now if one["columns"] == group["columns"])
        assert row[0][0] == group["group"]
        assert row[1][0].rstrip("*") == str(group["n_rows"])
        assert row[2][0] == percent(group["positive_rate"])
        assert row[4][0] == decimal(group["positive_rate"] / highest, 2)
        assert [row[place][0] for place in (6, 7)] == [percent(group[name]) for name in ("fpr", "fnr")]
        assert row[8][0] == POINTS.bare(group["calibration"])
        assert row[9][0] == percent(group["error"])


def test_conclusion_follows_from_the_json(both):
    content, page, *_ = both
    largest = max(
        (pair for pair in content["effects"]["pairs"] if pair["model"] == "this model"),
        key=lambda pair: abs(pair["effect"]),
    )
    holds = {check["name"]: check["holds"] for check in content["conclusion"]["checks"]}
    end = max(abs(largest["effect_low"]), abs(largest["effect_high"]))
    assert holds["Largest effect:"] == (end <= content["limit"])
    assert f'<div class="value">{POINTS.amount(largest["effect"], signed=True)}</div>' in page
    assert content["typical"] == pytest.approx(math.sqrt(2 * content["vcf"]["value"]), rel=1e-12)
    assert f'<div class="value">{POINTS.amount(content["typical"])}</div>' in page
    assert f'<div class="value">{percent(largest["flips"])}</div>' in page
    assert f'<div class="value">{percent(content["scores"]["accuracy"])}</div>' in page
    assert f'<div class="value">{decimal(content["scores"]["auc"], 2)}</div>' in page
    assert f"before {decimal(content['before']['scores']['auc'], 2)}" in page


def test_candidates_of_the_page_are_those_of_the_json(make_report):
    report = make_report()
    content = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    rows = tables_of(report.to_html())["candidates"][1:]
    assert len(rows) == len(content["candidates"]) == 4
    for row, one in zip(rows, content["candidates"], strict=True):
        assert row[0][0].removesuffix(" (chosen)") == one["name"]
        assert row[0][0].endswith("(chosen)") == one["chosen"]
        assert row[1][0] == report.unit.amount(math.sqrt(2 * one["vcf"]))
        assert [row[2][0], row[3][0]] == [short(one["vcf"]), short(one["loss"])]


def test_individuals_of_the_page_are_those_of_the_json(both):
    content, page, *_ = both
    rows = [row for row in tables_of(page)["individuals"] if len(row) == 3 and row[0]]
    answers = [answer for one in content["individuals"] for answer in one["answers"]]
    assert len(rows) == len(answers)
    for row, answer in zip(rows, answers, strict=True):
        wanted = [answer["world"], percent(answer["this model"]), percent(answer["unconstrained"])]
        assert [cell[0] for cell in row] == wanted


def test_same_quantity_is_the_same_number_on_the_model_card(both):
    content, page, _, card = both
    for said in (POINTS.amount(content["typical"]), percent(content["scores"]["accuracy"])):
        assert said in page
        assert said in card
