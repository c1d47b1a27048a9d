"""``ciplearn workbench``: draw, judge, train and look, on a page of one's own machine."""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from ciplearn._core.errors import InputError, MissingDependencyError
from ciplearn.cli import options
from ciplearn.cli.output import complain, note, say, say_json
from ciplearn.cli.parsing import of_panel

_option = of_panel()


def workbench(
    table: Annotated[Path | None, typer.Argument(help="A CSV, TSV or Parquet file.", metavar="[TABLE]")] = None,
    graph: Annotated[str | None, _option("A graph file, or the graph itself: 'S -> A, A -> Y'.", "GRAPH")] = None,
    model: Annotated[Path | None, _option("A model folder of ciplearn fit, to look at.", "FOLDER")] = None,
    demo: Annotated[bool, _option("Start with the demo's graph and table.", None, "--demo")] = False,
    folder: Annotated[
        Path | None,
        _option("Where the work is kept. Default: a folder of your own for each TABLE, GRAPH and FOLDER.", "FOLDER"),
    ] = None,
    port: Annotated[int, _option("0 takes the last one, or a free one.", "NUMBER", min=0, max=65535)] = 0,
    host: Annotated[
        str, _option("The address to listen on; any but 127.0.0.1 opens the page to others.", "ADDRESS")
    ] = "127.0.0.1",
    browser: Annotated[bool, _option("Open the browser.")] = True,
    largest_table: Annotated[int, _option("Megabytes of an unpacked table from the page.", "NUMBER", min=1)] = 100,
    as_json: options.Json = False,
) -> None:
    """Draw a causal graph, see the verdict, train and walk along the frontier, in the browser.

    For example:
      ciplearn workbench people.csv --graph graph.txt
    """
    try:
        import uvicorn

        from ciplearn.workbench.server import application
    except ImportError as error:
        raise MissingDependencyError(
            f"The workbench needs {error.name}, which is not installed; pip install 'ciplearn[workbench]'."
        ) from error
    from ciplearn.workbench.bundle import bundle_file
    from ciplearn.workbench.desk import opened
    from ciplearn.workbench.guard import is_loopback
    from ciplearn.workbench.store import InUseError, Store, default_folder

    bundle_file("index.html")
    about = [str(path.resolve()) if path is not None else "" for path in (table, model)]
    try:
        store = Store(folder or default_folder(*about, graph or "", "demo" if demo else ""))
    except InUseError as elsewhere:
        complain(f"ciplearn: {elsewhere}")
        raise typer.Exit(1) from elsewhere
    drawn = None if graph is None else options.read_graph(graph)
    desk = opened(store, table=table, graph=drawn, model=model, demo=demo)
    secret = secrets.token_urlsafe(32)
    listening = _listen(host, port or store.port, fixed=bool(port))
    taken = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{taken}/?token={secret}"
    page = store.serving(address, taken)
    if as_json:
        say_json({"address": address, "folder": str(store.folder)})
    else:
        say(f"Workbench: {address}")
        say(f"Work is kept in {store.folder}. Ctrl-C stops the server; what was saved stays.")
    sys.stdout.flush()
    if not is_loopback(host):
        note("others who reach this machine and know the address can use this page.")
    if browser:
        # Not before the server answers, and never in its way.
        threading.Timer(0.3, webbrowser.open, (page.as_uri(),)).start()

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # Streams of events have no end of their own, and would be cut off with a traceback.
            desk.tell({"event": "end"})
            super().handle_exit(sig, frame)

    settings = uvicorn.Config(
        application(desk, secret, host, largest_table * 1_000_000),
        log_level="warning",
        timeout_graceful_shutdown=1,
        server_header=False,
    )
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
