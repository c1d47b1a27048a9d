from pathlib import Path

import pytest

from ciplearn._core.errors import InputError
from ciplearn._core.files import whole_file, whole_folder, write_text


@pytest.mark.parametrize("trouble", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_file_stays_as_it_was_when_writing_is_cut_short(trouble, tmp_path):
    path = tmp_path / "result.csv"
    path.write_text("old")

    def half():
        with whole_file(path) as stream:
            stream.write(b"half of the new")
            raise trouble

    with pytest.raises(trouble):
        half()
    assert [found.name for found in tmp_path.iterdir()] == ["result.csv"]
    assert path.read_text() == "old"
    write_text(path, "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("trouble", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_folder_stays_as_it_was_when_writing_is_cut_short(trouble, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "sign").write_text("old")

    def half():
        with whole_folder(folder, "sign") as fresh:
            (fresh / "sign").write_text("new")
            raise trouble

    with pytest.raises(trouble):
        half()
    assert [found.name for found in tmp_path.iterdir()] == ["model"]
    assert (folder / "sign").read_text() == "old"
    with whole_folder(folder, "sign") as fresh:
        (fresh / "sign").write_text("new")
    assert (folder / "sign").read_text() == "new"
    assert [found.name for found in tmp_path.iterdir()] == ["model"]


def test_full_disk_is_one_sentence():
    with pytest.raises(InputError, match="/dev/full cannot be written: No space left"):
        write_text(Path("/dev/full"), "more than nothing")


def test_new_file_can_be_read_like_any_other(tmp_path):
    write_text(tmp_path / "one", "text")
    (tmp_path / "two").write_text("text")
    assert (tmp_path / "one").stat().st_mode == (tmp_path / "two").stat().st_mode
