"""Requests of both clients: send, read the response by its kind, follow cursors and event streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import Any

import httpx

from assay_client import wire
from assay_client.values import Event


class Sender:
    """Connection to one server. Raises only the exceptions of ``assay_client.errors``."""

    def __init__(
        self,
        url: str = wire.DEFAULT_URL,
        *,
        api_key: str | None = None,
        timeout_s: float = wire.TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = wire.base_url(url)
        self._http = httpx.Client(
            base_url=self.url,
            headers=wire.headers(api_key),
            timeout=timeout_s,
            limits=wire.LIMITS,
            transport=transport,
            trust_env=False,
        )

    def close(self) -> None:
        self._http.close()

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        ready = wire.request_options(options)
        with wire.transport_errors(self.url):
            return wire.checked(self._http.request(method, path, **ready))

    def _json(self, method: str, path: str, **options: Any) -> Any:
        return wire.read_object(self._send(method, path, **options))

    def _items(self, path: str, params: Mapping[str, Any]) -> Iterator[Any]:
        cursor: str | None = None
        while True:
            items, cursor = wire.page(self._json("GET", path, params={**params, **wire.given(cursor=cursor)}))
            yield from items
            if cursor is None:
                return

    def _events(self, path: str, after: str | None) -> Iterator[Event]:
        reader = wire.EventReader()
        with (
            wire.transport_errors(self.url),
            self._http.stream("GET", path, headers=wire.event_headers(after), timeout=None) as response,
        ):
            if response.is_error:
                response.read()
            for line in wire.checked(response).iter_lines():
                event = reader.feed(line)
                if event is not None:
                    yield event


class AsyncSender:
    """``Sender`` for asyncio."""

    def __init__(
        self,
        url: str = wire.DEFAULT_URL,
        *,
        api_key: str | None = None,
        timeout_s: float = wire.TIMEOUT_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = wire.base_url(url)
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=wire.headers(api_key),
            timeout=timeout_s,
            limits=wire.LIMITS,
            transport=transport,
            trust_env=False,
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        ready = wire.request_options(options)
        with wire.transport_errors(self.url):
            return wire.checked(await self._http.request(method, path, **ready))

    async def _json(self, method: str, path: str, **options: Any) -> Any:
        return wire.read_object(await self._send(method, path, **options))

    async def _items(self, path: str, params: Mapping[str, Any]) -> AsyncIterator[Any]:
        cursor: str | None = None
        while True:
            items, cursor = wire.page(await self._json("GET", path, params={**params, **wire.given(cursor=cursor)}))
            for item in items:
                yield item
            if cursor is None:
                return

    async def _events(self, path: str, after: str | None) -> AsyncIterator[Event]:
        reader = wire.EventReader()
        with wire.transport_errors(self.url):
            async with self._http.stream("GET", path, headers=wire.event_headers(after), timeout=None) as response:
                if response.is_error:
                    await response.aread()
                async for line in wire.checked(response).aiter_lines():
                    event = reader.feed(line)
                    if event is not None:
                        yield event
