import subprocess
from pathlib import Path

import pytest

from ciplearn._core import files
from ciplearn._core.errors import InputError
from ciplearn._core.files import checksum, listed_files, listed_folder, read_listed, write_file
from tests._core.test_files import TROUBLES, full_disk, killed


def fill(folder, content, *, overwrite=True, names=("model.json", "trials/00/weights")):
    with listed_folder(folder, overwrite=overwrite) as fresh:
        for name in names:
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_text(f"{content} {name}")


def contents(folder):
    """Every file below a folder, and what it says."""
    found = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != files.CHECKSUMS)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_folder_stays_as_it_was_when_writing_is_cut_short(trouble, tmp_path):
    folder = tmp_path / "model"
    fill(folder, "old")
    before = contents(folder)

    def half():
        with listed_folder(folder, overwrite=True) as fresh:
            (fresh / "model.json").write_text("new")
            raise trouble

    with pytest.raises(trouble):
        half()
    assert contents(folder) == before
    fill(folder, "new")
    assert contents(folder)["model.json"] == "new model.json"
    assert [found.name for found in tmp_path.iterdir()] == ["model"]


def test_only_files_of_ours_are_replaced_and_only_when_told(tmp_path):
    folder = tmp_path / "model"
    fill(folder, "old")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("main")
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="--overwrite"):
        fill(folder, "new", overwrite=False)
    fill(folder, "new", names=("model.json", "more"))
    kept = {"thesis.tex": "years of work", ".git/HEAD": "main"}
    assert contents(folder) == {"model.json": "new model.json", "more": "new more", **kept}
    assert not (folder / "trials").exists()
    (folder / "more").write_text("changed by hand")
    with pytest.raises(InputError, match="more is not what ciplearn has written"):
        fill(folder, "third")
    (folder / "more").unlink()
    with pytest.raises(InputError, match=r"thesis.tex is not what ciplearn has written"):
        fill(folder, "third", names=("thesis.tex",))
    assert (folder / "thesis.tex").read_text() == "years of work"


def test_folder_of_others_and_file_are_refused(tmp_path):
    (tmp_path / "model.json").write_text("a file of somebody else")
    with pytest.raises(InputError, match="holds no model"):
        fill(tmp_path, "new")
    with pytest.raises(InputError, match="is a file"):
        fill(tmp_path / "model.json", "new")
    assert contents(tmp_path) == {"model.json": "a file of somebody else"}


def test_target_may_be_a_link_a_way_round_or_the_folder_one_stands_in(tmp_path, monkeypatch):
    fill(tmp_path / "m", "old")
    (tmp_path / "link").symlink_to("m")
    (tmp_path / "file").write_text("old")
    (tmp_path / "file link").symlink_to("file")
    monkeypatch.chdir(tmp_path / "m")
    for place in (Path("../m"), tmp_path / "m/../m", tmp_path / "link", Path()):
        fill(place, str(place))
        assert contents(tmp_path / "m")["model.json"] == f"{place} model.json"
        assert Path("model.json").exists(), "the folder one stands in is still the same"
    write_file(tmp_path / "file link", "new")
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file link").is_symlink()
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    fill(Path(), "here")
    assert Path("model.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "file link", "link", "m"]


@pytest.mark.parametrize("existed", [False, True])
def test_run_that_was_killed_between_two_moves_is_finished_or_cleaned_by_the_next(existed, tmp_path):
    folder = tmp_path / "model"
    code, after = 9, -1
    while code == 9:
        after += 1
        if existed:
            fill(folder, "old", names=("model.json", "only/in/old"))
            (folder / "thesis.tex").write_text("years of work")
        code = killed(lambda: fill(folder, "killed"), after)
        if existed:
            assert contents(folder)["thesis.tex"] == "years of work"
        fill(folder, "new")
        expected = {name: f"new {name}" for name in ("model.json", "trials/00/weights")}
        assert contents(tmp_path) == {
            **{f"model/{name}": text for name, text in expected.items()},
            **({"model/thesis.tex": "years of work"} if existed else {}),
        }, after
        subprocess.run(["sha256sum", "--check", "--quiet", files.CHECKSUMS], cwd=folder, check=True)
        if not existed:
            subprocess.run(["rm", "-r", folder], check=True)
    assert after > (4 if existed else 0), "every move was tried"


def test_list_tells_a_file_that_was_changed(tmp_path):
    folder = tmp_path / "model"
    fill(folder, "old")
    assert read_listed(folder, "model.json") == b"old model.json"
    (folder / "model.json").write_text("old nodel.json")
    with pytest.raises(InputError, match="was changed since it was saved"):
        read_listed(folder, "model.json")
    names = ("../../passwd", "/etc/passwd", "a//b", "./a", "a\\b", "C:a", "a\x00", files.CHECKSUMS, ".ciplearn-x/a")
    for line in ("nonsense", *(f"{'0' * 64}  {name}" for name in names)):
        (folder / files.CHECKSUMS).write_text(line + "\n")
        with pytest.raises(InputError, match="no list of checksums"):
            listed_files(folder)
        with pytest.raises(InputError, match="no list of checksums; move the folder away, and write it anew"):
            fill(folder, "new")


def state(folder):
    """Everything below a folder, links as links, with what it says and when it was changed."""
    found = sorted(path for path in Path(folder).rglob("*"))
    return {
        path.relative_to(folder): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in found
    }


def test_folder_whose_writer_was_killed_is_refused_by_readers_and_finished_by_the_next_writer(tmp_path):
    folder = tmp_path / "model"
    code, after, unfinished = 9, -1, 0
    while code == 9:
        after += 1
        fill(folder, "old", names=("model.json", "only/in/old"))
        code = killed(lambda: fill(folder, "killed"), after)
        before = state(folder)
        if (folder / files._ARRIVING).exists():
            unfinished += 1
            with pytest.raises(InputError, match="model is unfinished"):
                read_listed(folder, "model.json")
        else:
            read_listed(folder, "model.json")
        assert state(folder) == before
        files.check_folder(folder, overwrite=True)
        fill(folder, "new")
        assert contents(folder) == {name: f"new {name}" for name in ("model.json", "trials/00/weights")}
    assert unfinished > 3


def test_links_in_a_folder_are_refused_and_nothing_behind_them_is_touched(tmp_path):
    def hostile(name):
        for made in (tmp_path / name, tmp_path / f"{name} victim"):
            fill(made, "old", names=("model.json", "thesis.txt"))
        return tmp_path / name, tmp_path / f"{name} victim"

    def arriving(folder, names):
        for name in names:
            (folder / files._ARRIVING / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / files._ARRIVING / name).write_text("evil")
        files._write_checksums(folder / files._ARRIVING)

    cases = {}
    # Files that wait to replace, and a list that lets delete, what lies behind a link.
    folder, victim = cases["through a link"] = hostile("through a link")
    (folder / "lnk").symlink_to("../through a link victim")
    arriving(folder, ["lnk/.bashrc"])
    with (folder / files.CHECKSUMS).open("a") as lines:
        lines.write(f"{checksum(victim / 'thesis.txt')}  lnk/thesis.txt\n")
    # The place where files wait is another folder.
    folder, victim = cases["waiting elsewhere"] = hostile("waiting elsewhere")
    (folder / files._ARRIVING).symlink_to(victim)
    # Files that wait are links themselves.
    folder, victim = cases["waiting links"] = hostile("waiting links")
    arriving(folder, ["a/model.json"])
    (folder / files._ARRIVING / "a" / "model.json").unlink()
    (folder / files._ARRIVING / "a").rmdir()
    (folder / files._ARRIVING / "a").symlink_to(victim)
    # A file of the folder is a link; so is its list.
    folder, victim = cases["a file"] = hostile("a file")
    (folder / "model.json").unlink()
    (folder / "model.json").symlink_to(victim / "model.json")
    folder, victim = cases["the list"] = hostile("the list")
    (folder / files.CHECKSUMS).unlink()
    (folder / files.CHECKSUMS).symlink_to(victim / files.CHECKSUMS)
    for folder, victim in cases.values():
        before, untouched = state(tmp_path), state(victim)
        with pytest.raises(InputError, match=r"is unfinished|is a link"):
            read_listed(folder, "model.json")
        assert state(tmp_path) == before
        with pytest.raises(InputError, match="is a link"):
            fill(folder, "new")
        assert state(victim) == untouched


def test_file_that_is_not_of_the_list_is_kept_where_a_folder_is_finished(tmp_path):
    folder = tmp_path / "model"
    fill(folder, "old")
    assert killed(lambda: fill(folder, "killed", names=("model.json", "thesis.tex")), after=1) == 9
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis.tex is not what ciplearn has written"):
        fill(folder, "new")
    assert (folder / "thesis.tex").read_text() == "years of work"


def test_error_of_a_file_that_is_read_is_not_blamed_on_the_target(tmp_path):
    with pytest.raises(FileNotFoundError), listed_folder(tmp_path / "model", overwrite=False):
        (tmp_path / "table.csv").read_text()
    assert list(tmp_path.iterdir()) == []


def test_full_disk_names_the_folder_though_a_part_of_it_is_a_folder_of_its_own(tmp_path):
    def nested(action):
        with listed_folder(tmp_path / "model", overwrite=False) as fresh:
            action(fresh / "trials")

    for action in (lambda path: fill(path, "x" * 200), lambda path: write_file(path, "x" * 200)):
        with full_disk(), pytest.raises(InputError, match=rf"^{tmp_path}/model cannot be written: File too large"):
            nested(action)
    assert list(tmp_path.iterdir()) == []
