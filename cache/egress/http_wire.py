"""Minimal HTTP/1.1 parsing for the egress proxy: message heads, request targets, rewriting of headers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from ipaddress import IPv6Address
from urllib.parse import urlsplit

MAX_HEAD_BYTES = 64 * 1024
_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"proxy-authenticate"}
)


class BadMessage(ValueError):
    """A message head that cannot be parsed or requests something that the proxy does not support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """First line and headers of a message, as received."""

    start_line: bytes
    headers: tuple[tuple[bytes, bytes], ...]

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def is_upgrade(self) -> bool:
        return b"upgrade" in (self.header(b"connection") or b"").lower() and self.header(b"upgrade") is not None

    def encode_for_forwarding(self, *, start_line: bytes, connection: bytes) -> bytes:
        """Return the bytes to forward, with this start line and ``Connection`` value, without hop-by-hop headers."""
        headers = b"".join(
            key + b": " + value + b"\r\n" for key, value in self.headers if key.lower() not in _HOP_BY_HOP
        )
        return start_line + b"\r\n" + headers + b"Connection: " + connection + b"\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request of a proxy client. ``origin_line``: request line for the server, or None for a tunnel (CONNECT)."""

    head: Head
    host: str
    port: int
    origin_line: bytes | None
    body_bytes: int


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Read the next message head. Return None if the peer closed the connection before it began.

    Raises:
        BadMessage: the head is too long, incomplete, or not HTTP.
    """
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        if ended.partial.strip():
            raise BadMessage("incomplete message head") from ended
        return None
    except asyncio.LimitOverrunError as long:
        raise BadMessage(f"message head longer than {MAX_HEAD_BYTES} bytes") from long
    start_line, *lines = raw[:-4].split(b"\r\n")
    headers = []
    for line in lines:
        key, colon, value = line.partition(b":")
        if not colon or not key or key != key.strip():
            raise BadMessage("invalid header line")
        headers.append((key, value.strip()))
    return Head(start_line=start_line, headers=tuple(headers))


def parse_request(head: Head) -> Request:
    """Parse a proxy request.

    Raises:
        BadMessage: not a proxy request, a scheme other than http, or a body of unknown length.
    """
    try:
        method, target, version = head.start_line.decode("ascii").split(" ")
    except ValueError as odd:
        raise BadMessage("invalid request line") from odd
    try:
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        if parts.netloc.count(":") > 1 and "[" not in parts.netloc:
            parts = parts._replace(netloc=_add_brackets(parts.netloc, head, is_tunnel=method == "CONNECT"))
        port = parts.port
    except ValueError as odd:
        raise BadMessage("invalid request target") from odd
    host = (parts.hostname or "").rstrip(".")
    if not host or parts.username is not None:
        raise BadMessage("the request target has no host, or has credentials")
    if method == "CONNECT":
        if port is None or parts.path:
            raise BadMessage("CONNECT needs host:port")
        return Request(head=head, host=host, port=port, origin_line=None, body_bytes=0)
    if parts.scheme != "http":
        raise BadMessage("without CONNECT, only http is supported")
    if head.header(b"transfer-encoding") is not None:
        raise BadMessage("request bodies need a Content-Length")
    length = head.header(b"content-length") or b"0"
    if not length.isdigit():
        raise BadMessage("invalid Content-Length")
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    origin_line = f"{method} {path} {version}".encode("ascii")
    return Request(
        head=head, host=host, port=80 if port is None else port, origin_line=origin_line, body_bytes=int(length)
    )


def _add_brackets(host_port: str, head: Head, *, is_tunnel: bool) -> str:
    """Return host and port of an IPv6 address that was sent without brackets, as httpx does.

    A CONNECT target always ends with a port. For other requests, only the Host header distinguishes address and port.

    Raises:
        ValueError: the host is not an IPv6 address.
    """
    if is_tunnel:
        host, _, port = host_port.rpartition(":")
        bracketed = f"[{host}]:{port}"
    else:
        bracketed = (head.header(b"host") or b"").decode("ascii", "replace")
    IPv6Address(urlsplit(f"//{bracketed}").hostname or "")
    return bracketed


def parse_status(head: Head) -> int:
    """Return the status code of a response head.

    Raises:
        BadMessage: it is not a response.
    """
    parts = head.start_line.split(b" ", 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
        raise BadMessage("not an HTTP response")
    return int(parts[1])
