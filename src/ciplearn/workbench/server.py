"""The desk over HTTP: one address for messages, one for tables, one that tells what happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import as_data
from ciplearn.workbench.bundle import bundle_file
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.guard import PAGE, App, Guard
from ciplearn.workbench.protocol import check_message
from ciplearn.workbench.unpacking import unpacks_beyond

# Bytes of a message that is no table.
_LARGEST_MESSAGE = 4_000_000

# A line now and then, so that both ends notice when the other is gone.
_HEARTBEAT_SECONDS = 10.0

# A table of types on the machine may call scripts plain text, and browsers then refuse to run them.
_MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def application(desk: Desk, secret: str, host: str = "127.0.0.1", largest_table: int = 100_000_000) -> App:
    """Return the guarded ASGI application of a desk.

    ``secret``: what every request must know; ``host``: the address that will be listened on; ``largest_table``: bytes
    of a table that may be uploaded.
    """

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
        answer = await run_in_threadpool(desk.answer_checked, content)
        return _json(answer)

    async def table(request: Request) -> Response:
        body = await _body(request, largest_table)
        shown = request.query_params.get("name", "table.csv")
        if body is None or await run_in_threadpool(unpacks_beyond, shown, body, largest_table):
            limit = largest_table // 1_000_000
            words = f"A table may have {limit} MB here, unpacked; name a larger one on the command line: "
            return _json({"error": f"{words}ciplearn workbench TABLE."}, 413)
        answer = await run_in_threadpool(desk.answer, {"do": "table", "name": shown, "content": body})
        return _json(answer)

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

    def hand_over(event: Mapping[str, Any]) -> None:
        loop.call_soon_threadsafe(waiting.put_nowait, event)

    stop = desk.subscribe(hand_over)
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
