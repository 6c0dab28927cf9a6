"""Lightweight HTTP client that can share two cores with the server under load: raw sockets, one request in flight on
each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Outcome of a load: responses per second, and their latencies (seconds, sorted)."""

    per_s: float
    took_s: Sequence[float]

    def percentile(self, share: float) -> float:
        return self.took_s[min(len(self.took_s) - 1, int(share * len(self.took_s)))]


async def as_fast_as_answered(
    address: tuple[str, int], requests: Iterable[bytes], *, status: int, at_once: int
) -> Load:
    """Send all requests with ``at_once`` in flight, to measure the maximum rate of the server."""
    waiting = iter(requests)
    took: list[float] = []

    async def one() -> None:
        wire = await Wire.connect(address)
        for request in waiting:
            began = time.perf_counter()
            await wire.ask(request, status)
            took.append(time.perf_counter() - began)
        wire.close()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(one())
    return Load(per_s=len(took) / (time.perf_counter() - began), took_s=sorted(took))


async def at_a_rate(
    address: tuple[str, int], requests: Sequence[bytes], *, status: int, per_s: float, wires: int
) -> Load:
    """Send at a constant rate, independent of the server; a late start counts as latency."""
    free: asyncio.Queue[Wire] = asyncio.Queue()
    for _ in range(wires):
        free.put_nowait(await Wire.connect(address))
    took: list[float] = []
    began = time.perf_counter()

    async def one(request: bytes, due: float) -> None:
        wire = await free.get()
        await wire.ask(request, status)
        free.put_nowait(wire)
        took.append(time.perf_counter() - due)

    async with asyncio.TaskGroup() as group:
        for due, request in zip(_moments(began, per_s), requests, strict=False):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(request, due))
    seconds = time.perf_counter() - began
    while not free.empty():
        free.get_nowait().close()
    return Load(per_s=len(took) / seconds, took_s=sorted(took))


def _moments(began: float, per_s: float) -> Iterator[float]:
    nth = 0
    while True:
        yield began + nth / per_s
        nth += 1


def request(method: str, path: str, body: bytes = b"", *, headers: str = "") -> bytes:
    """Return one HTTP/1.1 request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body
