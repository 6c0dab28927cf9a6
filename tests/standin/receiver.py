"""Receiver of webhooks with scripted statuses, which keeps the requests that it gets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tests.standin.http import HttpRequest, read_request, response


class Receiver:
    """HTTP server on a free port. ``statuses`` are returned in order, the last one repeatedly; None: no response."""

    def __init__(self, statuses: Sequence[int | None] = (204,), *, location: str | None = None) -> None:
        self.requests: asyncio.Queue[HttpRequest] = asyncio.Queue()
        self._statuses = list(statuses)
        self._headers = {} if location is None else {"location": location}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def host_port(self) -> str:
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host_port}/hook"

    async def next(self) -> HttpRequest:
        """Wait for the next request."""
        async with asyncio.timeout(60):
            return await self.requests.get()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read_request(reader)
            if request is not None:
                self.requests.put_nowait(request)
                status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
                if status is None:
                    await asyncio.Event().wait()
                else:
                    writer.write(response(status, b"", self._headers | {"connection": "close"}))
                    await writer.drain()
        except OSError:
            pass  # the client does not wait for the end of the response
        finally:
            writer.close()
