import inspect
import json
import struct
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.linear_model import LinearRegression

from ciplearn import CausalGraph, fit_scm
from ciplearn._core.errors import InputError
from ciplearn.scm import EstimatedModel, Mechanism, MonotoneFlow, Multinomial, VariationalLatent
from ciplearn.scm.estimated_model import read_parts, write_parts
from ciplearn.scm.kinds import KEPT, kept
from ciplearn.scm.mechanism import MechanismRecipe
from tests.scm import models


def same_after_a_round_trip(model, rows, action, path):
    model.save(path)
    again = EstimatedModel.load(path)
    pd.testing.assert_frame_equal(again.sample(30, random_state=0), model.sample(30, random_state=0))
    pd.testing.assert_frame_equal(
        again.counterfactual(rows, action, random_state=1), model.counterfactual(rows, action, random_state=1)
    )
    assert str(again.report) == str(model.report)
    assert again.misfits == model.misfits
    assert again.graph == model.graph
    return again


def test_numbers_labels_vectors_counts_and_scales_come_back(tmp_path):
    rows = models.labels().sample(400, random_state=0)
    generator = np.random.default_rng(0)
    rows["N"] = generator.poisson(np.exp(rows["A"] / 2)).astype(float)
    rows["P"] = np.exp(rows["A"] + generator.normal(size=400))
    rows["F"] = rows["A"] > generator.normal(size=400)
    rows["R"] = np.where(generator.uniform(size=400) < 0.8, "often", "seldom")
    graph = CausalGraph.from_edges(
        "A -> job, A -> V, job -> V, V -> Y, job -> Y, A -> N, A -> P, A -> F, F -> Y, R -> Y"
    )
    model = fit_scm(graph, rows)
    assert {"quantiles", "log scale, additive noise"} <= {fit.mechanism for fit in model.report.nodes}
    again = same_after_a_round_trip(model, rows, {"A": 0.5}, tmp_path / "model.safetensors")
    assert again.variants("N") == {}


def test_latent_nodes_flows_and_joint_roots_come_back(tmp_path):
    pytest.importorskip("zuko")
    generator = np.random.default_rng(0)
    a, h = generator.normal(size=(2, 200))
    rows = pd.DataFrame({"A": a, "B": a + h, "X": a + h, "T": np.where(h > 0, "x", "y"), "Y": a + h**2})
    graph = CausalGraph.from_edges("A -> X, A -> T, H -> X, H -> T, X -> Y", latent=["H"], bidirected=[("A", "B")])
    recipes = {"H": VariationalLatent(epochs=2), "Y": MonotoneFlow(epochs=2)}
    again = same_after_a_round_trip(fit_scm(graph, rows, recipes), rows, {"A": 0.5}, tmp_path / "model.safetensors")
    assert again.graph.latent == graph.latent


def concrete(base):
    """All classes of the library below one that can be made."""
    below = [one for child in base.__subclasses__() for one in (child, *concrete(child))]
    return [one for one in below if one.__module__.startswith("ciplearn.") and not inspect.isabstract(one)]


@pytest.mark.parametrize("mechanism", concrete(Mechanism))
def test_every_mechanism_is_registered_or_known_to_be_code(mechanism):
    # A user's functions, models of another library, and known mechanisms in other units.
    code = {"EquationMechanism", "_DowhyMechanism", "_ScaledLatent", "_ScaledMechanism"}
    assert (KEPT.get(mechanism.__name__) is mechanism) != (mechanism.__name__ in code)


@pytest.mark.parametrize("recipe", concrete(MechanismRecipe))
def test_every_recipe_makes_a_mechanism_that_comes_back(recipe, tmp_path):
    if recipe is MonotoneFlow:
        pytest.importorskip("zuko")
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"A": draw.normal(size=80)})
    rows["V"] = np.where(rows["A"] > draw.normal(size=80), "x", "y") if recipe is Multinomial else rows["A"] ** 2
    made = {"V": recipe(epochs=1) if recipe is MonotoneFlow else recipe()}
    model = fit_scm(CausalGraph.from_edges("A -> V"), rows, made)
    same_after_a_round_trip(model, rows, {"A": 0.5}, tmp_path / "model.safetensors")


def test_one_line_registers_a_mechanism(tmp_path):
    model = fit_scm(CausalGraph.from_edges("A -> V"), pd.DataFrame({"A": np.arange(30.0), "V": np.arange(30.0)}))
    plain = model.replaced({"V": Doubled(2.0)})
    with pytest.raises(InputError, match="mechanism of V holds a Doubled"):
        plain.save(tmp_path / "model.safetensors")
    try:
        kept(Doubled)
        plain.save(tmp_path / "model.safetensors")
        assert EstimatedModel.load(tmp_path / "model.safetensors").mechanisms["V"] == Doubled(2.0)
    finally:
        KEPT.pop("Doubled", None)


@dataclass(frozen=True)
class Doubled(Mechanism):
    """V = factor · A + U."""

    factor: float

    def draw(self, n, generator):
        return generator.normal(size=n)

    def evaluate(self, parents, noise):
        return self.factor * parents["A"] + noise

    def recover(self, parents, value):
        return value - self.factor * parents["A"]


def test_foreign_parts_are_refused_and_nothing_is_left_behind(tmp_path):
    rows = models.chain().sample(100, random_state=0)
    with pytest.raises(InputError, match="mechanism of L holds a RegressorMoments"):
        fit_scm(models.CHAIN, rows, {"L": LinearRegression()}).save(tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_the_seed_comes_back_and_ties_that_were_not_kept_are_refused(tmp_path):
    generator = np.random.default_rng(0)
    a = generator.normal(size=60)
    rows = pd.DataFrame({"A": a, "L": (1 + np.abs(a) / 2) * generator.standard_t(3, size=60) + (a > 0)})
    model = fit_scm(CausalGraph.from_edges("A -> L"), rows, random_state=7)
    assert len(model.ties(["A", "L"])) == 1
    model.save(tmp_path / "model.safetensors")
    again = EstimatedModel.load(tmp_path / "model.safetensors")
    assert again.seed == model.seed != 0
    fitted = fit_scm(model.graph, rows, random_state=None, like=again)
    pd.testing.assert_frame_equal(fitted.sample(9, random_state=0), model.sample(9, random_state=0))
    assert again.ties(["A"]) == ()
    with pytest.raises(InputError, match=r"mechanism of L .* was not kept; fit the model anew with fit_scm"):
        again.ties(["A", "L"])


def test_a_file_without_a_seed_is_still_read(tmp_path):
    model = fit_scm(models.CHAIN, models.chain().sample(100, random_state=0), random_state=0)
    path = tmp_path / "model.safetensors"
    model.save(path)
    parts = read_parts(path)
    del parts["seed"]
    write_parts(parts, path)
    again = EstimatedModel.load(path)
    pd.testing.assert_frame_equal(again.sample(9, random_state=0), model.sample(9, random_state=0))


def test_a_file_with_an_entry_of_another_kind_is_refused_when_it_is_read(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["A", "B"])
    path = tmp_path / "model.safetensors"
    fit_scm(CausalGraph.from_edges("A -> B"), table).save(path)
    whole = path.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + length])

    def outcome_of(content):
        text = json.dumps({**header, "__metadata__": {**header["__metadata__"], "ciplearn.scm": json.dumps(content)}})
        path.write_bytes(struct.pack("<Q", len(text)) + text.encode() + whole[8 + length :])
        try:
            return EstimatedModel.load(path).sample(3, random_state=0).shape
        except InputError as error:
            return str(error)

    content = json.loads(header["__metadata__"]["ciplearn.scm"])
    assert outcome_of(content) == (3, 2)
    refused = [
        outcome_of({name: part for name, part in content.items() if name != gone}) for gone in ("edges", "nodes")
    ]
    for place in range(2):
        for wrong in (None, [1], "x", {}):
            changed = json.loads(json.dumps(content))
            fields = changed["mechanisms"]["mapping"][place][1]["fields"]
            for name in fields:
                kept, fields[name] = fields[name], wrong
                refused.append(outcome_of(changed))
                fields[name] = kept
    assert sum("is damaged" in str(one) for one in refused) > len(refused) // 2
    assert all(one == (3, 2) or ("\n" not in one and len(one) < 500) for one in refused)


def test_a_file_that_is_none_of_ours_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(InputError, match="cannot be read"):
        EstimatedModel.load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="cannot be read"):
        EstimatedModel.load(path)
    for header, words in (
        ({"__metadata__": {"format": "1"}}, "holds no causal model"),
        (
            {"__metadata__": {"format": "1", "ciplearn.scm": '{"mechanisms": {"class": "Popen", "fields": {}}}'}},
            "damaged",
        ),
    ):
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text)
        with pytest.raises(InputError, match=words):
            EstimatedModel.load(path)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_a_model_of_any_scale_is_read_and_numbers_that_no_training_leaves_are_refused(size, tmp_path):
    generator = np.random.default_rng(0)
    a = generator.normal(size=200)
    table = pd.DataFrame({"A": a, "B": np.sin(a) + generator.normal(size=200) / 10}) * size
    path = tmp_path / "model.safetensors"
    model = fit_scm(CausalGraph.from_edges("A -> B"), table)
    model.save(path)
    assert EstimatedModel.load(path).sample(9, random_state=0).equals(model.sample(9, random_state=0))
    with safe_open(str(path), framework="numpy") as stream:
        header, arrays = stream.metadata(), {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    name = next(name for name, array in arrays.items() if array.dtype.kind == "f" and array.size)
    arrays[name].flat[0] = -1e200
    save_file(arrays, path, metadata=header)
    with pytest.raises(InputError, match="is damaged: it holds numbers beyond"):
        EstimatedModel.load(path)
