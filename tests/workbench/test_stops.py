"""Candidates of a comparison as stops: their paths, their models, and what they enforce."""

import numpy as np
import pytest

from ciplearn import CIPRegressor, compare_routes
from ciplearn.workbench.stops import listed, load_stop, save_models
from tests.workbench.test_runs import GRAPH, rows


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    table, folder = rows(120), tmp_path_factory.mktemp("stops")
    network = CIPRegressor(graph=GRAPH, outcome="Y", protected=["A"], epochs=2, random_state=0)
    comparison = compare_routes(
        network, table.drop(columns="Y"), table["Y"], 0.9, gammas=(0.3, 1), shares=(0.5, 0.1), cv=2
    )
    stops = listed(comparison)
    save_models(comparison, stops, folder)
    return comparison, stops, folder


def test_every_route_is_a_path_of_growing_strength(compared):
    comparison, stops, _ = compared
    paths = {}
    for stop in stops:
        paths.setdefault((stop["path"], stop["along"]), []).append(stop["name"])
    assert [name for path in paths.values() for name in path] == comparison.table["name"].tolist()
    assert {along: len(names) for (_, along), names in paths.items()} == {
        "unconstrained": 1,
        "independence, gamma …": 2,
        "independence of the protected alone, gamma …": 2,
        "counterfactual, gamma …": 2,
        "line …": 2,
        "protected columns left out": 1,
        "CF1": 1,
        "CF2": 1,
    }
    assert [stop["along"] for stop in stops if stop["mixed"]] == ["line …"] * 2
    assert [stop["name"] for stop in stops if stop["baseline"]] == ["CF1", "CF2"]


def test_kept_models_say_what_the_compared_ones_say(compared):
    comparison, stops, folder = compared
    table = rows(30)
    kept = [stop for stop in stops if stop["model"] not in (None, "model")]
    assert len(kept) >= 8
    for stop in kept:
        expected = comparison.models[stop["name"]].predict(table)
        assert np.allclose(load_stop(folder, stop).predict(table), expected), stop["name"]
    assert [stop["name"] for stop in stops if stop["model"] == "model"] == [comparison.chosen]


def test_stop_that_enforces_a_weaker_statement_than_the_verdict_says_which(compared):
    _, stops, _ = compared
    assert {stop["along"] for stop in stops if stop["weaker"]} == {"independence of the protected alone, gamma …"}
    assert {stop["weaker"] for stop in stops} == {None, "Ŷ ⊥ {A} | {Z}"}
