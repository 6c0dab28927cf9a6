"""The service's side of the conversation with one judge file's process: reads calls, has them answered, and ends.

Nothing the other side sends is trusted to be right: it is data, bounded in size and in how much is under way at once.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from cache.errors import CacheError
from judges.errors import JudgeBug, JudgeError
from judges.isolation.values import error_value
from judges.isolation.wire import LARGE_BYTES, Frame, encode, read_frame

MAX_CALLS: Final = 1000
"""Under way at once; what comes beyond waits in the socket."""

Answering: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Answers one kind of call. Raises only JudgeError and CacheError, which the other side then raises."""
Hearing: TypeAlias = Callable[[Mapping[str, Any]], None]


class Conversation:
    """Over two sockets, which it closes. ``answers`` are by the name of the call, ``hears`` by that of what is told."""

    def __init__(
        self,
        talk: socket.socket,
        ask: socket.socket,
        *,
        answers: Mapping[str, Answering],
        hears: Mapping[str, Hearing],
    ) -> None:
        self._sockets = (talk, ask)
        self._answers = answers
        self._hears = hears
        self._free = asyncio.Semaphore(MAX_CALLS)
        self._under_way: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._broken: asyncio.Future[Frame | None] = asyncio.get_running_loop().create_future()
        self._writers: list[asyncio.StreamWriter] = []

    async def hold(self, order: Frame) -> Frame | None:
        """Hand over what is to be done and answer calls until the end: the last frame, or None when there was none.

        Raises:
            JudgeBug: the other side sent what it must not.
            Exception: an answer of ours broke; nothing of the other side's doing.
        """
        loops = []
        for place, each in enumerate(self._sockets):
            reader, writer = await asyncio.open_connection(sock=each)
            self._writers.append(writer)
            if place == 0:
                data = await asyncio.to_thread(encode, order)
                writer.write(data)
            loops.append(asyncio.create_task(self._read(place, reader, writer)))
        loops[1].add_done_callback(self._side_ended)
        try:
            await asyncio.wait([loops[0], self._broken], return_when=asyncio.FIRST_COMPLETED)
            return self._broken.result() if self._broken.done() else loops[0].result()
        finally:
            for task in (*loops, *self._under_way.values()):
                task.cancel()
            await asyncio.gather(*loops, *self._under_way.values(), return_exceptions=True)
            self._broken.cancel()

    def tell(self, news: Any) -> None:
        """Tell the other side something, unless it is gone."""
        if self._writers and not self._writers[0].is_closing():
            self._writers[0].write(encode({"news": news}))

    def close(self) -> None:
        for writer in self._writers:
            writer.close()
        for each in self._sockets[len(self._writers) :]:
            each.close()

    async def _read(self, place: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Frame | None:
        while (frame := await read_frame(reader)) is not None:
            match frame:
                case {"call": str(name), "id": int(number), "with": dict(what)}:
                    await self._free.acquire()
                    task = asyncio.create_task(self._answer(number, name, what, writer))
                    self._under_way[place, number] = task
                    task.add_done_callback(partial(self._answered, (place, number)))
                case {"cancel": int(number)}:
                    if (unwanted := self._under_way.get((place, number))) is not None:
                        unwanted.cancel()
                case {"tell": str(name), "with": dict(what)} if name in self._hears:
                    self._hears[name](what)
                case {"done": _} | {"failed": dict()}:
                    return frame
                case _:
                    raise JudgeBug(f"the judge file's process sent an unknown message: {str(frame)[:200]}")
        return None

    def _side_ended(self, side: asyncio.Task[Frame | None]) -> None:
        """That the side socket is closed says nothing; that something wrong came over it ends everything."""
        if not side.cancelled() and (error := side.exception()) is not None and not self._broken.done():
            self._broken.set_exception(error)

    def _answered(self, key: tuple[int, int], _: asyncio.Task[None]) -> None:
        self._under_way.pop(key, None)
        self._free.release()

    async def _answer(self, number: int, name: str, what: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        try:
            answering = self._answers.get(name)
            if answering is None:
                raise JudgeBug(f"there is no call named {name!r}")
            reply: Frame = {"re": number, "ok": await answering(what)}
        except (JudgeError, CacheError) as error:
            reply = {"re": number, "error": error_value(error)}
        except asyncio.CancelledError as called_off:
            # Without the frames it came through: those of a TaskGroup hold it in turn (up to Python 3.12), and with it
            # the pages that were asked about, until the garbage collector comes round.
            raise called_off.with_traceback(None) from None
        except BaseException as error:
            if not self._broken.done():
                self._broken.set_exception(error)
            raise
        data = await _encoded(reply)
        if not writer.is_closing():
            writer.write(data)


async def _encoded(reply: Frame) -> bytes:
    """The bytes of an answer; one that is too long becomes an error."""
    try:
        return encode(reply) if _size(reply.get("ok")) < LARGE_BYTES else await asyncio.to_thread(encode, reply)
    except ValueError as error:
        return encode({"re": reply["re"], "error": error_value(JudgeBug(f"the answer cannot be sent: {error}"))})


def _size(value: Any) -> int:
    """Roughly, in characters, of an answer's own texts."""
    if isinstance(value, dict):
        return sum(_size(each) for each in value.values())
    if isinstance(value, list):
        return sum(_size(each) for each in value)
    return len(value) if isinstance(value, str) else 8
