import multiprocessing
import os
import resource
import stat
from contextlib import contextmanager
from pathlib import Path

import pytest

from ciplearn._core.errors import InputError
from ciplearn._core.files import held_alone, read_bounded, scratch_folder, whole_file, write_file

TROUBLES = [RuntimeError, KeyboardInterrupt, SystemExit]


def killed(action, after):
    """Run an action in a process of its own that dies, without a word, when it moves its so-manieth file."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    moves = 0
    for name in ("replace", "rename", "unlink"):
        move = getattr(Path, name)

        def counted(*arguments, move=move, **options):
            nonlocal moves
            moves += 1
            if moves > after:
                os._exit(9)
            return move(*arguments, **options)

        setattr(Path, name, counted)
    try:
        action()
    finally:
        os._exit(0)


@pytest.mark.parametrize("trouble", TROUBLES)
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
    write_file(path, "new")
    assert path.read_text() == "new"


def test_files_of_killed_runs_go_and_those_of_others_that_run_stay(tmp_path):
    code = killed(lambda: write_file(tmp_path / "result.csv", "text"), after=0)
    assert code == 9
    assert len(list(tmp_path.iterdir())) == 1, "the killed run left its file"
    with whole_file(tmp_path / "one") as stream:
        write_file(tmp_path / "two", "text")
        stream.write(b"text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_devices_pipes_and_files_without_end_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with pytest.raises(InputError, match="no regular file"):
            read_bounded(path, largest=1)
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate((1 << 20) + 1)
    with pytest.raises(InputError, match="more than 1 MiB"):
        read_bounded(tmp_path / "large", largest=1)


def test_full_disk_is_one_sentence():
    with pytest.raises(InputError, match="/dev/full cannot be written: No space left"):
        write_file(Path("/dev/full"), "more than nothing")


def test_new_file_can_be_read_like_any_other(tmp_path):
    write_file(tmp_path / "one", "text")
    (tmp_path / "two").write_text("text")
    assert (tmp_path / "one").stat().st_mode == (tmp_path / "two").stat().st_mode


def test_private_file_is_never_readable_by_others(tmp_path):
    with whole_file(tmp_path / "secret", mode=0o600) as stream:
        stream.write(b"secret")
        (part,) = tmp_path.iterdir()
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "socket"])
def test_what_is_no_file_under_a_hidden_name_holds_up_nobody(kind, tmp_path):
    stranger = tmp_path / ".ciplearn-x.part"
    if kind == "socket":
        os.mknod(stranger, stat.S_IFSOCK | 0o600)
    else:
        pipe = stranger if kind == "pipe" else tmp_path / "pipe"
        os.mkfifo(pipe)
        if pipe != stranger:
            stranger.symlink_to(pipe)
    # A process of its own, since one that waits for the other end of a pipe waits for ever.
    writing = multiprocessing.get_context("fork").Process(target=write_file, args=(tmp_path / "result", "text"))
    writing.start()
    writing.join(20)
    hangs = writing.is_alive()
    writing.kill()
    assert not hangs
    assert (tmp_path / "result").read_text() == "text"
    with scratch_folder(tmp_path) as folder:
        assert list(folder.iterdir()) == []


def test_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    with pytest.raises(InputError, match="no regular file"):
        read_bounded(tmp_path / "pipe", largest=1)


@contextmanager
def full_disk():
    """Let no file grow beyond a few bytes: what a full disk does, without one."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_full_disk_names_what_people_have_named_and_no_hidden_file(tmp_path):
    with full_disk(), pytest.raises(InputError, match=r"^\S+/result cannot be written: File too large"):
        write_file(tmp_path / "result", "x" * 200)
    with (
        full_disk(),
        pytest.raises(InputError, match=rf"^{tmp_path} cannot be written: File too large"),
        scratch_folder(tmp_path) as scratch,
    ):
        write_file(scratch / "rows", "x" * 200)
    assert list(tmp_path.iterdir()) == []


def test_file_is_held_by_one_run_alone_and_no_removed_one_counts(tmp_path):
    file = tmp_path / "sweep.csv"
    with held_alone(file):
        with pytest.raises(InputError, match="is written by another run"), held_alone(file):
            pass
        with held_alone(tmp_path / "other"):
            pass
    assert list(tmp_path.iterdir()) == []
    with held_alone(file):
        file.write_text("a line\n")
    with held_alone(file):
        assert file.read_text() == "a line\n"


def test_lock_of_a_file_that_was_removed_meanwhile_is_no_lock(tmp_path, monkeypatch):
    from ciplearn._core import files

    file = tmp_path / "sweep.csv"

    def removed_at_the_last_moment(handle, how, lock=files.fcntl.flock):
        lock(handle, how)
        file.unlink()

    file.touch()
    monkeypatch.setattr(files.fcntl, "flock", removed_at_the_last_moment)
    with files.locked(file) as held:
        assert held is False
