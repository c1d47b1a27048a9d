"""The original dSprites file, for people who have it: read without unpickling anything, and without 3 GB of memory."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from tqdm import tqdm

from ciplearn._core.errors import InputError
from ciplearn.scm.kinds import Array
from reproduction.sprites.latents import N_IMAGES, index_of, latents_of
from reproduction.sprites.rendering import SIDE, render

_IMAGE_BYTES = SIDE * SIDE
_IMAGES_AT_ONCE = 4096

# Rendering differs from the original by single pixels on a sprite's edge.
_MOST_WRONG = 32

# What a damaged or foreign file can raise while it is read.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, RuntimeError, OSError)


@dataclass(frozen=True, init=False)
class Archive:
    """The original ``dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz`` on disk.

    Parameters
    ----------
    path : path
        Looked at when the archive is made: it must be an npz with all 737 280 images in one plain array.

    Examples
    --------
    >>> from reproduction.sprites import Archive
    >>> from ciplearn._core.errors import CiplearnError
    >>> try:
    ...     Archive("not there.npz").images([[0, 0, 0, 0, 0, 0]])
    ... except CiplearnError as refused:
    ...     print(type(refused).__name__)
    InputError
    """

    path: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", Path(path))
        if not self.path.is_file():
            raise InputError(f"{self.path} is no file; pass the path of the original dSprites npz, or use render.")
        with self._member("imgs") as images:
            self._check_header(images)

    def images(self, latents: Any) -> Array:  # (..., 6) -> (..., 64, 64)
        """Return the original's pictures for latent classes, as `render` returns its own.

        The file is read once from the start to the last picture that is asked for, and what was read is compared with
        the rendering.
        """
        wanted = index_of(latents)
        numbers, places = np.unique(wanted, return_inverse=True)
        pictures = np.empty((len(numbers), SIDE, SIDE), dtype=np.uint8)
        end = int(numbers[-1]) + 1 if len(numbers) else 0
        # disable=None: quiet where nobody watches.
        bar = tqdm(total=end, desc="reading dSprites", unit="image", disable=None, leave=False)
        with self._member("imgs") as images, bar:
            self._check_header(images)
            for start in range(0, end, _IMAGES_AT_ONCE):
                count = min(_IMAGES_AT_ONCE, N_IMAGES - start)
                block = images.read(count * _IMAGE_BYTES)
                if len(block) < count * _IMAGE_BYTES:
                    raise EOFError(f"imgs ends within image {start + len(block) // _IMAGE_BYTES}")
                here = slice(*np.searchsorted(numbers, [start, start + count]))
                stored = np.frombuffer(block, dtype=np.uint8).reshape(count, SIDE, SIDE)
                pictures[here] = stored[numbers[here] - start]
                bar.update(min(count, end - start))
        self._check_pictures(pictures, numbers)
        return pictures[places].reshape(*wanted.shape, SIDE, SIDE)

    def metadata(self, *, unpickle: bool = False) -> Any:
        """Return the original's description of itself, which is stored as a pickle.

        Parameters
        ----------
        unpickle : bool
            Unpickling runs whatever code the file holds: say True only for a file that you trust.
        """
        if unpickle is not True:
            raise InputError(
                f"The metadata of {self.path} is a pickle, and reading one runs the code inside it; pass unpickle=True "
                "if you trust the file (images and latents need no pickle)."
            )
        with self._member("metadata") as member:
            # Python 2 wrote the original.
            stored = np.lib.format.read_array(member, allow_pickle=True, pickle_kwargs={"encoding": "latin1"})
        return stored[()]

    def _check_pictures(self, pictures: Array, numbers: Array) -> None:
        """Damage inside a compressed block, or another order of images, shows as other pictures."""
        odd = (pictures != render(latents_of(numbers))).sum(axis=(1, 2)) > _MOST_WRONG
        if odd.any():
            raise InputError(
                f"{self.path} shows something else than dSprites in {int(odd.sum())} of {len(odd)} images, first in "
                f"number {numbers[odd][0]}; it is damaged or in another order, fetch the original again."
            )

    def _check_header(self, images: IO[bytes]) -> None:
        version = np.lib.format.read_magic(images)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, columns_first, dtype = read(images)
        if shape != (N_IMAGES, SIDE, SIDE) or dtype != np.uint8 or columns_first:
            raise InputError(
                f"{self.path} must hold imgs of shape {(N_IMAGES, SIDE, SIDE)} and type uint8, got {shape} and "
                f"{dtype}; pass the original dSprites npz."
            )

    @contextmanager
    def _member(self, name: str) -> Iterator[IO[bytes]]:
        """Open one array of the file; damage that shows while it is read becomes one sentence."""
        try:
            with zipfile.ZipFile(self.path) as file, file.open(f"{name}.npy") as member:
                yield member
        except InputError:
            raise
        except _DAMAGE as error:
            reason = str(error).strip("'\". ") or type(error).__name__
            raise InputError(
                f"{self.path} cannot be read as the dSprites npz ({reason}); it is damaged or another file, fetch the "
                "original again."
            ) from error
