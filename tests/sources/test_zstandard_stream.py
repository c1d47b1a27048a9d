"""What was compressed comes back whole, whatever the sizes of blocks and frames; a cut is told."""

import io

import pytest

from ciplearn.sources.formats import ZstandardStream

zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")

TEXT = b"".join(b"%d,%d\n" % (row, row * row % 9973) for row in range(20_000))


def unpacked(packed):
    return io.BufferedReader(ZstandardStream(io.BytesIO(packed))).read()


def test_one_frame_several_frames_and_nothing_come_back():
    assert unpacked(zstandard.compress(TEXT)) == TEXT
    frames = [TEXT[:7], TEXT[7:70_000], b"", TEXT[70_000:]]
    assert unpacked(b"".join(map(zstandard.compress, frames))) == TEXT
    assert unpacked(b"") == b""


def test_every_cut_within_a_frame_is_an_error():
    packed = zstandard.compress(TEXT[:2000])
    for end in range(1, len(packed), 37):
        with pytest.raises(EOFError, match="ends too early"):
            unpacked(packed[:end])


def test_what_was_not_compressed_is_an_error():
    with pytest.raises(EOFError, match="zstd"):
        unpacked(TEXT)


def test_stream_behind_stays_open():
    packed = io.BytesIO(zstandard.compress(TEXT))
    with io.BufferedReader(ZstandardStream(packed)) as stream:
        assert stream.read(3) == TEXT[:3]
    assert not packed.closed
