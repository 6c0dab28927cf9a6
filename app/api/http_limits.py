"""HTTP protocol class for uvicorn with limits that uvicorn lacks.

It limits the size and duration of a request head, and how long a client may leave a response unread. Input that is
not HTTP is answered here, with the same JSON shape as every other error.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, ClassVar, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.middleware import REQUEST_ID, SECURITY_HEADERS, new_request_id
from app.api.problems import MEDIA_TYPE, Problem

_CHUNK_BYTES = 8 * 1024
_LINGER_S = 2.0


class LimitedHttpProtocol(HttpToolsProtocol):
    """One client connection."""

    head_timeout_s: ClassVar[float] = 15.0
    """Seconds for a request head, from its first byte or from the opening of the connection."""
    max_head_bytes: ClassVar[int] = 64 * 1024
    write_timeout_s: ClassVar[float] = 60.0
    """Seconds after which a client that does not read its response is disconnected."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._head_bytes = 0
        self._in_head = True
        self._has_head_ended = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        lingering = _LingeringTransport(transport, self.loop, still_sending=lambda: not self._in_head)
        super().connection_made(cast(asyncio.Transport, lingering))
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return  # the response is sent; further input is discarded so that the client can read the response
        if not self._in_head:
            super().data_received(data)
            return
        # In chunks, so that a head without end is detected before all of it is buffered.
        for start in range(0, len(data), _CHUNK_BYTES):
            if self._in_head and self._head_timer is None:
                self._start_head_timer()
            part, self._has_head_ended = data[start : start + _CHUNK_BYTES], False
            super().data_received(part)
            if self.transport.is_closing():
                return
            self._head_bytes = 0 if self._has_head_ended or not self._in_head else self._head_bytes + len(part)
            if self._head_bytes > self.max_head_bytes:
                self._refuse(
                    Problem(431, "HEAD_TOO_LARGE", f"The request head is larger than {self.max_head_bytes} bytes")
                )
                return

    def on_headers_complete(self) -> None:
        self._in_head, self._has_head_ended = False, True
        self._stop_head_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, "NOT_HTTP", "The request is not valid HTTP"))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.write_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().resume_writing()

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._on_head_timeout)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        if not self._head_bytes:
            self.transport.close()  # an idle keep-alive connection
        elif not self.transport.is_closing():
            self._refuse(Problem(408, "TOO_SLOW", f"The request head did not arrive within {self.head_timeout_s:g} s"))

    def _refuse(self, problem: Problem) -> None:
        request_id = new_request_id()
        body = json.dumps({**problem.body(), "request_id": request_id}).encode()
        headers = {
            **SECURITY_HEADERS,
            REQUEST_ID: request_id,
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(f"HTTP/1.1 {problem.status} {problem.title}\r\n{head}\r\n".encode() + body)
        self._in_head = False
        self.transport.close()


class _LingeringTransport:
    """Transport with a lingering close.

    If the client is still sending, an immediate close makes the operating system reset the connection because of the
    unread bytes, and the client never sees the error response. The delayed close lets it read the response first.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, *, still_sending: Callable[[], bool]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._still_sending = still_sending
        self._closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self._still_sending() or self._transport.is_closing() or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(_LINGER_S, self._transport.close)
