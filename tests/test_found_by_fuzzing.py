"""Arguments that once ended in a traceback or without an end, one of each kind: one sentence refuses them."""

import numpy as np
import pandas as pd
import pytest
import torch

from tests.hostile import COLUMNS
from tests.public_calls import CALLS, EVENTS, TABLE, X
from tests.test_fuzz import good, refusal_of  # noqa: F401


def filled(table, name, what):
    return table.assign(**{name: pd.Series(COLUMNS[what](len(table)), index=table.index)})


FOUND = [
    ("CIPRegressor", {"gamma_scale": np.zeros(0)}, "gamma_scale must be a number"),
    ("CIPRegressor", {"early_stopping": torch.ones(3)}, "early_stopping must be True or False"),
    ("CIPRegressor", {"mixed_precision": pd.NA}, "mixed_precision must be True or False"),
    ("CIPRegressor", {"invariant_path": pd.Series([1, 2])}, "invariant_path must be True or False"),
    ("CIPRegressor", {"epochs": 10**19}, "epochs must be at most"),
    ("CIPRegressor", {"epochs": 10**400}, "epochs must be at most"),
    ("CIPRegressor", {"gamma": 10**400}, "gamma must be finite"),
    ("CIPRegressor", {"weight_decay": 1e300}, "weight_decay must be at most"),
    ("CIPRegressor", {"learning_rate": 1e300}, "learning_rate must be at most"),
    ("CIPRegressor", {"checkpoint": "x" * 300}, "cannot name a checkpoint"),
    ("CIPRegressor", {"hidden": np.array(3.0)}, "hidden must be a sequence of widths"),
    ("CIPRegressor", {"inputs": np.array(3.0)}, "inputs"),
    ("CF1", {"early_stopping": np.zeros(0)}, "early_stopping must be True or False"),
    ("GammaSearch", {"refit": pd.NA}, "refit must be True or False"),
    ("GammaSearch", {"X": "S", "y": "S"}, "X and y cannot be split"),
    ("GammaSearch", {"X": {1: 2}, "y": {1: 2}}, "X and y cannot be split"),
    ("compare_routes", {"baselines": np.zeros(0)}, "baselines must be True or False"),
    ("compare_routes", {"gammas": []}, "The independence route has nothing to try"),
    ("compare_routes", {"shares": []}, "The line route has nothing to try"),
    ("group_scores", {"crossings": np.zeros(2)}, "crossings must be True or False"),
    ("paired_effects", {"crossings": "no"}, "crossings must be True or False"),
    ("Gaussian", {"average": np.zeros(2)}, "average must be True or False"),
    ("Linear", {"average": np.zeros(2)}, "average must be True or False"),
    ("HSCIC", {"centre": pd.NA}, "centre must be True or False"),
    ("Veitch", {"direction": np.zeros(0)}, "direction must be one of"),
    ("Augmented", {"copies": 10**19}, "copies must be at most"),
    ("PSCF", {"n_draws": 10**19}, "n_draws must be at most"),
    ("PSCF", {"n_latents": 10**19}, "n_latents must be at most"),
    ("InvariantDirections", {"tolerance": 1e300}, "tolerance must be at most 1"),
    ("independence_test", {"n_bootstrap": 10**19}, "n_bootstrap must be at most"),
    ("criterion", {"protected": np.array("A")}, "protected must be a name or a list"),
    ("from_edges", {"directed": np.array("A")}, "directed must be text or pairs"),
    ("from_edges", {"directed": torch.ones(3)}, "edge must be a pair of names"),
    ("load_adult", {"path": "x" * 300}, "does not hold the Adult data"),
    ("load_adult", {"allow_download": np.zeros(0)}, "allow_download must be True or False"),
    ("counterfactual_bounds", {"probabilities": filled(EVENTS, "A", "lists")}, "holds lists"),
    ("vcf_bounds", {"table": filled(TABLE, "A", "dictionaries")}, "holds lists or the like"),
    ("vcf_bounds", {"table": filled(TABLE, "L", "huge")}, "no variance that a computer holds"),
    ("variance_of_counterfactuals", {"rows": filled(TABLE, "L", "huge")}, "no variance that a computer holds"),
    ("group_scores", {"rows": TABLE.rename(columns={"S": 0}), "inputs": "S"}, "not among the columns 0, A, L"),
    ("group_scores", {"rows": filled(TABLE, "Y", "infinite")}, "The outcome 'Y' is as large as inf"),
    ("variance_of_counterfactuals", {"model": object}, "is the class object"),
    ("variance_of_counterfactuals", {"inputs": []}, "inputs must name columns"),
    ("variance_of_counterfactuals", {"inputs": np.zeros((3, 2))}, "inputs must be names"),
    ("variance_of_counterfactuals", {"interventions": np.zeros((3, 2))}, "A must be a label per row"),
    (
        "variance_of_counterfactuals",
        {"reference": filled(TABLE, "A", "whole")},
        "reference holds numbers in the column 'A'",
    ),
]


@pytest.mark.parametrize(
    ("name", "wrong", "words"), FOUND, ids=[f"{name} {next(iter(wrong))}" for name, wrong, _ in FOUND]
)
def test_what_was_found_once_is_refused(name, wrong, words, good):  # noqa: F811
    assert words in refusal_of(name, {**CALLS[name][1], **wrong}, good)


ANSWERED = [
    ("ResidualHSCIC", {"ridge": 1e300}),
    ("variance_of_counterfactuals", {"inputs": ["A", "A"], "model": lambda rows: (rows["A"] == "x") * 1.0}),
    ("hidden_confounding", {"table": filled(TABLE, "L", "decimals")}),
    ("group_scores", {"rows": filled(TABLE, "L", "far off"), "groups": ["L"]}),
    ("group_scores", {"rows": filled(TABLE, "L", "tiny"), "groups": ["L"]}),
    ("CIPRegressor", {"X": X, "early_stopping": np.True_}),
]


@pytest.mark.parametrize(("name", "odd"), ANSWERED, ids=[f"{name} {next(iter(odd))}" for name, odd in ANSWERED])
def test_what_is_odd_but_clear_is_answered(name, odd, good):  # noqa: F811
    assert refusal_of(name, {**CALLS[name][1], **odd}, good) == ""
