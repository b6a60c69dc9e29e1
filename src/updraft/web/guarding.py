"""What holds for every request and every answer, before any of them is looked at."""

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_ADDRESS = 2048
"""The longest path with its query, in bytes as they were sent."""

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Lets through GET and HEAD without a body, of a bounded address; tells browsers what pages may do."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refused = _refused(scope)
        if refused is None:
            await self._application(scope, receive, guarded)
        else:
            status, text, more = refused
            await PlainTextResponse(f"{text}\n", status, more)(scope, receive, guarded)


def _refused(scope: Scope) -> tuple[int, str, dict[str, str]] | None:
    """Why this isn't answered, as status, sentence and headers; None where it is."""
    headers: dict[bytes, Any] = dict(scope["headers"])
    if scope["method"] not in ("GET", "HEAD"):
        return 405, "nothing can be changed here", {"allow": "GET, HEAD", "connection": "close"}
    if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
        return 413, "a question has no body", {"connection": "close"}
    if len(scope["raw_path"]) + len(scope["query_string"]) > MOST_ADDRESS:
        return 414, "the address is too long", {}
    return None
