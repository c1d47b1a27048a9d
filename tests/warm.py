"""Processes that need not load torch, which takes each of them two seconds.

A server loads the libraries once and forks for every call. A small script takes the place of the command: it hands over
its arguments, folder, environment and streams, passes signals on, and ends as the fork ends. Pipes, signals, exit codes
and files are those of a process; what a process loads when it starts is tested with `tests.cli.installed`.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
import types
import warnings
from pathlib import Path

_LOADED = "torch pandas pyarrow scipy.stats sklearn.ensemble lightgbm ciplearn.cli.app ciplearn.cli.audit"
_LOADED += " ciplearn.cli.training ciplearn.workbench.server ciplearn.workbench.stops"

_SCRIPT = """#!{python} -ISs
import marshal, os, signal, socket, struct, sys
asked = marshal.dumps(({call!r}, [os.fsencode(each) for each in sys.argv[1:]], os.getcwdb(), dict(os.environb)))
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    server.sendall(struct.pack("Q", len(asked)) + asked)
    for stream in range(3):
        # A stream that is closed is handed over as one that is; it was taken by no file, since none was opened before.
        try:
            os.fstat(stream)
            socket.send_fds(server, [b"+"], [stream])
        except OSError:
            server.sendall(b"-")
    pid, = struct.unpack("q", server.recv(8, socket.MSG_WAITALL))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: os.kill(pid, received))
    # The reader of a pipe may leave, and the writer be done.
    with open(os.devnull, "r+b") as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
    ended, = struct.unpack("q", server.recv(8, socket.MSG_WAITALL))
if ended < 0:
    signal.signal(-ended, signal.SIG_DFL)
    os.kill(os.getpid(), -ended)
os._exit(ended)
"""


@functools.cache
def _made():
    """A folder with the two scripts, and the server behind them; both go with this process."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    address = str(folder / "socket")
    for name in ("ciplearn", "python"):
        script = folder / name
        script.write_text(_SCRIPT.format(python=sys.executable, address=address, call=name))
        script.chmod(0o700)
    server = subprocess.Popen(
        [sys.executable, __file__, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
    )
    assert server.stdout.read(1) == b"+", "the server does not start"

    def end():
        server.stdin.close()
        server.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    return folder


def command():
    """A path that stands for the command ``ciplearn``."""
    return str(_made() / "ciplearn")


def python():
    """A path that stands for Python, called with the path of a script."""
    return str(_made() / "python")


def ciplearn(*arguments, **options):
    """Run the command, and return how it ended and what it said."""
    settings = {"capture_output": True, "text": True, "check": False, **options}
    return subprocess.run([command(), *map(str, arguments)], **settings)


class Worker:
    """What the workbench starts with ``python -W ignore -m MODULE``: a fork of the server, in a group of its own.

    Unlike the scripts it is the process itself: what ends its group ends it, and who waits for it has seen it go.
    """

    def __init__(self, command, *, env, stdin, stdout, stderr, text, encoding, start_new_session, address=None):
        assert command[1:4] == ["-W", "ignore", "-m"], command
        assert text
        assert start_new_session
        assert stdin == stdout == stderr == subprocess.PIPE
        environment = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
        asked = marshal.dumps(("module", list(map(os.fsencode, command[4:])), os.getcwdb(), environment))
        self.returncode, self._waiting = None, threading.Lock()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(address or str(_made() / "socket"))
        self._server.sendall(struct.pack("Q", len(asked)) + asked)
        (reads, writes), (said, says), (complained, complains) = os.pipe(), os.pipe(), os.pipe()
        for stream in (reads, says, complains):
            socket.send_fds(self._server, [b"+"], [stream])
            os.close(stream)
        (self.pid,) = struct.unpack("q", self._server.recv(8, socket.MSG_WAITALL))
        self.stdin = open(writes, "w", encoding=encoding)  # noqa: SIM115
        self.stdout, self.stderr = open(said, encoding=encoding), open(complained, encoding=encoding)  # noqa: SIM115

    def wait(self):
        with self._waiting:
            if self.returncode is None:
                (self.returncode,) = struct.unpack("q", self._server.recv(8, socket.MSG_WAITALL))
                self._server.close()
        return self.returncode

    def poll(self):
        if self._waiting.acquire(blocking=False):
            ended = self.returncode is None and bool(select.select([self._server], [], [], 0)[0])
            self._waiting.release()
            if ended:
                return self.wait()
        return self.returncode


def starting(address=None):
    """What stands in the place of `subprocess` where the workbench starts its workers."""
    return types.SimpleNamespace(PIPE=subprocess.PIPE, Popen=functools.partial(Worker, address=address))


def _serve(address):
    for name in _LOADED.split():
        # Of an extra that is not installed nothing is loaded: what needs it is skipped.
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    # What is loaded stays; a fork that looks through it for garbage copies it page by page.
    gc.collect()
    gc.freeze()
    bell, rung = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(rung)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running, left = {}, set()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        os.write(1, b"+")
        while True:
            watched = {pid: client for pid, client in running.items() if pid not in left}
            ready, _, _ = select.select([listener, bell, 0, *watched.values()], [], [])
            if 0 in ready:
                return
            if bell in ready:
                os.read(bell, 1000)
                for pid in list(running):
                    ended, status = os.waitpid(pid, os.WNOHANG)
                    if ended:
                        left.discard(pid)
                        with running.pop(pid) as client, contextlib.suppress(OSError):
                            client.sendall(struct.pack("q", os.waitstatus_to_exitcode(status)))
            for pid, client in watched.items():
                if client in ready and pid in running:
                    # Whoever asked was killed, and cannot pass that on.
                    os.kill(pid, signal.SIGKILL)
                    left.add(pid)
            if listener in ready:
                client, _ = listener.accept()
                call, streams = _asked(client)
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    for other in (listener, client, *running.values()):
                        other.close()
                    _become(*call, streams, address)
                client.sendall(struct.pack("q", pid))
                running[pid] = client
                for stream in streams:
                    if stream is not None:
                        os.close(stream)


def _asked(client):
    (length,) = struct.unpack("Q", client.recv(8, socket.MSG_WAITALL))
    call = marshal.loads(client.recv(length, socket.MSG_WAITALL))
    streams = []
    for _ in range(3):
        _, given, *_ = socket.recv_fds(client, 1, 1)
        streams.append(given[0] if given else None)
    return call, streams


def _become(name, arguments, folder, environment, streams, address):
    """Be the process that was asked for, with the signals, streams and arguments that Python starts with."""
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for place, stream in enumerate(streams):
            if stream is None:
                os.close(place)
            else:
                os.dup2(stream, place)
                os.close(stream)
        os.chdir(folder)
        os.environb.clear()
        os.environb.update(environment)
        for place, (stream, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
            said = None if streams[place] is None else open(place, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, stream, said)
            setattr(sys, f"__{stream}__", said)
        sys.argv = [name, *map(os.fsdecode, arguments)]
        code = _ran(name, address)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def _ran(name, address):
    try:
        if name == "ciplearn":
            from ciplearn.cli import main
            from ciplearn.workbench import runs

            runs.subprocess = starting(address)
            main()
        elif name == "module":
            os.setsid()
            warnings.simplefilter("ignore")
            sys.argv = sys.argv[1:]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = sys.argv[1:]
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:  # noqa: BLE001 (the end of a process, whatever ended it)
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    _serve(sys.argv[1])
