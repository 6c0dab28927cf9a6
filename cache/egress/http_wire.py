"""The little of HTTP/1.1 that the egress guard has to read: message heads, their targets, and their rewriting."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_HEAD_BYTES = 64 * 1024
_OF_ONE_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"proxy-authenticate"}
)


class BadMessage(ValueError):
    """A head that cannot be read, or asks for something the guard does not do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first line and the headers of a message, as they came."""

    first: bytes
    headers: tuple[tuple[bytes, bytes], ...]

    def value(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def is_upgrade(self) -> bool:
        return b"upgrade" in (self.value(b"connection") or b"").lower() and self.value(b"upgrade") is not None

    def without_hops(self, *, first: bytes, connection: bytes) -> bytes:
        """The head to send on: another first line, and ``Connection`` set to what is wanted."""
        kept = b"".join(key + b": " + value + b"\r\n" for key, value in self.headers if key.lower() not in _OF_ONE_HOP)
        return first + b"\r\n" + kept + b"Connection: " + connection + b"\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client of the guard asks for. ``origin_line`` is the request line for the server, None to tunnel."""

    head: Head
    host: str
    port: int
    origin_line: bytes | None
    body_bytes: int


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next message head, or None when the other side closed before one began.

    Raises:
        BadMessage: it is too long, broken off, or no HTTP.
    """
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        if ended.partial.strip():
            raise BadMessage("the head breaks off") from ended
        return None
    except asyncio.LimitOverrunError as long:
        raise BadMessage("the head is too long") from long
    first, *lines = raw[:-4].split(b"\r\n")
    headers = []
    for line in lines:
        key, colon, value = line.partition(b":")
        if not colon or not key or key != key.strip():
            raise BadMessage("a header line is broken")
        headers.append((key, value.strip()))
    return Head(first=first, headers=tuple(headers))


def parse_request(head: Head) -> Request:
    """Where a request goes.

    Raises:
        BadMessage: no proxy request, another scheme than http, or a body of unknown length.
    """
    try:
        method, target, version = head.first.decode("ascii").split(" ")
    except ValueError as odd:
        raise BadMessage("the request line is broken") from odd
    try:
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        port = parts.port
    except ValueError as odd:
        raise BadMessage("the target is broken") from odd
    host = (parts.hostname or "").rstrip(".")
    if not host or parts.username is not None:
        raise BadMessage("the target names no host")
    if method == "CONNECT":
        if port is None or parts.path:
            raise BadMessage("CONNECT needs host:port")
        return Request(head=head, host=host, port=port, origin_line=None, body_bytes=0)
    if parts.scheme != "http":
        raise BadMessage("only http may be asked for without a tunnel")
    if head.value(b"transfer-encoding") is not None:
        raise BadMessage("a request body must say its length")
    length = head.value(b"content-length") or b"0"
    if not length.isdigit():
        raise BadMessage("the body length is broken")
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    origin_line = f"{method} {path} {version}".encode("ascii")
    return Request(
        head=head, host=host, port=80 if port is None else port, origin_line=origin_line, body_bytes=int(length)
    )


def status_of(head: Head) -> int:
    """The status code of a response head.

    Raises:
        BadMessage: it is not a response.
    """
    parts = head.first.split(b" ", 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
        raise BadMessage("no HTTP response")
    return int(parts[1])
