"""Rendering against real frames and against the definition.

The frames are of dSprites (L. Matthey, I. Higgins, D. Hassabis, A. Lerchner, 2017; Apache licence 2.0): 320 of its
animation and 43 of its notebook, packed to bits, with their latent classes.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ciplearn._core.errors import InputError, InputTypeError
from reproduction import sprites as dsprites
from tests.reproduction.sprites.naive import naive_picture

REAL = Path(__file__).parents[2] / "data" / "dsprites_frames.npz"


def wrong_pixels(name):
    with np.load(REAL) as stored:
        real = np.unpackbits(stored[name], axis=1).reshape(-1, 64, 64)
        latents = stored[f"{name}_latents"]
    return (dsprites.render(latents) != real).sum(axis=(1, 2))


def test_real_frames_come_out():
    wrong = wrong_pixels("frames")
    assert len(wrong) == 320
    assert (wrong == 0).sum() >= 314
    assert wrong.sum() <= 8


def test_real_samples_come_out():
    wrong = wrong_pixels("samples")
    assert len(wrong) == 43
    assert (wrong == 0).sum() >= 35


@pytest.mark.parametrize("shape", range(3))
def test_pictures_equal_the_definition(shape):
    generator = np.random.default_rng(shape)
    latents = np.array([(0, shape, scale, turn, 0, 0) for scale, turn in product(range(6), range(40))])
    latents[:, 4:] = generator.integers(32, size=(len(latents), 2))
    expected = np.stack([naive_picture(row) for row in latents])
    np.testing.assert_array_equal(dsprites.render(latents), expected)


def test_corners_of_the_grid_equal_the_definition():
    latents = np.array([(0, shape, 5, 5, x, y) for shape in range(3) for x in (0, 31) for y in (0, 31)])
    np.testing.assert_array_equal(dsprites.render(latents), np.stack([naive_picture(row) for row in latents]))


def test_axes_and_size_mean_what_they_say():
    placed = [(0, 2, 9), (0, 30, 9), (0, 2, 30), (5, 2, 9)]
    left, right, low, big = dsprites.render([[0, 1, scale, 0, x, y] for scale, x, y in placed])
    assert np.flatnonzero(left.any(axis=0)).max() < np.flatnonzero(right.any(axis=0)).min()
    assert np.flatnonzero(left.any(axis=1)).max() < np.flatnonzero(low.any(axis=1)).min()
    assert 3.5 < big.sum() / left.sum() < 4.5
    np.testing.assert_array_equal(left.any(axis=1), right.any(axis=1))


def test_any_leading_shape_goes_in_and_comes_out():
    index = np.arange(6).reshape(2, 3) * 100_003
    latents = dsprites.latents_of(index)
    pictures = dsprites.render(latents)
    assert pictures.shape == (2, 3, 64, 64)
    assert pictures.dtype == np.uint8
    np.testing.assert_array_equal(pictures[1, 2], dsprites.render(latents[1, 2]))
    assert dsprites.render(np.empty((0, 6), dtype=int)).shape == (0, 64, 64)


def test_more_pictures_than_one_piece_holds():
    latents = dsprites.latents_of(np.arange(9000) * 81)
    pictures = dsprites.render(latents)
    for place in (0, 4095, 4096, 8191, 8192, 8999):
        np.testing.assert_array_equal(pictures[place], dsprites.render(latents[place]))


def test_numbers_and_latents_are_two_names_of_one_thing():
    index = np.random.default_rng(0).integers(dsprites.N_IMAGES, size=1000)
    latents = dsprites.latents_of(index)
    np.testing.assert_array_equal(dsprites.index_of(latents), index)
    np.testing.assert_array_equal(np.ravel_multi_index(tuple(latents.T), dsprites.SIZES), index)
    assert np.prod(dsprites.SIZES) == dsprites.N_IMAGES
    assert dsprites.index_of([0, 2, 5, 39, 31, 31]) == dsprites.N_IMAGES - 1


def test_values_of_classes():
    values = dsprites.latent_values([[0, 2, 5, 39, 31, 0], [0, 0, 1, 0, 0, 31]])
    np.testing.assert_allclose(values, [[1, 3, 1, 2 * np.pi, 1, 0], [1, 1, 0.6, 0, 0, 1]])
    assert {name: len(table) for name, table in dsprites.factor_values().items()} == dict(
        zip(dsprites.FACTORS, dsprites.SIZES, strict=True)
    )


@pytest.mark.parametrize(
    ("latents", "says"),
    [
        ([[0, 3, 0, 0, 0, 0]], r"shape must be a class in 0\.\.2, got 3 in 1 rows"),
        ([[0, 0, 0, 0, 32, 0], [0, 0, 0, 0, -1, 0]], r"x_pos must be a class in 0\.\.31, got 32 in 2 rows"),
        ([[0, 0, 0, 0, 0]], r"6 entries per row .* got shape \(1, 5\)"),
        (3, r"got shape \(\)"),
        ([[0, 0, 0.5, 0, 0, 0]], "whole numbers, got float64 such as 0.5"),
        ([[0, 0, np.nan, 0, 0, 0]], "whole numbers, got float64 such as nan"),
        ([["a"] * 6], "whole numbers"),
        ([[0] * 6, [0]], "whole numbers"),
    ],
)
def test_latents_that_no_picture_has_are_refused(latents, says):
    with pytest.raises(InputError, match=says):
        dsprites.render(latents)


@pytest.mark.parametrize("index", [-1, dsprites.N_IMAGES, [0, dsprites.N_IMAGES]])
def test_numbers_that_no_picture_has_are_refused(index):
    with pytest.raises(InputError, match=r"index must lie in 0\.\.737279"):
        dsprites.latents_of(index)


def test_text_is_no_number():
    with pytest.raises(InputTypeError, match="index must hold whole numbers"):
        dsprites.latents_of("first")
