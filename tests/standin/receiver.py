"""Receiver of webhooks with scripted statuses, which keeps the requests that it gets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.standin.http import HttpRequest, SocketServer, read_request, response


class Receiver(SocketServer):
    """HTTP server on a free port. ``statuses`` are returned in order, the last one repeatedly; None: no response."""

    def __init__(self, statuses: Sequence[int | None] = (204,), *, location: str | None = None) -> None:
        self.requests: asyncio.Queue[HttpRequest] = asyncio.Queue()
        self._statuses = list(statuses)
        self._headers = {} if location is None else {"location": location}

    @property
    def url(self) -> str:
        return f"http://{self.host_port}/hook"

    async def next(self) -> HttpRequest:
        """Wait for the next request."""
        async with asyncio.timeout(60):
            return await self.requests.get()

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
