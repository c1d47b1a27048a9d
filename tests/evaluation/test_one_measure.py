"""One question has one answer: whatever a model enforces, and whoever asks."""

import numpy as np
import pytest
from scipy.stats import norm

from ciplearn import (
    CausalGraph,
    CIPRegressor,
    Independence,
    StructuralCausalModel,
    audit,
    load_model,
    save_model,
    variance_of_counterfactuals,
)
from ciplearn.scm import Additive


@pytest.fixture(scope="module")
def world():
    """A acts on X, which depends on S too: predictions from X depend on A."""
    graph = CausalGraph.from_edges("S -> A, S -> X, A -> X, X -> Y, S -> Y")
    return StructuralCausalModel(
        graph,
        {
            "S": Additive(),
            "A": Additive(lambda p: 0.5 * p["S"]),
            "X": Additive(lambda p: p["A"] + p["S"]),
            "Y": Additive(lambda p: p["X"] + p["S"]),
        },
        dict.fromkeys("SAXY", norm()),
    )


@pytest.fixture(scope="module")
def rows(world):
    return world.sample(300, random_state=0)


def fitted(world, rows, **settings):
    model = CIPRegressor(graph=world.graph, outcome="Y", protected=["A"], epochs=3, random_state=0, **settings)
    return model.fit(rows.drop(columns="Y"), rows["Y"])


def test_model_that_enforces_a_weaker_statement_is_asked_the_same_question(world, rows, tmp_path):
    weaker = Independence(right=["A"], given=["S"])
    model = fitted(world, rows, independence=weaker, gamma=0.01)
    save_model(model, tmp_path / "m")
    effort = {"n_points": 100, "n_interventions": 30}
    answers = [audit(one, world, rows, **effort) for one in (model, load_model(tmp_path / "m"))]
    asked = variance_of_counterfactuals(model, world, rows.drop(columns="Y"), ["A"], 100, 30)
    for answer in answers:
        assert answer.vcf.whole_row or set(answer.vcf.context) == {"S", "A", "X"}
        assert answer.vcf.value == pytest.approx(asked.value, rel=0.2)
        assert answer.statement == weaker
        assert answer.enforced
        assert answer.weaker
        assert answer.verdict.independence != weaker


def test_statement_that_nobody_enforces_is_not_called_enforced(world, rows):
    free = fitted(world, rows, gamma=0)
    answer = audit(free, world, rows, n_points=50, n_interventions=20)
    assert not answer.enforced
    assert not answer.weaker
    assert answer.statement == answer.verdict.independence


def test_vcf_where_there_are_data_is_no_multiple_of_the_whole_where_every_value_is_listed():
    """With all imagined rows inside the data, VCF inside them is VCF."""
    world = StructuralCausalModel(
        CausalGraph.from_edges("G -> X"),
        {"G": lambda p, u: np.where(u > 0, 1.0, 0.0), "X": lambda p, u: 0.1 * p["G"] + u},
        {"G": norm(), "X": norm()},
    )
    rows = world.sample(2000, random_state=0)
    found = variance_of_counterfactuals(lambda frame: frame["X"], world, rows, ["G"], n_points=500)
    assert found.overlap.share_outside < 0.05
    assert found.overlap.vcf_inside == pytest.approx(found.value, rel=0.05)


def test_before_stands_beside_every_headline(world, rows):
    models = {name: fitted(world, rows, gamma=gamma) for name, gamma in (("now", 1.0), ("before", 0.0))}
    answer = audit(models["now"], world, rows, n_points=60, n_interventions=20, beside={"free": models["before"]})
    alone = audit(models["before"], world, rows, n_points=60, n_interventions=20)
    said = answer.to_dict()
    assert said["before"]["vcf"]["value"] == pytest.approx(alone.vcf.value, rel=1e-6)
    assert all(check["before"] is not None for check in said["conclusion"]["checks"])
