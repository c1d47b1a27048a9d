"""The desk over HTTP: one address for messages, one for tables, one that tells what happens; and who may reach it.

A page of another site can make this browser send requests here, and a name of theirs can be made to point here. So a
request needs the secret of the address, must be addressed to a name of this machine, and must not come from a page of
another origin. Answers forbid scripts of other origins, inline scripts, and being framed.
"""

from __future__ import annotations

import asyncio
import gzip
import hmac
import io
import ipaddress
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from itertools import accumulate
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import as_data
from ciplearn.workbench import bundle_file
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.protocol import check_message

_LARGEST_MESSAGE = 4_000_000  # bytes of a message that is no table
_HEARTBEAT_SECONDS = 10.0  # a line now and then, so that both ends notice when the other is gone
_BLOCK = 1 << 20  # bytes that are unpacked at a time
_ROWS = 1024  # of a Parquet file that are held at a time

# A table of types on the machine may call scripts plain text, and browsers then refuse to run them.
_MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

_NO_SECRET = (
    "This request lacks the secret of the server, which is new at every start. Open the whole address that ciplearn "
    "workbench has printed last."
)

# The page and its bundle: the same for everybody, no secret of anyone. Without the secret, the page says what to do.
PAGE = ("/", "/workbench.js", "/page.js", "/workbench.css", "/icon.svg")

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def application(desk: Desk, secret: str, host: str = "127.0.0.1", largest_table: int = 100_000_000) -> ASGIApp:
    """Return the ASGI application of a desk behind a `Guard`; a table may have ``largest_table`` bytes."""

    async def asset(request: Request) -> Response:
        path = bundle_file(request.url.path.lstrip("/") or "index.html")
        return FileResponse(path, media_type=_MEDIA_TYPES[path.suffix])

    async def message(request: Request) -> Response:
        if not request.headers.get("content-type", "").startswith("application/json"):
            return _json({"error": "A message is JSON; send it as application/json."}, 415)
        body = await _body(request, _LARGEST_MESSAGE)
        if body is None:
            return _json({"error": f"A message has at most {_LARGEST_MESSAGE} bytes; send less."}, 413)
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            return _json({"error": "This message is not JSON; reload the page."}, 400)
        try:
            check_message(content)
        except InputError as problem:
            return _json({"error": str(problem)}, 400)
        return _json(await run_in_threadpool(desk.answer_checked, content))

    async def table(request: Request) -> Response:
        body = await _body(request, largest_table)
        shown = request.query_params.get("name", "table.csv")
        if body is None or await run_in_threadpool(unpacks_beyond, shown, body, largest_table):
            limit = largest_table // 1_000_000
            words = f"A table may have {limit} MB here, unpacked; name a larger one on the command line: "
            return _json({"error": f"{words}ciplearn workbench TABLE."}, 413)
        return _json(await run_in_threadpool(desk.answer, {"do": "table", "name": shown, "content": body}))

    async def events(request: Request) -> Response:
        return StreamingResponse(_told(desk), media_type="text/event-stream")

    starlette = Starlette(
        routes=[
            *(Route(path, asset) for path in PAGE),
            Route("/message", message, methods=["POST"]),
            Route("/table", table, methods=["POST"]),
            Route("/events", events),
        ]
    )
    return Guard(starlette, secret, host)


async def _told(desk: Desk) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
    stop = desk.subscribe(lambda event: loop.call_soon_threadsafe(waiting.put_nowait, event))
    try:
        # The page compares this with the server it knew, and asks for everything anew where they differ.
        yield f"retry: 1000\ndata: {json.dumps({'event': 'server', 'instance': desk.instance})}\n\n"
        while True:
            try:
                event = await asyncio.wait_for(waiting.get(), _HEARTBEAT_SECONDS)
                if event["event"] == "end":
                    return
                yield f"data: {json.dumps(as_data(event), ensure_ascii=False)}\n\n"
            except TimeoutError:
                yield ": still here\n\n"
    finally:
        stop()


async def _body(request: Request, largest: int) -> bytes | None:
    """Return the body, or None once it is too large: no more than the limit is ever held."""
    announced = request.headers.get("content-length", "0")
    if not announced.isdigit() or int(announced) > largest:
        return None
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > largest:
            return None
        parts.append(part)
    return b"".join(parts)


def _json(content: Mapping[str, Any], status: int = 200) -> Response:
    text = json.dumps(as_data(content), ensure_ascii=False, allow_nan=False)
    return Response(text, status, media_type="application/json")


class Guard:
    """Refuses, or lets through and adds `HEADERS`.

    ``host``: the address that is listened on. A loopback address admits requests to loopback names only; any other
    admits addresses in digits, which no name of another site can be mistaken for.
    """

    def __init__(self, app: ASGIApp, secret: str, host: str = "127.0.0.1") -> None:
        self.app = app
        self.secret = secret
        self.host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on or answer it with a refusal."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # no other protocol is spoken here
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal, answer = self._refusal(Request(scope)), self.app
        if refusal is not None:
            by_hand = scope["method"] == "GET"
            answer = PlainTextResponse(refusal, 403) if by_hand else _json({"error": refusal}, 403)
        await answer(scope, receive, guarded)

    def _refusal(self, request: Request) -> str | None:
        headers, is_get = request.headers, request.method == "GET"
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_ours(host):
            return (
                f"This server does not answer to {host[:80]!r}; open the address that ciplearn workbench has printed."
            )
        if origin is not None and origin != f"http://{host}":
            return f"Requests from {origin[:80]!r} are refused; open the workbench itself."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and request.scope["path"] != "/":
            return "Requests from other sites are refused; open the workbench itself."
        if is_get and request.scope["path"] in PAGE:
            return None
        given = headers.get("x-token") or (request.query_params.get("token", "") if is_get else "")
        return None if hmac.compare_digest(given.encode(), self.secret.encode()) else _NO_SECRET

    def _is_ours(self, host: str) -> bool:
        name = (host if host.endswith("]") else host.rsplit(":", 1)[0]).strip("[]")
        # A host that was named on the command line answers to that name.
        return is_loopback(name) or (name == self.host if _address(name) is None else not is_loopback(self.host))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def unpacks_beyond(name: str, content: bytes, largest: int) -> bool:
    """Whether a table has more bytes than the limit, packed or unpacked; one that cannot be read has none."""
    if name.lower().endswith(".gz"):
        return _gzip_beyond(content, largest)
    return len(content) > largest or (name.lower().endswith(".parquet") and _parquet_beyond(content, largest))


def _gzip_beyond(content: bytes, largest: int) -> bool:
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            while size <= largest and (block := stream.read(_BLOCK)):
                size += len(block)
    except (OSError, EOFError, zlib.error):
        return False
    return size > largest


def _parquet_beyond(content: bytes, largest: int) -> bool:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        return False  # then the reader cannot read it either, and says what is missing
    try:
        about = ParquetFile(io.BytesIO(content))
        columns = [about.schema.column(number) for number in range(len(about.schema))]
        # Text that is repeated stays as it is in the file: the text once, and its number in every row.
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        file = ParquetFile(io.BytesIO(content), read_dictionary=texts)
        # A cell that is repeated costs nothing in the file, and two bytes at least as text.
        if 2 * file.metadata.num_rows * file.metadata.num_columns > largest:
            return True
        sizes = (sum(map(_written_out, batch.columns)) for batch in file.iter_batches(batch_size=_ROWS))
        return any(so_far > largest for so_far in accumulate(sizes))
    except (ArrowException, OSError):
        return False


def _written_out(column: Any) -> int:
    """Bytes of a column of Arrow's with each label written out in every row."""
    from pyarrow import compute, types

    if not types.is_dictionary(column.type):
        return int(column.nbytes)
    labels = column.dictionary
    if not (types.is_string(labels.type) or types.is_large_string(labels.type) or types.is_binary(labels.type)):
        return int(labels.nbytes) // max(1, len(labels)) * len(column)
    lengths = compute.take(compute.binary_length(labels), column.indices)
    return int(column.indices.nbytes) + int(compute.sum(lengths).as_py() or 0)
