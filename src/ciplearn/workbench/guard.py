"""`Guard`: what stands between the desk and everybody else who can reach the port.

A page of another site can make this browser send requests here, and a name of theirs can be made to point here. So a
request needs the secret of the address, must be addressed to a name of this machine, and must not come from a page of
another origin. Answers forbid scripts of other origins, inline scripts, and being framed.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

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


class Guard:
    """Refuses, or lets through and adds `HEADERS`.

    ``host``: the address that is listened on. A loopback address admits requests to loopback names only; any other
    admits addresses in digits, which no name of another site can be mistaken for.
    """

    def __init__(self, app: App, secret: str, host: str = "127.0.0.1") -> None:
        self.app = app
        self.secret = secret
        self.host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on or answer it with a refusal."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            # No other protocol is spoken here.
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        if refusal is None:
            await self.app(scope, receive, guarded)
            return
        body = json.dumps({"error": refusal}).encode() if scope["method"] != "GET" else refusal.encode()
        kind = b"application/json" if scope["method"] != "GET" else b"text/plain; charset=utf-8"
        await guarded({"type": "http.response.start", "status": 403, "headers": [(b"content-type", kind)]})
        await guarded({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> str | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return (
                f"This server does not answer to {host[:80]!r}; open the address that ciplearn workbench has printed."
            )
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return f"Requests from {origin[:80]!r} are refused; open the workbench itself."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and scope["path"] != "/":
            return "Requests from other sites are refused; open the workbench itself."
        if scope["method"] == "GET" and scope["path"] in PAGE:
            return None
        return None if self._has_secret(scope, headers) else _NO_SECRET

    def _has_secret(self, scope: Scope, headers: dict[str, str]) -> bool:
        asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        given = headers.get("x-token") or (asked[0] if scope["method"] == "GET" and asked else "")
        return hmac.compare_digest(given.encode(), self.secret.encode())

    def _is_ours(self, host: str) -> bool:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]")
        if name == "localhost":
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            # A host that was named on the command line answers to that name.
            return name == self.host
        return address.is_loopback or not is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
