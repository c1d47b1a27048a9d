"""A client that hands requests straight to an application: no socket, and every header as it is asked for."""

import asyncio
import json
from dataclasses import dataclass
from urllib.parse import unquote, urlencode


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def text(self):
        return self.body.decode()


class Client:
    def __init__(self, app, host="127.0.0.1:8765"):
        self.app, self.host = app, host

    def get(self, path, **query):
        return self.request("GET", path, query=query)

    def post(self, path, content, headers=None, query=None, kind="application/json"):
        pieces = content if not isinstance(content, dict) else json.dumps(content).encode()
        return self.request("POST", path, pieces, {"content-type": kind, **(headers or {})}, query)

    def request(self, method, path, content=b"", headers=None, query=None):
        pieces = [content] if isinstance(content, bytes) else list(content)
        said = {"host": self.host, **(headers or {})}
        if isinstance(content, bytes):
            said.setdefault("content-length", str(len(content)))
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": unquote(path),
            "raw_path": path.encode(), "query_string": urlencode(query or {}).encode(), "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in said.items()],
        }  # fmt: skip
        return asyncio.run(self._asked(scope, pieces))

    async def _asked(self, scope, pieces):
        parts = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        parts.append({"type": "http.request", "body": b"", "more_body": False})
        sent = []

        async def receive():
            return parts.pop(0) if parts else {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], headers, b"".join(part.get("body", b"") for part in sent[1:]))
