"""PSCF: latents that do not tell A, and rows corrected along unfair paths."""

import numpy as np
import pandas as pd
import pytest
import torch

from ciplearn import HSIC, MMD, CausalGraph, Gaussian, baselines, variance_of_counterfactuals
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError
from ciplearn.baselines.pscf import LatentNode, latent_penalty
from tests.baselines.models import groups


@pytest.fixture(scope="module")
def model():
    return groups()


@pytest.fixture(scope="module")
def rows(model):
    return model.sample(800, random_state=0)


def fitted(model, rows, **more):
    settings = {"epochs": 40, "learning_rate": 1e-2, "batch_size": 128, "n_draws": 10, "random_state": 0, **more}
    predictor = baselines.PSCF(graph=model.graph, outcome="Y", protected=["A"], **settings)
    return predictor.fit(rows.drop(columns="Y"), rows["Y"])


def vcf(predictor, model, rows):
    return variance_of_counterfactuals(predictor, model, rows, protected=["A"], n_points=40, n_interventions=30).value


@pytest.fixture(scope="module")
def fair(model, rows):
    torch.set_num_threads(1)
    return fitted(model, rows)


def test_all_paths_closed_leave_little_variation_and_the_row_s_own_part(fair, model, rows):
    naive = baselines.NaivePredictor(protected=["A"], epochs=40, learning_rate=1e-2, random_state=0)
    naive.fit(rows.drop(columns="Y"), rows["Y"])
    assert vcf(fair, model, rows) < 0.02 * vcf(naive, model, rows)
    # What Y would be with A = 0, its commonest value.
    had_been = model.counterfactual(rows, {"A": 0.0})["Y"]
    assert np.corrcoef(fair.predict(rows), had_been)[0, 1] > 0.9
    # Beside 2C that is the noise of M and of D, which latents carry over.
    said, own = (
        part - np.polyval(np.polyfit(rows["C"], part, 3), rows["C"]) for part in (fair.predict(rows), had_been)
    )
    assert np.mean((said - own) ** 2) < 0.2 * np.mean(own**2)


def test_fair_paths_stay_open(fair, model, rows):
    only_direct = fitted(model, rows, unfair_edges=[("A", "Y")])
    assert only_direct.fair_rows_.corrections == ()
    assert vcf(only_direct, model, rows) > 10 * vcf(fair, model, rows)
    through_m = fitted(model, rows, unfair_edges=[("A", "M")], epochs=2)
    (correction,) = through_m.fair_rows_.corrections
    places = through_m.encoding_.places
    assert correction.places == places(["M"])
    assert correction.replaced == places(["A"])
    # A -> Y is fair: the predictor reads A itself.
    assert through_m.fair_rows_.fixed == []
    before = through_m._encoded(rows)
    (draw, *_) = through_m.fair_rows_.draws(before, 1)
    assert torch.equal(draw[:, places(["A", "C", "D"])], before[:, places(["A", "C", "D"])].double())
    assert not torch.equal(draw[:, places(["M"])], before[:, places(["M"])].double())


def naive_mmd(latent, group):
    """Squared distance of mean embeddings, each mean over its own group, from the definition."""
    gram = np.exp(-((latent[:, None] - latent[None]) ** 2).mean(axis=2) / 2)
    first, second = (gram[np.ix_(group == a, group == b)].mean() for a, b in ((0, 0), (1, 1)))
    return first + second - 2 * gram[np.ix_(group == 0, group == 1)].mean()


def test_discrepancy_is_zero_for_equal_laws_in_groups_of_unequal_size():
    generator = np.random.default_rng(0)
    law = generator.standard_normal((20, 3))
    latent, group = np.concatenate([law, law, law, law]), np.repeat([0, 1, 1, 1], 20)
    table = pd.DataFrame({"A": group})
    penalty = latent_penalty(table, TableEncoding.of(table, ("A",)))
    assert isinstance(penalty, MMD)
    value = float(penalty(torch.from_numpy(latent), torch.from_numpy(group)))
    assert abs(value) < 1e-12
    shifted = latent + group[:, None]
    np.testing.assert_allclose(
        float(penalty(torch.from_numpy(shifted), torch.from_numpy(group))), naive_mmd(shifted, group), rtol=1e-10
    )
    # The published code averages over the whole batch: not zero for equal laws.
    gram = np.exp(-((latent[:, None] - latent[None]) ** 2).mean(axis=2) / 2)
    weights = np.where(group == 0, 1, -1) / len(group)
    assert weights @ gram @ weights > 0.01


def test_a_without_groups_takes_hsic():
    table = pd.DataFrame({"age": np.arange(100.0), "sex": ["f", "m"] * 50})
    assert isinstance(latent_penalty(table, TableEncoding.of(table, ("age", "sex"))), HSIC)
    assert isinstance(latent_penalty(table, TableEncoding.of(table, ("sex",))), MMD)


def test_penalty_makes_the_latents_tell_less_of_a(model, rows):
    right = torch.from_numpy(rows["A"].to_numpy(copy=True))
    told = {}
    for gamma in (0.0, 30.0):
        predictor = fitted(model, rows, gamma=gamma, divergence_weight=0.01, epochs=10)
        encoded, generator = predictor._encoded(rows).double(), torch.Generator().manual_seed(0)
        told[gamma] = 0.0
        for part in predictor.fair_rows_.corrections:
            mean, scale = part.posterior(encoded)
            drawn = mean + scale * torch.randn(scale.shape, generator=generator, dtype=torch.float64)
            told[gamma] += float(MMD(Gaussian(1.0))(drawn, right))
    assert told[30.0] < 0.5 * told[0.0]


def test_evidence_bound_is_the_one_of_the_definition():
    encoding = TableEncoding.of(pd.DataFrame({"age": [0.0, 1.0, 2.0], "job": ["a", "b", "c"]}), ["age", "job"])
    node = LatentNode(1, 2, 4, 1.0, encoding, torch.Generator()).double().eval()
    causes, number = torch.rand(5, 1).double(), torch.rand(5, 1).double()
    level = torch.tensor([0, 2, 1, 1, 0])
    value = torch.cat([number, torch.eye(3).double()[level]], dim=1)
    found = node(causes, value)
    mean, scale = node.posterior(causes, value)
    output = node.decoder(torch.cat([causes, mean], dim=1))
    prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    divergence = torch.distributions.kl_divergence(torch.distributions.Normal(mean, scale), prior).sum(1)
    gaussian = torch.distributions.Normal(output[:, 0], node.log_scale[0].exp()).log_prob(number[:, 0])
    gaussian = gaussian + 0.5 * np.log(2 * np.pi)  # a constant that the bound leaves out
    levels = torch.distributions.Categorical(logits=output[:, 1:]).log_prob(level)
    torch.testing.assert_close(found[:, 0], divergence - gaussian - levels)
    torch.testing.assert_close(found[:, 1:], mean)


def test_draws_of_the_latent_are_its_own():
    encoding = TableEncoding.of(pd.DataFrame({"V": [0.0, 1.0]}), ["V"])
    node = LatentNode(1, 2, 4, 1.0, encoding, torch.Generator().manual_seed(0))
    causes = value = torch.rand(5, 1, generator=torch.Generator().manual_seed(0))
    before = torch.get_rng_state()
    said = []
    for seed in (0, 0, 1):
        node.draws = torch.Generator().manual_seed(seed)
        said.append(node(causes, value))
    assert torch.equal(said[0], said[1])
    assert not torch.equal(said[0], said[2])
    assert torch.equal(torch.get_rng_state(), before)


def mixed(n=200):
    generator = np.random.default_rng(0)
    sex, age = generator.choice(["f", "m"], n), generator.integers(20, 60, n)
    job = np.where(generator.random(n) < np.where(sex == "f", 0.8, 0.3), "nurse", "smith")
    X = pd.DataFrame({"sex": sex, "age": age, "job": job, "hours": age / 2 + generator.standard_normal(n)})
    return X, np.where((job == "nurse") ^ (generator.random(n) < 0.1), "rich", "poor")


MIXED = CausalGraph.from_edges("sex -> job, age -> job, age -> hours, job -> Y, hours -> Y, sex -> Y, job -> hours")


def test_categories_classes_and_a_continuous_a():
    X, y = mixed()
    predictor = baselines.PSCF(
        graph=MIXED, outcome="Y", protected=["sex", "age"], epochs=20, n_draws=5, learning_rate=1e-2, random_state=0
    ).fit(X, y)
    probabilities = predictor.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert predictor.score(X, y) > 0.5
    draw = next(iter(predictor.fair_rows_.draws(predictor._encoded(X), 1)))
    levels = draw[:, predictor.encoding_.places(["job"])]
    assert set(levels.flatten().tolist()) == {0.0, 1.0}
    assert torch.equal(levels.sum(dim=1), torch.ones(200).double())
    # The baseline: the commonest sex, the mean age.
    own = TableEncoding.of(X, ("sex", "age")).features(pd.DataFrame({"sex": X["sex"].mode(), "age": [X["age"].mean()]}))
    torch.testing.assert_close(draw[0, predictor.encoding_.places(["sex", "age"])], torch.from_numpy(own[0]).double())


MISTAKES = {
    "edge that is none": ({"unfair_edges": [("A", "Z")]}, r"names \('A', 'Z'\), which is no edge out of A"),
    "edges as text": ({"unfair_edges": "A"}, "unfair_edges must be several values"),
    "edges as numbers": ({"unfair_edges": torch.ones(3)}, "An edge of unfair_edges must be several values"),
    "edges of letters": ({"unfair_edges": ["AL"]}, "An edge of unfair_edges must be several values"),
    "baseline of another column": ({"baseline": {"L": 1}}, "'L', which is not protected"),
    "baseline that is no mapping": ({"baseline": 1}, "must map protected columns"),
    "baseline of two values": ({"baseline": {"A": [1, 2]}}, r"must give 'A' one value, got '\[1, 2\]'"),
    "baseline of one value in a list": ({"baseline": {"A": [1]}}, "must give 'A' one value"),
    "baseline that is missing": ({"baseline": {"A": None}}, "must give 'A' one value"),
    "no draws": ({"n_draws": 0}, "n_draws must be at least 1"),
    "no latents": ({"n_latents": 0}, "n_latents must be at least 1"),
    "negative gamma": ({"gamma": -1}, "gamma must not be negative"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_gets_one_clear_sentence(mistake, X, y, roles):
    settings, words = MISTAKES[mistake]
    with pytest.raises(InputError, match=words):
        baselines.PSCF(**roles, epochs=1, **settings).fit(X, y)


def test_baseline_must_be_a_level_that_occurs():
    X, y = mixed()
    predictor = baselines.PSCF(graph=MIXED, outcome="Y", protected=["sex"], epochs=1, baseline={"sex": "x"})
    with pytest.raises(InputError, match="'x' for 'sex', which no training row has"):
        predictor.fit(X, y)
