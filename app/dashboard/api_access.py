"""The JSON API as one viewer may use it. Everything that the dashboard shows comes through here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeAlias

import httpx
from starlette.types import ASGIApp

from app.client import wire
from app.client.errors import ServerUnreachable
from app.dashboard.in_process import InProcess

BASE_URL = "http://localhost"
DEADLINE_S = 60.0
PAGE = 200
"""The most that a list of the API gives at once."""


FormField: TypeAlias = tuple[str | None, bytes, str]
"""A field of a form: its file's name (None: it is no file), what it holds, and the media type of that."""


class Api:
    """Calls the API with the viewer's key. Raises only ``app.client.errors``."""

    def __init__(self, app: ASGIApp, key: str | None) -> None:
        self._http = httpx.AsyncClient(
            transport=InProcess(app),
            base_url=BASE_URL,
            headers=wire.headers(key),
            timeout=None,  # noqa: S113 - ``request`` has a deadline, and a stream is silent for as long as nothing happens
        )

    async def get(self, path: str, **params: str | int | None) -> Any:
        """The JSON at ``path``."""
        return wire.read(await self.request("GET", path, params=wire.query(**params)))

    async def maybe(self, path: str, **params: str | int | None) -> Any | None:
        """The same; None where there is no such thing."""
        response = await self.request("GET", path, params=wire.query(**params))
        return None if response.status_code == httpx.codes.NOT_FOUND else wire.read(response)

    async def text(self, path: str) -> str | None:
        """A body of text; None where there is none."""
        response = await self.request("GET", path)
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        if response.is_error:
            wire.read(response)
        return response.text

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """``body`` goes as JSON."""
        return wire.read(await self.request("POST", path, body=body))

    async def delete(self, path: str) -> Any:
        return wire.read(await self.request("DELETE", path))

    async def put_form(self, path: str, fields: Mapping[str, FormField]) -> Any:
        return wire.read(await self.request("PUT", path, fields=fields))

    async def items(self, path: str, *, at_most: int, **params: str | int | None) -> list[dict[str, Any]]:
        """Up to ``at_most`` items of a list, newest first."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while len(found) < at_most:
            limit = min(PAGE, at_most - len(found))
            items, cursor = wire.page(await self.get(path, limit=limit, cursor=cursor, **params))
            found += items
            if cursor is None:
                break
        return found

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
        """The whole answer, whatever its status; 304 where it still has the entity tag ``tag``.

        Raises:
            ServerUnreachable: none came in time.
        """
        headers = {} if tag is None else {"If-None-Match": tag}
        with wire.translated(BASE_URL):
            try:
                async with asyncio.timeout(DEADLINE_S):
                    return await self._http.request(
                        method, path, params=params, headers=headers, files=fields, json=body
                    )
            except TimeoutError:
                raise ServerUnreachable(BASE_URL, f"no answer within {DEADLINE_S:g} s") from None

    async def events(self, path: str) -> AsyncIterator[Any]:
        """The JSON of each server-sent event, until the stream ends."""
        reader = wire.EventReader()
        with wire.translated(BASE_URL):
            async with self._http.stream("GET", path, headers={"Accept": "text/event-stream"}) as response:
                if response.is_error:
                    await response.aread()
                    wire.read(response)
                async for line in response.aiter_lines():
                    event = reader.feed(line)
                    if event is not None:
                        yield event.data

    async def aclose(self) -> None:
        await self._http.aclose()


def pretty(data: Any) -> str:
    """JSON for people."""
    return json.dumps(data, indent=2, ensure_ascii=False)
