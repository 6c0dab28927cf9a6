"""RPC between the service and a judge process, with both ends in one process."""

from __future__ import annotations

import asyncio
import json
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


async def test_only_the_newest_progress_is_sent():
    async with open_connection() as (ends, rpc, running):
        for done in (1, 2, 3):
            rpc.notify_progress(done, 3)
        ending = asyncio.create_task(rpc.end({"done": True}))
        await running
        ends.connection.close()
        await ending
    assert ends.notifications == [{"done": 3, "total": 3}]


async def test_blocking_calls_are_answered():
    async with open_connection() as (_, rpc, _running):
        assert await asyncio.to_thread(rpc.call_blocking, "echo", text="now") == "now"
        with pytest.raises(LLMRejected):
            await asyncio.to_thread(rpc.call_blocking, "refuse")


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


async def test_calls_with_the_same_id_are_all_cancelled_at_the_end():
    async with open_connection() as (ends, rpc, running):
        for _ in range(3):
            rpc._send({"id": 7, "call": "wait", "with": {}})
        async with asyncio.timeout(240):
            while len(ends.connection._tasks) < 3:  # noqa: ASYNC110 - the other end has no event for it
                await asyncio.sleep(0.01)
        calls = set(ends.connection._tasks)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert all(call.cancelled() for call in calls)


async def test_unexpected_error_of_a_handler_ends_the_run():
    async with open_connection() as (_, rpc, running):
        asking = asyncio.create_task(rpc.call("break"))
        with pytest.raises(ZeroDivisionError):
            await running
        asking.cancel()


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x03{x}",
        b"\x00\x00\x00\x0a" + b'{"a": NaN}',
        struct.pack(">I", serialization.MAX_FRAME_BYTES + 1),
        serialization.encode({"call": 3, "id": 1, "with": {}}),
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


async def test_closed_connection_has_no_result():
    ends = ServiceEnd()
    running = asyncio.create_task(ends.connection.run({}))
    await asyncio.sleep(0.05)
    ends.main_socket.close()
    assert await asyncio.wait_for(running, 240) is None
    ends.connection.close()
    ends.side_socket.close()
    await asyncio.sleep(0)


def test_frame_is_a_length_and_json():
    data = serialization.encode({"text": "é\ud800"})
    assert struct.unpack(">I", data[:4]) == (len(data) - 4,)
    assert json.loads(data[4:]) == {"text": "é\ud800"}
    with pytest.raises(ValueError, match="too long"):
        serialization.encode({"x": "y" * (serialization.MAX_FRAME_BYTES + 1)})


async def test_late_messages_of_the_service_do_not_lose_the_final_message():
    (main_socket, service), (side_socket, unused) = socket.socketpair(), socket.socketpair()
    service.settimeout(240.0)
    serialization.send_blocking(service, {"task": "t"})
    left: list[None] = []
    rpc = RpcClient(main_socket, side_socket, on_disconnect=lambda: left.append(None))
    await rpc.open()
    ending = asyncio.create_task(rpc.end({"done": 1}))
    assert not (await asyncio.wait({ending}, timeout=0.2))[0]
    for _ in range(3):
        serialization.send_blocking(service, {"re": 99})
        await asyncio.sleep(0.05)
    assert serialization.receive_blocking(service) == {"done": 1}
    service.close()
    await asyncio.wait_for(ending, 240)
    for each in (side_socket, unused):
        each.close()
    assert left == []
