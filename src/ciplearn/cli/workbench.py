"""``ciplearn workbench``: draw, judge, train and look, on a page of one's own machine."""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import threading
import webbrowser
from types import FrameType

import typer

from ciplearn._core.errors import InputError, MissingDependencyError
from ciplearn.cli import options
from ciplearn.cli.commands import Workbench
from ciplearn.cli.output import complain, note, say, say_json


def workbench(asked: Workbench) -> None:
    """Serve the page until somebody stops it."""
    try:
        import uvicorn

        from ciplearn.workbench.server import application
    except ImportError as error:
        raise MissingDependencyError(
            f"The workbench needs {error.name}, which is not installed; pip install 'ciplearn[workbench]'."
        ) from error
    from ciplearn.workbench import bundle_file
    from ciplearn.workbench.desk import opened
    from ciplearn.workbench.server import is_loopback
    from ciplearn.workbench.store import InUseError, default_folder

    bundle_file("index.html")
    drawn = None if asked.graph is None else options.read_graph(asked.graph)
    about = [str(path.resolve()) if path is not None else "" for path in (asked.table, asked.model)]
    folder = asked.folder or default_folder(*about, asked.graph or "", "demo" if asked.demo else "")
    try:
        desk = opened(folder, table=asked.table, graph=drawn, model=asked.model, demo=asked.demo)
    except InUseError as elsewhere:
        complain(f"ciplearn: {elsewhere}")
        raise typer.Exit(1) from elsewhere
    secret = secrets.token_urlsafe(32)
    host, listening = asked.host, _listen(asked.host, asked.port or desk.store.port, fixed=bool(asked.port))
    taken = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{taken}/?token={secret}"
    page = desk.store.serving(address, taken)
    if asked.as_json:
        say_json({"address": address, "folder": str(desk.store.folder)})
    else:
        say(f"Workbench: {address}")
        say(f"Work is kept in {desk.store.folder}. Ctrl-C stops the server; what was saved stays.")
    sys.stdout.flush()
    if not is_loopback(host):
        note("others who reach this machine and know the address can use this page.")
    if asked.browser:
        # Not before the server answers, and never in its way.
        threading.Timer(0.3, webbrowser.open, (page.as_uri(),)).start()

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # Streams of events have no end of their own, and would be cut off with a traceback.
            desk.tell({"event": "end"})
            super().handle_exit(sig, frame)

    served = application(desk, secret, host, asked.largest_table * 1_000_000)
    settings = uvicorn.Config(served, log_level="warning", timeout_graceful_shutdown=1, server_header=False)
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
        # The server knows how to end at a SIGTERM, and nothing of a terminal that is closed.
        signal.signal(hangup, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        Server(settings).run(sockets=[listening])
    except KeyboardInterrupt:
        complain("ciplearn: stopped; what was saved stays.")
    finally:
        desk.close()


def _listen(host: str, port: int, *, fixed: bool) -> socket.socket:
    """Take the port; where it is only the last one and taken, a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (port, 0):
        taken = socket.socket(family, socket.SOCK_STREAM)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((host, wanted))
            taken.listen(128)
            return taken
        except OSError as error:
            taken.close()
            if fixed or wanted == 0:
                raise InputError(
                    f"{host}:{wanted} cannot be listened on: {error.strerror or error}; pass another --port or --host."
                ) from error
    raise InputError(f"{host} has no free port; pass --port.")
