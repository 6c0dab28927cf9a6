"""S3 servers: a complete one, and a minimal one for storing and reading bodies, with faults of real servers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

from tests.standin.http import HttpRequest, Reset, SocketServer, read_request

Fault = Callable[[HttpRequest, int], str | None]
"""Function of a request and the number of earlier requests with its method; returns the name of a fault, or None.

``500``: an error. ``reset``: the connection is closed. ``half``: half of the body is stored and success is reported.
``tag``: reading returns a different entity tag. ``slow``: the response takes a second.
"""


@contextmanager
def moto_server() -> Iterator[str]:
    """Run a complete S3 server in a thread, and yield its URL."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


class StandInS3(SocketServer):
    """S3 server that stores objects in memory, on a free port."""

    def __init__(self, fault: Fault = lambda request, nth: None) -> None:
        self.fault = fault
        self.objects: dict[str, bytes] = {}
        self.requests: list[HttpRequest] = []
        self.methods: Counter[str] = Counter()

    @property
    def endpoint(self) -> str:
        return f"http://{self.host_port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_request(reader)) is not None:
                writer.write(await self._answer(request))
                await writer.drain()
        except (Reset, OSError, ValueError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: HttpRequest) -> bytes:
        wrong = self.fault(request, self.methods[request.method])
        self.requests.append(request)
        self.methods[request.method] += 1
        if wrong == "reset":
            raise Reset
        if wrong == "500":
            return _reply(500, b"<Error><Code>InternalError</Code></Error>")
        if wrong == "slow":
            await asyncio.sleep(1)
        place = request.path.partition("?")[0]
        if request.method == "PUT":
            if not _matches_checksum(request):
                return _reply(400, b"<Error><Code>BadDigest</Code></Error>")
            self.objects[place] = request.body[: len(request.body) // 2] if wrong == "half" else request.body
            return _reply(200, b"", tag=_tag(request.body))
        data = self.objects.get(place)
        if data is None:
            return _reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
        tag = "another" if wrong == "tag" else _tag(data)
        return _reply(200, data, tag=tag, body=request.method != "HEAD")


def _matches_checksum(request: HttpRequest) -> bool:
    """Return whether the body matches the checksum sent with it."""
    checksum = request.headers.get("x-amz-checksum-sha256")
    return checksum is None or base64.b64decode(checksum) == hashlib.sha256(request.body).digest()


def _tag(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _reply(status: int, data: bytes, *, tag: str = "", body: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}", "last-modified: Fri, 20 Nov 2026 12:00:00 GMT"]
    lines += [f'etag: "{tag}"'] if tag else []
    return "\r\n".join([*lines, "", ""]).encode() + (data if body else b"")
