"""A file of the original's layout, with rendered pictures."""

import zipfile

import numpy as np

from reproduction import sprites as dsprites

SHAPE = (dsprites.N_IMAGES, 64, 64)


def header(array_shape, dtype, target):
    np.lib.format.write_array_header_1_0(
        target, {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": array_shape}
    )


def write_original(path):
    """Write a file that says to be whole and ends after its second block: whoever reads no farther cannot tell."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        with file.open("imgs.npy", "w") as member:
            header(SHAPE, np.uint8, member)
            member.write(dsprites.render(dsprites.latents_of(np.arange(2 * 4096))).tobytes())
        with file.open("metadata.npy", "w") as member:
            np.lib.format.write_array(member, np.array({"title": "dSprites"}, dtype=object), allow_pickle=True)
    return path
