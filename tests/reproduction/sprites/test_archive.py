"""The original file, stood in for by one of the same layout with rendered pictures."""

import pickle
import zipfile

import numpy as np
import pytest

from ciplearn._core.errors import InputError
from reproduction import sprites as dsprites
from tests.reproduction.sprites.stand_in import SHAPE, header, write_original


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return write_original(tmp_path_factory.mktemp("dsprites") / "original.npz")


def test_pictures_come_in_the_order_they_were_asked_for(original):
    latents = dsprites.latents_of([[2500, 7], [7, 0]])
    np.testing.assert_array_equal(dsprites.Archive(original).images(latents), dsprites.render(latents))


def test_pictures_of_two_blocks_are_found(original):
    latents = dsprites.latents_of([4095, 8191, 4096, 0])
    np.testing.assert_array_equal(dsprites.Archive(original).images(latents), dsprites.render(latents))


def test_images_that_end_early_are_noticed(original):
    with pytest.raises(InputError, match="imgs ends within image 8192"):
        dsprites.Archive(original).images(dsprites.latents_of([8192]))


def test_nothing_asked_nothing_read(original):
    assert dsprites.Archive(original).images(np.empty((0, 6), dtype=int)).shape == (0, 64, 64)


def test_metadata_is_unpickled_only_on_an_explicit_word(original):
    with pytest.raises(InputError, match="pass unpickle=True if you trust the file"):
        dsprites.Archive(original).metadata()
    with pytest.raises(InputError, match="unpickle=True"):
        dsprites.Archive(original).metadata(unpickle=1)
    assert dsprites.Archive(original).metadata(unpickle=True) == {"title": "dSprites"}


class Exploding:
    def __reduce__(self):
        return (pytest.fail, ("code from the file was run",))


def test_code_in_the_place_of_images_never_runs(tmp_path):
    path = tmp_path / "trap.npz"
    with zipfile.ZipFile(path, "w") as file, file.open("imgs.npy", "w") as member:
        header((), object, member)
        pickle.dump(Exploding(), member)
    with pytest.raises(InputError, match=r"got \(\) and object"):
        dsprites.Archive(path)


def test_an_array_of_another_size_is_refused(tmp_path):
    path = tmp_path / "small.npz"
    np.savez(path, imgs=np.zeros((5, 64, 64), dtype=np.uint8))
    with pytest.raises(InputError, match=r"must hold imgs of shape \(737280, 64, 64\) .* got \(5, 64, 64\)"):
        dsprites.Archive(path)
    np.savez(path, pictures=np.zeros(3))
    with pytest.raises(InputError, match="no item named"):
        dsprites.Archive(path)


def test_a_file_cut_short_is_refused(original, tmp_path):
    path = tmp_path / "cut.npz"
    path.write_bytes(original.read_bytes()[:100_000])
    with pytest.raises(InputError, match="damaged or another file, fetch the original again"):
        dsprites.Archive(path)


@pytest.mark.parametrize("noise", [bytes(2000), bytes(range(200)) * 10])
def test_bytes_that_changed_are_noticed(original, tmp_path, noise):
    path = tmp_path / "changed.npz"
    content = bytearray(original.read_bytes())
    content[50_000 : 50_000 + len(noise)] = noise
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged or"):
        dsprites.Archive(path).images(dsprites.latents_of(np.arange(4096)))


@pytest.mark.parametrize("change", [lambda pictures: pictures[::-1], lambda pictures: 255 * pictures])
def test_other_pictures_are_noticed(tmp_path, change):
    path = tmp_path / "other.npz"
    with zipfile.ZipFile(path, "w") as file, file.open("imgs.npy", "w") as member:
        header(SHAPE, np.uint8, member)
        member.write(change(dsprites.render(dsprites.latents_of(np.arange(4096)))).tobytes())
    with pytest.raises(InputError, match="something else than dSprites in 1 of 1 images, first in number 3"):
        dsprites.Archive(path).images(dsprites.latents_of([3]))


@pytest.mark.parametrize("content", [None, b"", b"no zip at all"])
def test_a_path_that_holds_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "nothing.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"nothing\.npz"):
        dsprites.Archive(path)
