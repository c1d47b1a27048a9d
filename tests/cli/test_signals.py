"""Signals as they come: anywhere, and more than once."""

import contextlib
import importlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from ciplearn.cli import app as command_line
from tests import warm
from tests.cli.installed import command
from tests.cli.people import GRAPH, people


class Going:
    """An object that is interrupted when it goes: Python swallows what is raised there."""

    def __del__(self):
        signal.raise_signal(Going.number)


class HalfMade:
    """A bar that is interrupted before it knows whether it is shown; it complains when it goes, as tqdm's did."""

    def __new__(cls):
        bar = super().__new__(cls)
        with contextlib.suppress(BaseException):
            signal.raise_signal(cls.number)
        del bar

    def __del__(self):
        assert self.shown


class Imported:
    """A library that comes without a part if it is interrupted."""

    handling = "pass"

    def __init__(self):
        importlib.import_module("a_large_library")


class Broken(Imported):
    """A library that makes an error of its own out of it."""

    handling = "raise ImportError('a part is missing')"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("make", [Going, HalfMade, Imported, Broken])
def test_a_signal_is_not_lost_wherever_it_comes(make, number, tmp_path, monkeypatch, capfd):
    handling = getattr(make, "handling", "pass")
    code = f"import signal\ntry:\n    signal.raise_signal({int(number)})\nexcept BaseException:\n    {handling}\n"
    (tmp_path / "a_large_library.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_large_library", raising=False)
    monkeypatch.setattr(make, "number", number, raising=False)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    ending, went_on = command_line._Ending(), []
    before = signal.signal(number, ending)
    try:
        with pytest.raises((KeyboardInterrupt, SystemExit)) as ended, ending.heard():  # noqa: PT012
            make()
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                time.sleep(0.01)
            went_on.append("it was lost")
        assert went_on == []
        assert not [each for each in threading.enumerate() if isinstance(each, threading.Timer)], "it may come no more"
        assert ended.value.args == (() if number == signal.SIGINT else (128 + number,))
        time.sleep(0.2)  # once it is heard it does not come again
    finally:
        signal.signal(number, before)
    assert capfd.readouterr().err == ""


def test_a_signal_does_not_come_again_while_files_are_closed():
    ending, closed = command_line._Ending(), []
    before = signal.signal(signal.SIGTERM, ending)
    try:
        with pytest.raises(SystemExit), ending.heard():  # noqa: PT012
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                with contextlib.suppress(ValueError):
                    time.sleep(0.2)
                    closed.append("file")
                    raise ValueError
        assert closed == ["file"]
        time.sleep(0.2)  # the last one that was on its way
    finally:
        signal.signal(signal.SIGTERM, before)


LONG = {
    "fit": ["fit", "people.csv", "--graph", GRAPH, "--epochs=100000", "--gamma=1", "--out=model"],
    "predict": ["predict", "MODEL", "people.csv", "--chunk-rows=1", "--out=p.csv"],
    "audit": ["audit", "MODEL", "people.csv", "--interventions=100000", "--draws=100", "--out=r.html"],
}
SIGNALS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [*(("fit", *each) for each in SIGNALS), *((name, *SIGNALS[1]) for name in ("predict", "audit"))],
)
def test_signal_leaves_nothing_behind(name, number, code, tmp_path, request):
    people(2000).to_csv(tmp_path / "people.csv", index=False)
    # The first as installed, whose libraries load meanwhile.
    call = [command() if (name, number) == ("fit", signal.SIGTERM) else warm.command(), *LONG[name]]
    if "MODEL" in call:
        call[call.index("MODEL")] = request.getfixturevalue("model")
    # What a shell runs in the background ignores Ctrl-C, and so would all that it starts.
    asked = {"preexec_fn": lambda: [signal.signal(each, signal.SIG_DFL) for each in (signal.SIGINT, signal.SIGHUP)]}
    with subprocess.Popen(call, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **asked) as running:
        # What is unfinished appears, under a hidden name, when the work starts.
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob(".ciplearn-*")) and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        running.send_signal(number)
        complaint = running.communicate(timeout=120)[1]
    assert running.returncode == code, complaint
    assert b"Traceback" not in complaint
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]
