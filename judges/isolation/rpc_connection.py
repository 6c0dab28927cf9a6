"""RPC connection to one task file's process, from the service's side: reads calls, answers them, returns the result.

Messages of the child may be invalid or hostile, so they are validated before and after they are decoded. Limits per
child bound the memory, disk and time that it can use in the service, so that it affects no other job.
"""

from __future__ import annotations

import asyncio
import reprlib
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, TypeAlias

from cache.errors import CacheError
from judges.errors import JudgeBug, JudgeError
from judges.isolation.serialization import (
    LARGE_BYTES,
    MAX_CHILD_FRAME_BYTES,
    MAX_CHILD_VALUES,
    Frame,
    decode,
    encode,
    error_to_json,
    max_values,
    read_body,
)

MAX_CALLS: Final = 1000
"""Maximum number of concurrent calls. Further calls wait in the socket."""
MAX_PENDING_BYTES: Final = 64 * 1024 * 1024
"""Maximum estimated memory of concurrent calls. Further calls wait in the socket."""
MAX_MESSAGES: Final = 200_000
"""Maximum number of messages of one child."""
MAX_TOTAL_BYTES: Final = 1024 * 1024 * 1024
"""Maximum total size of the messages of one child."""
MAX_CONCURRENT_PAGES: Final = 8
"""Maximum number of replies with pages that are prepared, or wait until the child reads them."""
_BYTES_PER_VALUE: Final = 100
"""Estimated memory of one decoded JSON value."""
_SHOWN_CHARS: Final = 200
_SMALL_REPLIES: Final = frozenset({"judge", "complete", "evidence"})
"""Methods whose replies have no pages unless ``content`` is requested. They are encoded without a thread."""

RpcHandler: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Handler of one RPC method. Raises only JudgeError and CacheError, which are then raised in the child."""
NotificationHandler: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Handler of one kind of notification."""


class RpcConnection:
    """RPC connection over two sockets, which it closes.

    ``handlers`` maps method names to handlers, ``on_notification`` names of notifications.
    """

    def __init__(
        self,
        main_socket: socket.socket,
        side_socket: socket.socket,
        *,
        handlers: Mapping[str, RpcHandler],
        on_notification: Mapping[str, NotificationHandler],
    ) -> None:
        self._sockets = (main_socket, side_socket)
        self._handlers = handlers
        self._on_notification = on_notification
        self._free = asyncio.Semaphore(MAX_CALLS)
        self._page_slots = asyncio.Semaphore(MAX_CONCURRENT_PAGES)
        self._usage = _Usage()
        self._tasks: set[asyncio.Task[None]] = set()
        self._cancellable: dict[tuple[int, int], asyncio.Task[None]] = {}
        """Running calls by socket and id. A hostile child can use an id twice."""
        self._failure: asyncio.Future[Frame | None] = asyncio.get_running_loop().create_future()
        self._writers: list[asyncio.StreamWriter] = []

    async def run(self, order: Frame) -> Frame | None:
        """Send the job and answer calls until the child is done. Return its last frame, or None without one.

        Raises:
            JudgeBug: the child sent an invalid message.
            Exception: a handler failed; not a fault of the child.
        """
        loops = []
        for place, each in enumerate(self._sockets):
            reader, writer = await asyncio.open_connection(sock=each)
            self._writers.append(writer)
            if place == 0:
                data = await asyncio.to_thread(encode, order)
                writer.write(data)
            loops.append(asyncio.create_task(self._read(place, reader, writer)))
        loops[1].add_done_callback(self._on_side_socket_closed)
        try:
            await asyncio.wait([loops[0], self._failure], return_when=asyncio.FIRST_COMPLETED)
            return self._failure.result() if self._failure.done() else loops[0].result()
        finally:
            running = (*loops, *self._tasks)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._failure.cancel()

    def close(self) -> None:
        for writer in self._writers:
            writer.close()
        for each in self._sockets[len(self._writers) :]:
            each.close()

    async def _read(self, place: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Frame | None:
        while (body := await read_body(reader, max_bytes=MAX_CHILD_FRAME_BYTES)) is not None:
            values = self._usage.count(body)
            size = len(body) + _BYTES_PER_VALUE * values
            await self._usage.wait_for_memory(size)
            frame = decode(body) if len(body) < LARGE_BYTES else await asyncio.to_thread(decode, body)
            del body
            match frame:
                case {"call": str(name), "id": int(number), "with": dict(what)}:
                    await self._free.acquire()
                    self._usage.pending_bytes += size
                    task = asyncio.create_task(self._answer(number, name, what, writer))
                    self._tasks.add(task)
                    self._cancellable[place, number] = task
                    task.add_done_callback(partial(self._on_answered, (place, number), size))
                case {"cancel": int(number)}:
                    if (discarded := self._cancellable.get((place, number))) is not None:
                        discarded.cancel()
                case {"tell": str(name), "with": dict(what)} if name in self._on_notification:
                    self._on_notification[name](what)
                case {"done": _} | {"failed": dict()}:
                    return frame
                case _:
                    raise JudgeBug(f"the task file's process sent an unknown message: {shortened(frame)}")
        return None

    def _on_side_socket_closed(self, side: asyncio.Task[Frame | None]) -> None:
        """End the connection if the side socket failed. A closed side socket alone means nothing."""
        if not side.cancelled() and (error := side.exception()) is not None and not self._failure.done():
            self._failure.set_exception(error)

    def _on_answered(self, key: tuple[int, int], size: int, task: asyncio.Task[None]) -> None:
        self._usage.release(size)
        if not task.cancelled():
            task.exception()  # `_failure` reports it; without this call, asyncio would log it as never retrieved
        self._tasks.discard(task)
        if self._cancellable.get(key) is task:
            del self._cancellable[key]
        self._free.release()

    async def _answer(self, number: int, name: str, params: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        has_content = name == "evidence" and params.get("content") is not None
        async with self._page_slots if has_content else nullcontext():
            data = await self._reply(number, name, params)
            if not writer.is_closing():
                writer.write(data)
                if has_content:
                    await writer.drain()

    async def _reply(self, number: int, name: str, params: Mapping[str, Any]) -> bytes:
        try:
            handler = self._handlers.get(name)
            if handler is None:
                raise JudgeBug(f"unknown call {name!r}")
            reply: Frame = {"re": number, "ok": await handler(params)}
        except (JudgeError, CacheError) as error:
            reply = {"re": number, "error": error_to_json(error)}
        except asyncio.CancelledError as cancelled:
            # Drop the traceback: up to Python 3.12, the frames of a TaskGroup reference the error and the error
            # references the frames. This cycle would keep the pages in memory until the next garbage collection.
            raise cancelled.with_traceback(None) from None
        except BaseException as error:
            if not self._failure.done():
                self._failure.set_exception(error)
            raise
        return await _encoded(reply, is_large=name not in _SMALL_REPLIES or params.get("content") is not None)


class _Usage:
    """Use of the service by the messages of one child."""

    def __init__(self) -> None:
        self.pending_bytes = 0
        self._messages = 0
        self._total_bytes = 0
        self._released = asyncio.Event()

    def count(self, body: bytes) -> int:
        """Count a message that is not yet decoded. Return the maximum number of its values.

        Raises:
            JudgeBug: a limit is exceeded.
        """
        self._messages += 1
        self._total_bytes += len(body)
        values = max_values(body)
        for amount, limit, subject in (
            (self._messages, MAX_MESSAGES, "messages"),
            (self._total_bytes, MAX_TOTAL_BYTES, "bytes in all its messages"),
            (values, MAX_CHILD_VALUES, "values in one message"),
        ):
            if amount > limit:
                raise JudgeBug(f"the task file's process sent more than {limit} {subject}")
        return values

    async def wait_for_memory(self, size: int) -> None:
        """Wait until a call of this estimated size fits into ``MAX_PENDING_BYTES``, or until no call is pending."""
        while self.pending_bytes and self.pending_bytes + size > MAX_PENDING_BYTES:
            self._released.clear()
            await self._released.wait()

    def release(self, size: int) -> None:
        self.pending_bytes -= size
        self._released.set()


def shortened(frame: Frame) -> str:
    """Return the beginning of a frame, without building the text of the whole frame."""
    return reprlib.repr(frame)[:_SHOWN_CHARS]


async def _encoded(reply: Frame, *, is_large: bool) -> bytes:
    """Return the bytes of a reply; a reply that cannot be sent becomes an error."""
    try:
        return await asyncio.to_thread(encode, reply) if is_large else encode(reply)
    except ValueError as error:
        return encode({"re": reply["re"], "error": error_to_json(JudgeBug(f"the reply cannot be sent: {error}"))})
