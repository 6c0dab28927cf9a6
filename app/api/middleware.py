"""ASGI middleware for all requests: request IDs, origin check, early authentication, body limits and security headers.

These are plain ASGI classes so that bodies are counted while they arrive and event streams are not buffered.

``LimitedHttpProtocol`` has limits that uvicorn lacks. It limits the size and duration of a request head, and how long a
client may leave a response unread. Input that is not HTTP is answered here, with the same JSON shape as every other
error.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.problems import MEDIA_TYPE, Problem, ProblemWhileReading, as_problem
from app.observability.metrics import Metrics
from cache.urls import is_loopback

# The rest of the body is not read, so the connection cannot be reused.
_CLOSE = {"Connection": "close"}
_FOREIGN_ORIGIN = (
    "Requests from other web sites are not accepted. A TLS proxy must set X-Forwarded-Proto: https, and "
    "ASSAY_TRUSTED_PROXIES must name the proxy"
)
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
REQUEST_ID = "X-Request-ID"
_HARMLESS_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
RATE_LIMIT_STATE = "rate_limit"
"""Key of the request state for the headers of the rate limit."""
_log = structlog.get_logger(__name__)
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox",
}


class PreparedRoutes:
    """Prepares the routes in a thread before the first request.

    FastAPI prepares a route when it first compares it with a path, and the backend of anyio is imported when it is
    first used. Both together would stop the event loop for 200 ms.
    """

    def __init__(self, app: ASGIApp, *, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._routes = routes
        self._prepared = False
        self._preparing = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._prepared:
            async with self._preparing:
                if not self._prepared:
                    await asyncio.to_thread(self._prepare)
                    self._prepared = True
        await self._app(scope, receive, send)

    def _prepare(self) -> None:
        import_module("anyio._backends._asyncio")
        for route in self._routes:
            route.matches({"type": "http", "method": "GET", "path": "/-", "root_path": "", "headers": []})


class OriginGuard:
    """Rejects requests that other web sites send through the operator's browser.

    DNS rebinding is visible in ``Host``, a cross-site request in ``Origin``. Without API keys, only loopback names
    are accepted as ``Host``. Behind a TLS proxy, the server takes the scheme from ``X-Forwarded-Proto`` if the settings
    name the proxy.
    """

    def __init__(self, app: ASGIApp, *, loopback_only: Callable[[], bool]) -> None:
        self._app = app
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            problem = self._refuse(Headers(scope=scope), scope["scheme"])
            if problem is not None:
                await problem.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refuse(self, headers: Headers, scheme: str) -> Problem | None:
        host = headers.get("host", "")
        if self._loopback_only() and not is_loopback(_hostname(host)):
            return Problem(
                421,
                "WRONG_HOST",
                "Without API keys, only loopback host names are accepted; use http://127.0.0.1 or create an API key",
            )
        origin = headers.get("origin")
        own_origin = f"{scheme}://{host}"
        if origin is not None and origin.lower() != own_origin.lower():
            return Problem(403, "FOREIGN_ORIGIN", _FOREIGN_ORIGIN)
        return None


def _hostname(host: str) -> str:
    """Return the host name in a Host header, or "" if it is invalid."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class KeyGuard:
    """Rejects requests without a valid key before their body is read. The routes check the scope of the key."""

    def __init__(self, app: ASGIApp, *, find_problem: Callable[[str], Awaitable[Problem | None]]) -> None:
        """``find_problem`` returns the problem with an ``Authorization`` header; None: access is allowed."""
        self._app = app
        self._find_problem = find_problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in _WITH_BODY and scope["path"].startswith("/v1/"):
            problem = await self._find_problem(Headers(scope=scope).get("authorization", ""))
            if problem is not None:
                await problem.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


class BodyLimit:
    """Rejects request bodies that exceed the size limit, whatever their Content-Length, or stop arriving."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_bytes: int,
        idle_timeout_s: float = 30.0,
        timeout_s: float = 300.0,
        max_full_bodies: int = 16,
    ) -> None:
        """Set the limits.

        Args:
            max_bytes: Maximum size of one body.
            idle_timeout_s: Maximum time between two parts of a body.
            timeout_s: Maximum time for a whole body.
            max_full_bodies: All requests together may buffer this many bodies of the maximum size.
        """
        self._app = app
        self._max_bytes = max_bytes
        self._idle_timeout_s = idle_timeout_s
        self._timeout_s = timeout_s
        self._free_bytes = max_full_bodies * max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        content_length = Headers(scope=scope).get("content-length", "")
        if content_length.isdigit() and (len(content_length) > 15 or int(content_length) > self._max_bytes):
            await self._too_large(f"has {content_length[:20]} bytes, and the limit is").response()(scope, receive, send)
            return
        body = _Body(ends=time.monotonic() + self._timeout_s)

        async def receive_counted() -> Message:
            if body.complete:  # the only message that can follow is the disconnect
                return await receive()
            message = await self._next_part(receive, body)
            body.complete = not message.get("more_body", False)
            size = len(message.get("body", b""))
            body.received += size
            self._free_bytes -= size
            if body.received > self._max_bytes:
                raise ProblemWhileReading(self._too_large())
            if self._free_bytes < 0:
                headers = {"Retry-After": "2", **_CLOSE}
                raise ProblemWhileReading(
                    Problem(503, "BUSY", "Too many large requests at the same time; try again in 2 s", headers=headers)
                )
            return message

        try:
            await self._app(scope, receive_counted, send)
        finally:
            self._free_bytes += body.received

    async def _next_part(self, receive: Receive, body: _Body) -> Message:
        try:
            async with asyncio.timeout(min(self._idle_timeout_s, max(0.0, body.ends - time.monotonic()))):
                return await receive()
        except TimeoutError:
            problem = Problem(408, "TOO_SLOW", "The request body stopped arriving or took too long", headers=_CLOSE)
            raise ProblemWhileReading(problem) from None

    def _too_large(self, problem: str = "is larger than") -> Problem:
        detail = f"The request body {problem} {self._max_bytes} bytes"
        return Problem(413, "TOO_LARGE", detail, headers=_CLOSE)


@dataclass(slots=True)
class _Body:
    """Progress of one request body. ``ends`` is its deadline (monotonic clock, seconds)."""

    ends: float
    received: int = 0
    complete: bool = False


class ResponseHeaders:
    """Adds the request ID, the rate limit and the security headers to every response, and updates the request metrics.

    Log events and error responses of the request contain the ID. A request of the dashboard to the API, which runs
    within a request of a browser, has its ID.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        state = scope.setdefault("state", {})
        request_id = state.setdefault("request_id", _request_id(Headers(scope=scope).get(REQUEST_ID, "")))
        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = request_id
                for name, value in state.get(RATE_LIMIT_STATE, {}).items():
                    headers[name] = value
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                # The pattern of the route, not the path: ids must not become label values.
                route = getattr(scope.get("route"), "path", "none")
                self._metrics.requests.labels(scope["method"], route, str(message["status"])).inc()
                self._metrics.request_seconds.labels(route).observe(time.monotonic() - started)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_headers)
            except Exception as error:  # the client gets a response whatever failed; the error is raised again
                _log.error("request failed", error=type(error).__name__)
                if not has_started:
                    await as_problem(error).response()(scope, receive, send_with_headers)
                raise  # the server logs the traceback


def _request_id(sent: str) -> str:
    """Return the ID that the client sent if it is harmless in logs and headers, else a new one."""
    return sent if _HARMLESS_ID.fullmatch(sent) else new_request_id()


def new_request_id() -> str:
    return secrets.token_hex(16)


_CHUNK_BYTES = 8 * 1024
_LINGER_S = 2.0


class LimitedHttpProtocol(HttpToolsProtocol):
    """One client connection."""

    head_timeout_s: ClassVar[float] = 15.0
    """Seconds for a request head, from its first byte or from the opening of the connection."""
    max_head_bytes: ClassVar[int] = 64 * 1024
    write_timeout_s: ClassVar[float] = 60.0
    """Seconds after which a client that does not read its response is disconnected."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._head_bytes = 0
        self._in_head = True
        self._has_head_ended = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        lingering = _LingeringTransport(transport, self.loop, still_sending=lambda: not self._in_head)
        super().connection_made(cast(asyncio.Transport, lingering))
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return  # the response is sent; further input is discarded so that the client can read the response
        if not self._in_head:
            super().data_received(data)
            return
        # In chunks, so that a head without end is detected before all of it is buffered.
        for start in range(0, len(data), _CHUNK_BYTES):
            if self._in_head and self._head_timer is None:
                self._start_head_timer()
            part, self._has_head_ended = data[start : start + _CHUNK_BYTES], False
            super().data_received(part)
            if self.transport.is_closing():
                return
            self._head_bytes = 0 if self._has_head_ended or not self._in_head else self._head_bytes + len(part)
            if self._head_bytes > self.max_head_bytes:
                self._refuse(
                    Problem(431, "HEAD_TOO_LARGE", f"The request head is larger than {self.max_head_bytes} bytes")
                )
                return

    def on_headers_complete(self) -> None:
        self._in_head, self._has_head_ended = False, True
        self._stop_head_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, "NOT_HTTP", "The request is not valid HTTP"))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.write_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().resume_writing()

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._on_head_timeout)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        if not self._head_bytes:
            self.transport.close()  # an idle keep-alive connection
        elif not self.transport.is_closing():
            self._refuse(Problem(408, "TOO_SLOW", f"The request head did not arrive within {self.head_timeout_s:g} s"))

    def _refuse(self, problem: Problem) -> None:
        request_id = new_request_id()
        body = json.dumps({**problem.body(), "request_id": request_id}).encode()
        headers = {
            **SECURITY_HEADERS,
            REQUEST_ID: request_id,
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(f"HTTP/1.1 {problem.status} {problem.title}\r\n{head}\r\n".encode() + body)
        self._in_head = False
        self.transport.close()


class _LingeringTransport:
    """Transport with a lingering close.

    If the client is still sending, an immediate close makes the operating system reset the connection because of the
    unread bytes, and the client never sees the error response. The delayed close lets it read the response first.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, *, still_sending: Callable[[], bool]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._still_sending = still_sending
        self._closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self._still_sending() or self._transport.is_closing() or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(_LINGER_S, self._transport.close)
