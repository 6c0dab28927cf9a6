"""Access to the HTTP API with the viewer's key. All data of the dashboard comes from here.

``httpx.ASGITransport`` returns a response only after its whole body, so it cannot be used for event streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, TypeAlias

import httpx
from starlette.types import ASGIApp, Message, Scope
from structlog.contextvars import get_contextvars

from assay_client import wire
from assay_client.errors import ServerUnreachable

BASE_URL = "http://localhost"
TIMEOUT_S = 60.0
MAX_PAGE_SIZE = 200
"""Maximum page size of the API's lists."""


FormField: TypeAlias = tuple[str | None, bytes, str]
"""Form field: file name (None: not a file), content, media type."""


class Api:
    """Client of the API with the viewer's key. Raises only the exceptions of ``assay_client.errors``."""

    def __init__(self, app: ASGIApp, key: str | None) -> None:
        self._http = httpx.AsyncClient(
            transport=InProcessTransport(app),
            base_url=BASE_URL,
            headers=wire.headers(key),
            timeout=None,  # noqa: S113 - ``request`` has its own timeout, and event streams can be idle for any time
        )

    async def get(self, path: str, **params: str | int | Sequence[str] | None) -> Any:
        """Return the JSON at ``path``."""
        return wire.read_json(await self.request("GET", path, params=wire.given(**params)))

    async def get_or_none(self, path: str, **params: str | int | None) -> Any | None:
        """Return the JSON at ``path``, or None if the API returns 404."""
        response = await self.request("GET", path, params=wire.given(**params))
        return None if response.status_code == httpx.codes.NOT_FOUND else wire.read_json(response)

    async def text(self, path: str) -> str | None:
        """Return the text at ``path``, or None if the API returns 404."""
        response = await self.request("GET", path)
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        if response.is_error:
            wire.read_json(response)
        return response.text

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send ``body`` as JSON and return the JSON of the response."""
        return wire.read_json(await self.request("POST", path, body=body))

    async def put_form(self, path: str, fields: Mapping[str, FormField]) -> Any:
        return wire.read_json(await self.request("PUT", path, fields=fields))

    async def items(self, path: str, *, at_most: int, **params: str | int | None) -> list[dict[str, Any]]:
        """Return up to ``at_most`` items of a list, newest first."""
        collected: list[dict[str, Any]] = []
        cursor: str | None = None
        while len(collected) < at_most:
            limit = min(MAX_PAGE_SIZE, at_most - len(collected))
            items, cursor = wire.page(await self.get(path, limit=limit, cursor=cursor, **params))
            collected += items
            if cursor is None:
                break
        return collected

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        tag: str | None = None,
        fields: Mapping[str, FormField] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """Return the response with any status. With ``tag``, the status is 304 if the entity tag is unchanged.

        Raises:
            ServerUnreachable: No response within ``TIMEOUT_S``.
        """
        headers = {} if tag is None else {"If-None-Match": tag}
        with wire.transport_errors(BASE_URL):
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    return await self._http.request(
                        method, path, params=params, headers=headers, files=fields, json=body
                    )
            except TimeoutError:
                raise ServerUnreachable(BASE_URL, f"no response within {TIMEOUT_S:g} s") from None

    async def events(self, path: str) -> AsyncIterator[Any]:
        """Yield the JSON of each server-sent event until the stream ends."""
        reader = wire.EventReader()
        with wire.transport_errors(BASE_URL):
            async with self._http.stream("GET", path, headers={"Accept": "text/event-stream"}) as response:
                if response.is_error:
                    await response.aread()
                    wire.read_json(response)
                async for line in response.aiter_lines():
                    event = reader.feed(line)
                    if event is not None:
                        yield event.data

    async def aclose(self) -> None:
        await self._http.aclose()


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
        except BaseException:  # cancellation too must stop the request
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
        "state": {name: value for name, value in get_contextvars().items() if name == "request_id"},
    }
