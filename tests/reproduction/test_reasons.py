"""Reasons for printed numbers, against definitions and cases whose answer is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from ciplearn.datasets import scenario_1
from ciplearn.experiments.speed import literal_hscic
from reproduction import reasons
from reproduction.cases import Case
from reproduction.runner import reproduce

SMALL = reasons.ReasonSettings(rows=400, samples=2, slow_samples=1)


def test_every_reason_is_tried_and_shown(tmp_path):
    study = replace(reasons.STUDY, presets={"quick": SMALL})
    result = reproduce(study, "quick", tmp_path, device="cpu")
    rows = result["comparisons"][0]["rows"]
    assert {row["explains it"] for row in rows} <= {"could", "no"}
    assert {row["samples"] for row in rows} == {"1", "2"}
    assert sum("VCF at γ = 0.001, scenario 2" in row["number, × 10³"] for row in rows) == 4
    assert result["figure"] == ""


@pytest.mark.parametrize(
    ("printed", "values", "said"), [("5", [4, 6], "could"), ("5", [1, 4], "no"), ("5 ± 1", [1, 3.5], "could")]
)
def test_a_number_is_explained_where_it_meets_what_comes_out(printed, values, said):
    table = pd.DataFrame({"number": "MSE", "printed": printed, "reason": "another sample", "value": values})
    shown = reasons.judge({"reasons": table}, SMALL).comparisons[0].table
    assert shown["explains it"].tolist() == [said]


def test_the_squared_norm_is_the_literal_one_and_the_printed_formula_its_own():
    case = Case.draw(scenario_1(), 250, 0)
    right, wrong = reasons._hscic_of_outcome(case)
    y, r, s = (torch.tensor(case.test[names].to_numpy()) for names in (["Y"], ["A", "L"], ["Z"]))
    assert right == pytest.approx(float(literal_hscic(y, r, s, lengthscale=0.1, ridge=0.01)), rel=1e-8)

    def gram(part):
        distance = np.square(part.numpy()[:, None] - part.numpy()[None]).mean(axis=2)
        return np.exp(-distance / (2 * 0.1**2))

    k_y, k_r, k_s = gram(y), gram(r), gram(s)
    total = 0.0
    for i in range(len(y)):
        w = np.linalg.solve(k_s + 0.01 * len(y) * np.eye(len(y)), k_s[:, i])
        total += w @ (k_y * k_r) @ w - 2 * (w @ k_y @ w) * (w @ k_r @ w) + (w @ k_y @ w) * (w @ k_r @ w)
    assert wrong == pytest.approx(total / len(y), rel=1e-8)


def test_what_z_leaves_of_the_outcome_is_its_noise():
    generator = np.random.default_rng(0)
    z, noise = generator.uniform(size=5000), generator.standard_normal(5000)
    raw = pd.DataFrame({"Z": z, "Y": np.sin(6 * z) + 0.5 * noise})
    assert reasons._left_by_z(raw) * np.ptp(raw["Y"]) ** 2 == pytest.approx(0.25, rel=0.05)
