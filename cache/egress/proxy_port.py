"""Port of the egress proxy: forwards and counts bytes, and records refusals.

The HTTP/1.1 parsing is minimal: message heads, request targets, rewriting of headers.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv6Address
from typing import Any
from urllib.parse import urlsplit

import structlog

from cache.urls import host_and_port

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


_log = structlog.get_logger(__name__)
_CHUNK_BYTES = 64 * 1024
_MAX_STORED_REFUSALS = 1000
MAX_REFUSALS_PER_HOST = 500
"""Number of requests to one denied host that are refused immediately. Later ones are delayed. Otherwise a script that
retries without a pause would keep the page busy. The limit is high because a page can have hundreds of images on a host
that is down. The browser can detect retries and calls ``ProxyPort.delay_refusals`` much earlier."""
_DELAY_S = 4.0
"""Maximum delay of such a request. It is bounded because a synchronous request blocks the page."""
_MAX_DELAYED = 8  # of the 32 connections that Chromium opens to a proxy
_BYTES_EXCEEDED = "the page exceeded its byte limit"

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[str, int], Awaitable[Stream]]


class RefusalReason(StrEnum):
    """Why a connection was refused or closed."""

    ADDRESS = "address_denied"
    PORT = "port_denied"
    REQUEST = "bad_request"
    HOST_UNKNOWN = "host_unknown"
    LOOKUP_FAILED = "lookup_failed"
    CONNECT_FAILED = "connect_failed"
    CONNECT_TIMEOUT = "connect_timeout"
    BYTES = "byte_budget"
    TIME = "time_budget"


_DENIED = frozenset({RefusalReason.ADDRESS, RefusalReason.PORT, RefusalReason.REQUEST})
_LIMIT_REASONS = frozenset({RefusalReason.BYTES, RefusalReason.TIME})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A connection that was refused or closed. ``host`` is empty if the request could not be parsed."""

    host: str
    port: int
    reason: RefusalReason
    detail: str


class ConnectionRefused(Exception):
    """Ends one connection of a port, which converts it to a Refusal. It is never raised outside the proxy."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressLimits:
    """Limits in bytes, seconds and connections. ``port_bytes`` counts both directions of all connections of a port."""

    port_bytes: int = 200 * 1024 * 1024
    connection_s: float = 300.0
    resolve_s: float = 20.0
    connect_s: float = 10.0
    connections: int = 256


class ProxyPort:
    """One proxy port. Created by ``EgressProxy.proxy_port``."""

    def __init__(self, dial: Dial, limits: EgressLimits, *, max_bytes: int) -> None:
        """``dial`` checks the address and connects, or raises ConnectionRefused."""
        self._dial = dial
        self._limits = limits
        self._max_bytes = max_bytes
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._refusals: deque[Refusal] = deque(maxlen=_MAX_STORED_REFUSALS)
        self._refused: Counter[tuple[str, int]] = Counter()
        self._retried: set[tuple[str, int]] = set()
        self._delayed = 0
        self.flooded_at: float | None = None
        """Monotonic time at which a host had been refused too often."""
        self.flooded = asyncio.Event()
        """Set together with ``flooded_at``."""
        self.bytes_forwarded = 0

    @property
    def url(self) -> str:
        if self._server is None:
            raise RuntimeError("the port is closed")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        return tuple(self._refusals)

    @property
    def is_exhausted(self) -> bool:
        return self.bytes_forwarded > self._max_bytes

    def refusal_of(self, url: str) -> Refusal | None:
        """Return the last refusal for the host and port of a URL."""
        try:
            host_port = host_and_port(url)
        except ValueError:
            return None
        return next((known for known in reversed(self._refusals) if (known.host, known.port) == host_port), None)

    def delay_refusals(self, url: str) -> None:
        """Delay further refusals for the host and port of a URL, because a script retries it."""
        try:
            host_port = host_and_port(url)
        except ValueError:
            host_port = ("", 0)
        self._retried.add(host_port)
        self._mark_flooded(host_port)

    async def start(self, bound: socket.socket | None = None) -> None:
        """Listen on a bound socket, which is closed with this port, or on a free loopback port."""
        place: dict[str, Any] = {"host": "127.0.0.1", "port": 0} if bound is None else {"sock": bound}
        self._server = await asyncio.start_server(self._accept, **place, limit=MAX_HEAD_BYTES, backlog=256)

    async def aclose(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._server = None
        connections = set(self._connections)
        for connection in connections:
            connection.cancel()
        if connections:
            await asyncio.wait(connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None or len(self._connections) >= self._limits.connections:
            writer.close()
            return
        task = asyncio.create_task(self._serve((reader, writer)), name="egress connection")
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, client: Stream) -> None:
        host_port = ("", 0)
        try:
            async with asyncio.timeout(self._limits.connection_s):
                head = await read_head(client[0])
                if head is None:
                    return
                request = parse_request(head)
                host_port = (request.host, request.port)
                server = await self._connect(request, client)
                if server is not None:
                    await self._relay(request, client, server)
        except BadMessage as odd:
            self._record_refusal(host_port, RefusalReason.REQUEST, str(odd))
            client[1].write(_refusal_response(RefusalReason.REQUEST))
        except ConnectionRefused as limit:
            # The response has started. Only an aborted connection tells the client that it is incomplete.
            self._record_refusal(host_port, limit.reason, limit.detail)
            client[1].transport.abort()
        except TimeoutError:
            self._record_refusal(
                host_port, RefusalReason.TIME, f"the connection exceeded {self._limits.connection_s:g} s"
            )
            client[1].transport.abort()
        except OSError:
            pass  # one end closed the connection
        finally:
            client[1].close()

    async def _connect(self, request: Request, client: Stream) -> Stream | None:
        """Connect to the server. If this fails, send an error response to the client and return None."""
        try:
            if self.is_exhausted:
                raise ConnectionRefused(RefusalReason.BYTES, _BYTES_EXCEEDED)
            if self._is_delayed((request.host, request.port)) and await self._disconnects_during_delay(client):
                return None
            return await self._dial(request.host, request.port)
        except ConnectionRefused as refused:
            self._record_refusal((request.host, request.port), refused.reason, refused.detail)
            client[1].write(_refusal_response(refused.reason))
            return None

    def _is_delayed(self, host_port: tuple[str, int]) -> bool:
        """Return whether the host was refused too often."""
        return self._refused[host_port] >= (1 if host_port in self._retried else MAX_REFUSALS_PER_HOST)

    async def _disconnects_during_delay(self, client: Stream) -> bool:
        """Delay the response to a client that was refused this host too often. Return whether it disconnected.

        Only a few connections are delayed at a time: the browser opens at most 32, and the page may need others.
        """
        if self.flooded_at is None or self._delayed >= _MAX_DELAYED:
            return False
        self._delayed += 1
        try:
            async with asyncio.timeout(self.flooded_at + _DELAY_S - time.monotonic()):
                await _until_closed(client[0])
        except TimeoutError:
            return False
        finally:
            self._delayed -= 1
        return True

    def _record_refusal(self, host_port: tuple[str, int], reason: RefusalReason, detail: str) -> None:
        """Record a refusal, and log the first one per host."""
        self._refusals.append(Refusal(host=host_port[0], port=host_port[1], reason=reason, detail=detail))
        is_limit = reason in _LIMIT_REASONS
        self._refused[host_port] += not is_limit
        if is_limit or self._refused[host_port] == 1:
            _log.info(
                "request refused",
                host=host_port[0],
                port=host_port[1],
                reason=reason.value,
                detail=detail,
            )
        elif self._refused[host_port] == MAX_REFUSALS_PER_HOST:
            self._mark_flooded(host_port)

    def _mark_flooded(self, host_port: tuple[str, int]) -> None:
        """Record that a host is requested repeatedly, and log the first one."""
        if self.flooded_at is None:
            self.flooded_at = time.monotonic()
            self.flooded.set()
            _log.info(
                "too many refused requests",
                host=host_port[0],
                port=host_port[1],
                refusals=self._refused[host_port],
            )

    async def _relay(self, request: Request, client: Stream, server: Stream) -> None:
        try:
            if request.origin_line is None:
                client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await self._tunnel(client, server)
                return
            upgrade = request.head.is_upgrade
            connection = b"Upgrade" if upgrade else b"close"
            server[1].write(request.head.encode_for_forwarding(start_line=request.origin_line, connection=connection))
            await self._send_body(request.body_bytes, client[0], server[1])
            await self._relay_response(client, server, may_switch=upgrade)
        finally:
            server[1].close()

    async def _send_body(self, remaining: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while remaining:
            data = await reader.read(min(remaining, _CHUNK_BYTES))
            if not data:
                raise ConnectionRefused(RefusalReason.REQUEST, "the request body is incomplete")
            remaining -= len(data)
            await self._forward(data, writer)

    async def _relay_response(self, client: Stream, server: Stream, *, may_switch: bool) -> None:
        """Forward the response to one request, then close the connection: the next request may be for another host."""
        while True:
            try:
                head = await read_head(server[0])
                status = None if head is None else parse_status(head)
            except BadMessage as odd:
                raise ConnectionRefused(RefusalReason.CONNECT_FAILED, f"invalid response of the server: {odd}") from odd
            if head is None or status is None:
                raise ConnectionRefused(RefusalReason.CONNECT_FAILED, "the server sent no response")
            switched = status == 101 and may_switch
            client[1].write(
                head.encode_for_forwarding(start_line=head.start_line, connection=b"Upgrade" if switched else b"close")
            )
            if switched:
                await self._tunnel(client, server)
                return
            if status >= 200:
                await _run_until_first(self._copy(server[0], client[1]), _until_closed(client[0]))
                return

    async def _tunnel(self, client: Stream, server: Stream) -> None:
        await _run_until_first(self._copy(client[0], server[1]), self._copy(server[0], client[1]))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            await self._forward(data, writer)

    async def _forward(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        self.bytes_forwarded += len(data)
        if self.is_exhausted:
            raise ConnectionRefused(RefusalReason.BYTES, _BYTES_EXCEEDED)
        writer.write(data)
        await writer.drain()


def _refusal_response(reason: RefusalReason) -> bytes:
    """Return an error response without a body, so that no text of the proxy becomes page content."""
    status = b"403 Forbidden" if reason in _DENIED else b"502 Bad Gateway"
    reason_phrase = reason.value.encode("ascii")
    return (
        b"HTTP/1.1 " + status + b"\r\nProxy-Status: assay; error=" + reason_phrase + b"\r\n"
        b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    )


async def _until_closed(reader: asyncio.StreamReader) -> None:
    """Discard input until the connection closes. A second request on it would go to the wrong server."""
    while await reader.read(_CHUNK_BYTES):
        pass


async def _run_until_first(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run coroutines concurrently until one ends. Cancel the others. Raise the error of the one that ended."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    faults = {task: task.exception() for task in tasks if not task.cancelled()}
    for task in ended:
        fault = faults.get(task)
        if fault is not None:
            raise fault
