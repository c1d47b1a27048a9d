import doctest
import inspect

import numpy as np
import pandas as pd
import pytest

from ciplearn import variance_of_counterfactuals
from ciplearn._core.errors import InputError, InputTypeError
from reproduction import sprites as dsprites
from reproduction.sprites import image_latents

INPUTS = list(dsprites.FACTORS)


@pytest.fixture(scope="module")
def units():
    return dsprites.image_latents().sample_units(2000, random_state=0)


@pytest.fixture(scope="module")
def rows(units):
    return dsprites.image_latents().frame(units)


def test_rows_follow_the_printed_equations(units, rows):
    u, p = units.noise, rows
    np.testing.assert_array_equal(p["x_pos"], np.clip(np.round(p["shape"] + p["y_pos"] + u["x_pos"]), 0, 31))
    scale = np.round((p["x_pos"] / 24 + p["y_pos"] / 24) * p["shape"] + u["scale"])
    np.testing.assert_array_equal(p["scale"], np.clip(scale, 0, 5))
    outcome = np.exp(p["shape"]) * p["x_pos"] + p["scale"] ** 2 * np.sin(p["y_pos"]) + u["Y"]
    np.testing.assert_allclose(p["Y"], outcome)
    assert abs(u["x_pos"].std() - 1) < 0.05
    assert abs(u["scale"].std() - 1) < 0.05
    assert abs(u["Y"].std() - 0.01) < 0.001


@pytest.mark.parametrize(("name", "count"), [("shape", 3), ("y_pos", 32), ("orientation", 40), ("color", 1)])
def test_what_has_no_cause_is_uniform(rows, name, count):
    share = rows[name].value_counts(normalize=True)
    assert len(share) == count
    assert (abs(share - 1 / count) < 5 * np.sqrt(1 / count / 2000)).all()


def test_every_row_has_its_picture(rows):
    latents = dsprites.matched_latents(rows)
    np.testing.assert_array_equal(latents[:, 1], rows["shape"] - 1)
    np.testing.assert_array_equal(
        latents[:, [0, 2, 3, 4, 5]], rows[["color", "scale", "orientation", "x_pos", "y_pos"]]
    )
    np.testing.assert_array_equal(dsprites.pictures(rows[:20]), dsprites.render(latents[:20]))


def test_kept_noise_gives_one_counterfactual_with_its_picture(units, rows):
    moved = image_latents().counterfactual(units, {"x_pos": 3.0})
    scale = np.clip(np.round((3 / 24 + rows["y_pos"] / 24) * rows["shape"] + units.noise["scale"]), 0, 5)
    np.testing.assert_array_equal(moved["scale"], scale)
    np.testing.assert_array_equal(moved[["shape", "y_pos", "orientation"]], rows[["shape", "y_pos", "orientation"]])
    widest = [int(np.flatnonzero(picture.any(axis=0)).max()) for picture in dsprites.pictures(moved[:200])]
    assert max(widest) < 34  # 16 + 32 · 3/31, and no sprite reaches 14 pixels from its centre


def test_the_papers_statement_is_what_the_graph_certifies():
    verdict = image_latents().graph.criterion(outcome="Y", protected=["x_pos"], adjustment=["shape", "y_pos"])
    assert verdict.holds
    assert set(verdict.independence.right) == {"x_pos", "scale", "color", "orientation"}
    assert set(verdict.independence.given) == {"shape", "y_pos"}


class Brightness:
    """Predicts from the picture and the table, and counts what it is shown."""

    def __init__(self):
        self.shown = []

    def predict(self, table, tensors):
        (images,) = tensors
        self.shown.append(len(table))
        return images.sum(axis=(1, 2)) + 10.0 * table["x_pos"].to_numpy()


def test_each_distinct_picture_is_shown_once(rows):
    model = Brightness()
    twice = pd.concat([rows[:50], rows[:50].sample(frac=1, random_state=0)])
    found = dsprites.PicturePredictor(model, pictures_at_once=16).predict(twice)
    np.testing.assert_allclose(found, dsprites.pictures(twice).sum(axis=(1, 2)) + 10 * twice["x_pos"])
    assert sum(model.shown) == len(rows[:50].drop_duplicates(INPUTS))
    assert max(model.shown) <= 16


def test_variance_of_counterfactuals_equals_one_written_from_the_definition(units):
    model = Brightness()
    grid = np.arange(32.0)
    some = units.take(np.arange(30))
    found = variance_of_counterfactuals(
        dsprites.PicturePredictor(model), image_latents(), some, ["x_pos"], n_points=30, interventions=grid
    )
    worlds = [image_latents().counterfactual(some, {"x_pos": x}) for x in grid]
    answers = np.stack([dsprites.pictures(world).sum(axis=(1, 2)) + 10 * world["x_pos"] for world in worlds])
    np.testing.assert_allclose(found.value, answers.var(axis=0).mean())
    # Each point in 32 worlds, and once as it is.
    assert sum(model.shown) <= 30 * 33


def test_pictures_can_come_from_elsewhere(rows):
    predictor = dsprites.PicturePredictor(Brightness(), images=lambda latents: np.ones((len(latents), 64, 64)))
    np.testing.assert_allclose(predictor.predict(rows[:5]), 4096 + 10 * rows["x_pos"][:5])


def test_rows_without_a_picture_are_refused(rows):
    with pytest.raises(InputError, match="lacks the column 'scale'"):
        dsprites.matched_latents(rows.drop(columns="scale"))
    with pytest.raises(InputError, match=r"shape must be a class in 0\.\.2, got -1"):
        dsprites.pictures(rows[:2].assign(shape=0))
    with pytest.raises(InputTypeError, match=r"whole numbers, got float64 such as 3\.5"):
        dsprites.pictures(rows[:2].assign(x_pos=3.5))
    with pytest.raises(InputTypeError, match="must be a pandas DataFrame, got list"):
        dsprites.matched_latents([1, 2])


def test_image_latents_stay_in_their_ranges_and_counterfactuals_are_consistent():
    scm = image_latents()
    rows = scm.sample(2000, random_state=0)
    for column, low, high in [
        ("shape", 1, 3),
        ("y_pos", 0, 31),
        ("x_pos", 0, 31),
        ("scale", 0, 5),
        ("orientation", 0, 39),
    ]:
        assert rows[column].between(low, high).all()
        assert (rows[column] == rows[column].round()).all()
    noise = rows["Y"] - np.exp(rows["shape"]) * rows["x_pos"] - rows["scale"] ** 2 * np.sin(rows["y_pos"])
    assert abs(noise.std() - 0.01) < 0.001
    np.testing.assert_allclose(scm.counterfactual(rows, {"x_pos": rows["x_pos"]}), rows, atol=1e-9)
    moved = scm.counterfactual(rows, {"x_pos": 31.0})
    assert (moved["scale"] >= rows["scale"]).all()


@pytest.mark.parametrize("name", [name for name in dsprites.__all__ if name[0].islower() or name[1].islower()])
def test_example_of_a_docstring_runs(name):
    thing = getattr(dsprites, name)
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(thing), {}, name, None, 0)
    said = []
    assert example.examples
    doctest.DocTestRunner().run(example, out=said.append)
    assert not said, "".join(said)
