"""httpx transport that calls an ASGI application in the same process and streams its response.

``httpx.ASGITransport`` returns a response only after its whole body, so it cannot be used for event streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.types import ASGIApp, Message, Scope


class InProcessTransport(httpx.AsyncBaseTransport):
    """Transport that sends all requests to one ASGI application, without a socket."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            httpx.ReadError: The application ended without a response.
        """
        exchange = _Exchange(await request.aread())
        task = asyncio.create_task(exchange.run(self._app, _scope(request)))
        try:
            start = await exchange.next()
        except BaseException:
            await _stop(task)
            raise
        if start is None:
            await _stop(task)
            raise httpx.ReadError("the application ended without a response", request=request)
        return httpx.Response(start["status"], headers=start["headers"], stream=_Body(exchange, task))


class _Exchange:
    """ASGI messages of one request and its response."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self._receive, self._send)
        finally:
            self._messages.put_nowait(None)

    async def next(self) -> Message | None:
        return await self._messages.get()

    async def _send(self, message: Message) -> None:
        self._messages.put_nowait(message)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        # The client disconnects only by cancelling the task.
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}


class _Body(httpx.AsyncByteStream):
    """Response body. Closing it stops the application's task."""

    def __init__(self, exchange: _Exchange, task: asyncio.Task[None]) -> None:
        self._exchange = exchange
        self._task = task

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (message := await self._exchange.next()) is not None:
            yield message.get("body", b"")
            if not message.get("more_body", False):
                return

    async def aclose(self) -> None:
        await _stop(self._task)


async def _stop(task: asyncio.Task[None]) -> None:
    """Stop the application's task. The application itself answers and logs its exceptions."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()


def _scope(request: httpx.Request) -> dict[str, Any]:
    path = request.url.raw_path.partition(b"?")[0]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": path,
        "root_path": "",
        "query_string": request.url.query,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": None,
        "server": (request.url.host, request.url.port),
        "extensions": {},
    }
