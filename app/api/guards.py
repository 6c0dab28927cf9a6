"""What every request passes before anything reads it: where it comes from, and how much it sends.

Plain ASGI, so that a body is counted while it arrives and an event stream is left alone.
"""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import Problem, ProblemWhileReading
from app.metrics import Metrics
from app.settings import is_loopback

# The rest of the body is not read, so the connection cannot be used again.
_HANG_UP = {"Connection": "close"}
_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox",
}


class OriginGuard:
    """Keeps other web sites, opened in the operator's browser, away from the service.

    A page whose name was re-pointed at us (DNS rebinding) shows in ``Host``, one that merely sends
    requests here shows in ``Origin``. Without keys only loopback names are ours.
    """

    def __init__(self, app: ASGIApp, *, loopback_only: bool) -> None:
        self._app = app
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            problem = self._refuse(Headers(scope=scope))
            if problem is not None:
                await problem.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refuse(self, headers: Headers) -> Problem | None:
        host = headers.get("host", "")
        if self._loopback_only and not is_loopback(_hostname(host)):
            return Problem(421, "WRONG_HOST", "this service answers to loopback names only")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return Problem(403, "FOREIGN_ORIGIN", "requests from other web sites are refused")
        return None


def _hostname(host: str) -> str:
    """The name in a Host header, empty where there is none to be read."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class BodyLimit:
    """Ends a request whose body grows beyond the limit, whatever length it announced, or stops arriving."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, silence_s: float = 30.0) -> None:
        """``silence_s``: how long a client may keep us waiting for the next part."""
        self._app = app
        self._max_bytes = max_bytes
        self._silence_s = silence_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdigit() and (len(announced) > 15 or int(announced) > self._max_bytes):
            await self._too_large().response()(scope, receive, send)
            return
        received, complete = 0, False

        async def counted() -> Message:
            nonlocal received, complete
            if complete:  # what comes now is only that the client went away, whenever that may be
                return await receive()
            try:
                async with asyncio.timeout(self._silence_s):
                    message = await receive()
            except TimeoutError:
                late = Problem(408, "TOO_SLOW", "the body stopped arriving", headers=_HANG_UP)
                raise ProblemWhileReading(late) from None
            complete = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise ProblemWhileReading(self._too_large())
            return message

        await self._app(scope, counted, send)

    def _too_large(self) -> Problem:
        detail = f"a request may have at most {self._max_bytes} bytes"
        return Problem(413, "TOO_LARGE", detail, headers=_HANG_UP)


class ResponseHeaders:
    """Adds the security headers to every answer, and counts it."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()

        async def finished(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                # The route's pattern and never the path: ids must not become label values.
                route = getattr(scope.get("route"), "path", "none")
                self._metrics.requests.labels(scope["method"], route, str(message["status"])).inc()
                self._metrics.request_seconds.labels(route).observe(time.monotonic() - started)
            await send(message)

        await self._app(scope, receive, finished)
