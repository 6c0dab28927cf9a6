"""What every request passes before anything reads it: where it comes from, and how much it sends.

Plain ASGI, so that a body is counted while it arrives and an event stream is left alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.extension_origin import PAIRING_PATH, from_extension
from app.api.problems import Problem, ProblemWhileReading
from app.observability.metrics import Metrics
from app.settings import is_loopback

# The rest of the body is not read, so the connection cannot be used again.
_HANG_UP = {"Connection": "close"}
_SMALL_BYTES = 4096
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
SECURITY_HEADERS = {
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

    def __init__(self, app: ASGIApp, *, loopback_only: Callable[[], bool]) -> None:
        self._app = app
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            problem = self._refuse(Headers(scope=scope), scope["path"])
            if problem is not None:
                await problem.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refuse(self, headers: Headers, path: str) -> Problem | None:
        host = headers.get("host", "")
        if self._loopback_only() and not is_loopback(_hostname(host)):
            return Problem(421, "WRONG_HOST", "this service answers to loopback names only")
        origin = headers.get("origin")
        if origin is not None and from_extension(origin, path):
            return None
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return Problem(403, "FOREIGN_ORIGIN", "requests from other web sites are refused")
        return None


def _hostname(host: str) -> str:
    """The name in a Host header, empty where there is none to be read."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class KeyGuard:
    """Sends strangers away before anything of their body is read. What a key opens is decided at each call."""

    def __init__(self, app: ASGIApp, *, stranger: Callable[[str, str], Awaitable[Problem | None]]) -> None:
        """``stranger`` says what is wrong with an ``Authorization`` for a path, if anything is."""
        self._app = app
        self._stranger = stranger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in _WITH_BODY and scope["path"].startswith("/v1/"):
            headers = Headers(scope=scope)
            if scope["path"] == PAIRING_PATH:  # whoever has a code has no key yet, and little to say
                problem = _not_small(headers)
            else:
                problem = await self._stranger(headers.get("authorization", ""), scope["path"])
            if problem is not None:
                await problem.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _not_small(headers: Headers) -> Problem | None:
    announced = headers.get("content-length", "")
    if announced.isdigit() and len(announced) <= 4 and int(announced) <= _SMALL_BYTES:
        return None
    detail = f"this call takes at most {_SMALL_BYTES} bytes, announced by Content-Length"
    return Problem(413, "TOO_LARGE", detail, headers=_HANG_UP)


class BodyLimit:
    """Ends a request whose body grows beyond the limit, whatever length it announced, or stops arriving."""

    def __init__(
        self, app: ASGIApp, *, max_bytes: int, silence_s: float = 30.0, whole_s: float = 300.0, at_once: int = 16
    ) -> None:
        """``silence_s``: how long a client may keep us waiting for the next part, ``whole_s``: for all of them.
        ``at_once``: how many bodies of ``max_bytes`` may be held together, by all requests."""
        self._app = app
        self._max_bytes = max_bytes
        self._silence_s = silence_s
        self._whole_s = whole_s
        self._room = at_once * max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdigit() and (len(announced) > 15 or int(announced) > self._max_bytes):
            await self._too_large().response()(scope, receive, send)
            return
        body = _Body(ends=time.monotonic() + self._whole_s)

        async def counted() -> Message:
            if body.complete:  # what comes now is only that the client went away, whenever that may be
                return await receive()
            message = await self._next_part(receive, body)
            body.complete = not message.get("more_body", False)
            size = len(message.get("body", b""))
            body.received += size
            self._room -= size
            if body.received > self._max_bytes:
                raise ProblemWhileReading(self._too_large())
            if self._room < 0:
                headers = {"Retry-After": "2", **_HANG_UP}
                raise ProblemWhileReading(Problem(503, "BUSY", "too many large requests at once", headers=headers))
            return message

        try:
            await self._app(scope, counted, send)
        finally:
            self._room += body.received

    async def _next_part(self, receive: Receive, body: _Body) -> Message:
        try:
            async with asyncio.timeout(min(self._silence_s, max(0.0, body.ends - time.monotonic()))):
                return await receive()
        except TimeoutError:
            late = Problem(408, "TOO_SLOW", "the body stopped arriving, or takes too long", headers=_HANG_UP)
            raise ProblemWhileReading(late) from None

    def _too_large(self) -> Problem:
        detail = f"a request may have at most {self._max_bytes} bytes"
        return Problem(413, "TOO_LARGE", detail, headers=_HANG_UP)


@dataclass(slots=True)
class _Body:
    """What has come of a body. ``ends``: when all of it must be there (seconds, monotonic)."""

    ends: float
    received: int = 0
    complete: bool = False


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
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                # The route's pattern and never the path: ids must not become label values.
                route = getattr(scope.get("route"), "path", "none")
                self._metrics.requests.labels(scope["method"], route, str(message["status"])).inc()
                self._metrics.request_seconds.labels(route).observe(time.monotonic() - started)
            await send(message)

        await self._app(scope, receive, finished)
