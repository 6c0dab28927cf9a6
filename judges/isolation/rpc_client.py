"""RPC client in a judge file's process: calls that wait for a reply, and notifications.

One socket is for the event loop, the other for code that cannot await. Errors of the service are raised here as the
same classes.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from judges.isolation.rpc_framing import (
    MAX_CHILD_FRAME_BYTES,
    Frame,
    encode,
    read_frame,
    receive_blocking,
    send_blocking,
)
from judges.isolation.serialization import error_from_json

PROGRESS_INTERVAL_S: Final = 0.1
"""Minimum interval between progress notifications."""


def _exit_process() -> None:
    os._exit(1)


def _ignore() -> None:
    """Do nothing when the connection is closed, because that is expected."""


class RpcClient:
    """RPC client of a process, opened once in its event loop.

    Calls from that loop go over ``main_socket``; those from other event loops go over ``side_socket``, one at a time.
    """

    def __init__(
        self,
        main_socket: socket.socket,
        side_socket: socket.socket,
        *,
        on_disconnect: Callable[[], None] = _exit_process,
    ) -> None:
        """``on_disconnect`` is called when the service has closed the connection. By default, the process exits."""
        self._main_socket = main_socket
        self._side_socket = side_socket
        self._on_disconnect = on_disconnect
        self._lock = threading.Lock()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._outbox: list[bytes] = []
        """Frames of this iteration of the event loop."""
        self._progress: Frame | None = None
        """Progress that has not been sent yet."""

    async def open(self) -> Frame:
        """Open the connection and return the job of this process.

        Raises:
            EOFError: the service has closed the connection.
        """
        self._loop = asyncio.get_running_loop()
        reader, self._writer = await asyncio.open_connection(sock=self._main_socket)
        job = await read_frame(reader)
        if job is None:
            raise EOFError("the service has closed the connection")
        self._reading = asyncio.create_task(self._read(reader))
        return job

    @property
    def is_own_loop(self) -> bool:
        """Whether the running event loop is the one that opened this client."""
        return asyncio.get_running_loop() is self._loop

    async def call(self, name: str, /, **params: Any) -> Any:
        """Return the service's reply. From another event loop, the call goes over the second socket.

        Raises:
            JudgeError, CacheError: raised by the service.
        """
        if not self.is_own_loop:
            return await asyncio.to_thread(self.call_blocking, name, **params)
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._send_soon({"id": number, "call": name, "with": params})
            return await answer
        except asyncio.CancelledError:
            if not answer.done() or answer.cancelled():
                self._send_soon({"cancel": number})
            raise
        finally:
            self._waiting.pop(number, None)

    def call_blocking(self, name: str, /, **params: Any) -> Any:
        """Like ``call``, for code that cannot await. One call at a time.

        Raises:
            JudgeError, CacheError: raised by the service.
        """
        with self._lock:
            send_blocking(self._side_socket, {"id": 0, "call": name, "with": params})
            return _result_of(receive_blocking(self._side_socket))

    def notify(self, name: str, /, **params: Any) -> None:
        """Send a notification. Thread-safe."""
        self._run_in_own_loop(self._send, {"tell": name, "with": params})

    def notify_progress(self, done: int, total: int) -> None:
        """Send the progress, unless there is newer one within ``PROGRESS_INTERVAL_S``. Thread-safe."""
        self._run_in_own_loop(self._postpone, {"tell": "progress", "with": {"done": done, "total": total}})

    async def end(self, frame: Frame) -> None:
        """Send the last frame and wait until the service has closed the connection.

        This side must stay open: the service may still be writing a reply that no call awaits, and a write error would
        lose the last frame.

        Raises:
            ValueError: the frame is too long.
        """
        data = encode(frame, max_bytes=MAX_CHILD_FRAME_BYTES)
        if self._writer is None or self._reading is None:
            return
        self._on_disconnect = _ignore
        self._send_progress()
        self._flush()
        self._writer.write(data)
        await self._writer.drain()
        await asyncio.wait({self._reading})
        self._writer.close()

    def _run_in_own_loop(self, action: Callable[[Frame], None], frame: Frame) -> None:
        if self._loop is None or self._loop.is_closed():
            return
        try:
            is_here = self.is_own_loop
        except RuntimeError:
            is_here = False
        if is_here:
            action(frame)
        else:
            self._loop.call_soon_threadsafe(action, frame)

    def _postpone(self, progress: Frame) -> None:
        if self._progress is None:
            asyncio.get_running_loop().call_later(PROGRESS_INTERVAL_S, self._send_progress)
        self._progress = progress

    def _send_progress(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None:
            self._send(progress)

    def _send(self, frame: Frame) -> None:
        self._send_soon(frame)
        self._flush()

    def _send_soon(self, frame: Frame) -> None:
        """Send a frame together with the others of this iteration of the event loop."""
        data = encode(frame, max_bytes=MAX_CHILD_FRAME_BYTES)
        if not self._outbox:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outbox.append(data)

    def _flush(self) -> None:
        if self._writer is not None and self._outbox:
            self._writer.write(b"".join(self._outbox))
        self._outbox.clear()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while (frame := await read_frame(reader)) is not None:
            answer = self._waiting.get(frame["re"])
            if answer is None or answer.done():
                continue
            if "error" in frame:
                answer.set_exception(error_from_json(frame["error"]))
            else:
                answer.set_result(frame["ok"])
        self._on_disconnect()


def _result_of(frame: Frame) -> Any:
    if "error" in frame:
        raise error_from_json(frame["error"])
    return frame["ok"]
