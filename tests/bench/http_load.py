"""Lightweight HTTP client that can share two cores with the server under load: raw sockets, one request in flight on
each.
"""

from __future__ import annotations

import asyncio


class RequestRefused(Exception):
    """Raised if the response status differs from the expected one."""


class Wire(asyncio.Protocol):
    """One persistent connection that sends prepared requests and reads status and body of the responses."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._missing: int | None = None
        self._answer: asyncio.Future[bytes] | None = None

    @classmethod
    async def connect(cls, address: tuple[str, int]) -> Wire:
        _, wire = await asyncio.get_running_loop().create_connection(cls, *address)
        return wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._missing is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._buffer[:end]).lower()
            _, _, length = head.partition(b"content-length: ")
            self._missing = end + 4 + int(length.partition(b"\r\n")[0])
        if len(self._buffer) >= self._missing and self._answer is not None:
            asked, self._answer = self._answer, None
            answer = bytes(self._buffer)
            self._buffer.clear()
            self._missing = None
            asked.set_result(answer)

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server hung up"))

    async def ask(self, request: bytes, status: int) -> bytes:
        """Return the whole response. Raise RequestRefused if its status differs."""
        assert self._transport is not None
        asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answer = asked
        self._transport.write(request)
        answer = await asked
        if not answer.startswith(b"HTTP/1.1 %d " % status):
            raise RequestRefused(answer[:600].decode(errors="replace"))
        return answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def request(method: str, path: str, body: bytes = b"", *, headers: str = "") -> bytes:
    """Return one HTTP/1.1 request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body
