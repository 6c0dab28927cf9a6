"""Server whose replies are far larger than any reply should be."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.standin.http import SocketServer, read_request

MIB = 1024 * 1024
EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": "xxxxxxxxxxxxxxxx"}}]}\n\n'


class Flood(SocketServer):
    """Server that replies to every request with ``start`` and then ``piece``, up to ``max_bytes``.

    ``sent`` is the size of each body that the client took, including what the sockets buffer.
    """

    def __init__(
        self,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        start: bytes = b"",
        piece: bytes = b"x" * 64 * 1024,
        max_bytes: int = 100 * MIB,
    ) -> None:
        self.sent: list[int] = []
        self._head = f"HTTP/1.1 {status} Status\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in (headers or {"Content-Type": "application/json"}).items()
        )
        self._start, self._piece, self._max_bytes = start, piece, max_bytes

    @property
    def origin(self) -> str:
        return f"http://{self.host_port}"

    def assert_not_read(self, limit: int = 4 * MIB) -> None:
        """Assert that no client read more than ``limit`` bytes. Sockets buffer up to 8 MiB of what was sent."""
        assert 0 < max(self.sent) < limit + 8 * MIB

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await read_request(reader) is None:
            writer.close()
            return
        number = len(self.sent)
        self.sent.append(0)
        writer.write(f"{self._head}\r\n".encode() + self._start)
        try:
            while self.sent[number] < self._max_bytes:
                writer.write(self._piece)
                await writer.drain()
                self.sent[number] += len(self._piece)
        except OSError:
            pass  # the client closed the connection
        finally:
            writer.close()


@contextmanager
def bounded_memory(max_bytes: int = 30 * MIB) -> Iterator[None]:
    """Assert that the block allocates at most ``max_bytes``."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < max_bytes
    finally:
        tracemalloc.stop()


def bodies() -> dict[str, Flood]:
    """Return servers that send each form of an oversized body with status 200."""
    json_start = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "'
    gzipped = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return {
        "no length": Flood(start=json_start),
        "length": Flood(
            headers={"Content-Type": "application/json", "Content-Length": str(100 * MIB + len(json_start))},
            start=json_start,
        ),
        "white space": Flood(piece=b" " * 64 * 1024),
        "events": Flood(headers={"Content-Type": "text/event-stream"}, piece=EVENT * 800),
        "gzip": Flood(headers=gzipped, piece=gzip.compress(b" " * 100 * MIB), max_bytes=10 * MIB),
        "empty gzip members": Flood(headers=gzipped, piece=gzip.compress(b"") * 3000),
        "image": Flood(headers={"Content-Type": "image/png"}, start=b"\x89PNG\r\n\x1a\n"),
    }
