"""RPC between the service and a judge process, with both ends in one process."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from judges.errors import JudgeBug, LLMRejected
from judges.isolation import serialization
from judges.isolation.remote import RpcClient
from judges.isolation.rpc_connection import RpcConnection


async def echo(what: Mapping[str, Any]) -> Any:
    return what["text"]


async def refuse(what: Mapping[str, Any]) -> Any:
    raise LLMRejected("no such key", status=401)


async def crash(what: Mapping[str, Any]) -> Any:
    raise ZeroDivisionError


async def infinite(what: Mapping[str, Any]) -> Any:
    return float("inf")


class ServiceEnd:
    """The service's end of a connection and the sockets of the other end."""

    def __init__(self) -> None:
        (self.main_socket, main_socket), (self.side_socket, side_socket) = socket.socketpair(), socket.socketpair()
        self.notifications: list[Any] = []
        self.waiting, self.cancelled = asyncio.Event(), asyncio.Event()
        answers: dict[str, Callable[[Mapping[str, Any]], Awaitable[Any]]] = {
            "echo": echo,
            "refuse": refuse,
            "break": crash,
            "infinite": infinite,
            "wait": self.wait,
        }
        self.connection = RpcConnection(
            main_socket, side_socket, handlers=answers, on_notification={"progress": self.notifications.append}
        )

    async def wait(self, what: Mapping[str, Any]) -> Any:
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@asynccontextmanager
async def open_connection() -> AsyncIterator[tuple[ServiceEnd, RpcClient, asyncio.Task[Any]]]:
    ends = ServiceEnd()
    rpc = RpcClient(ends.main_socket, ends.side_socket, on_disconnect=lambda: None)
    running = asyncio.create_task(ends.connection.run({"task": "t"}))
    try:
        assert await rpc.open() == {"task": "t"}
        assert rpc._reading is not None
        yield ends, rpc, running
    finally:
        if rpc._reading is not None:
            rpc._reading.cancel()
        if rpc._writer is not None:
            rpc._writer.close()
        ends.side_socket.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        ends.connection.close()
        await asyncio.sleep(0)


async def test_concurrent_calls_are_answered_and_the_final_message_ends_the_run():
    async with open_connection() as (ends, rpc, running):
        texts = [f"text {number} \ud800 é" for number in range(100)]
        assert await asyncio.gather(*(rpc.call("echo", text=text) for text in texts)) == texts
        rpc.notify("progress", done=1, total=2)
        ending = asyncio.create_task(rpc.end({"done": {"x": 1}}))
        assert await running == {"done": {"x": 1}}
        ends.connection.close()
        await ending
        assert ends.notifications == [{"done": 1, "total": 2}]


async def test_error_of_the_service_is_raised_in_the_client():
    async with open_connection() as (_, rpc, _running):
        with pytest.raises(LLMRejected, match="no such key") as raised:
            await rpc.call("refuse")
        assert raised.value.status == 401
        with pytest.raises(JudgeBug, match="unknown call 'steal'"):
            await rpc.call("steal")
        with pytest.raises(JudgeBug, match="cannot be sent"):
            await rpc.call("infinite")


async def test_cancelling_a_call_cancels_its_handler():
    async with open_connection() as (ends, rpc, _running):
        waiting = asyncio.create_task(rpc.call("wait"))
        await ends.waiting.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(ends.cancelled.wait(), 240)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x0a" + b'{"a": NaN}',
        struct.pack(">I", serialization.MAX_FRAME_BYTES + 1),
        serialization.encode({"what": "ever"}),
        struct.pack(">I", 200_000) + b"[" * 200_000,
    ],
)
async def test_invalid_message_raises_judge_bug(data: bytes):
    ends = ServiceEnd()
    running = asyncio.create_task(ends.connection.run({}))
    await asyncio.to_thread(ends.main_socket.sendall, data)
    with pytest.raises(JudgeBug, match="process sent"):
        await asyncio.wait_for(running, 240)
    ends.connection.close()
    ends.main_socket.close()
    ends.side_socket.close()
    await asyncio.sleep(0)
