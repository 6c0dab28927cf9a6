"""Both ends of a conversation, in one process."""

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
from judges.isolation import rpc_framing
from judges.isolation.rpc_client import RpcClient
from judges.isolation.rpc_connection import RpcConnection


async def echo(what: Mapping[str, Any]) -> Any:
    return what["text"]


async def refuse(what: Mapping[str, Any]) -> Any:
    raise LLMRejected("no such key", status=401)


async def break_down(what: Mapping[str, Any]) -> Any:
    raise ZeroDivisionError


async def infinite(what: Mapping[str, Any]) -> Any:
    return float("inf")


class Ends:
    """The service's end is held; ``raw`` is what a file could write to itself."""

    def __init__(self) -> None:
        (self.talk, talk), (self.ask, ask) = socket.socketpair(), socket.socketpair()
        self.told: list[Any] = []
        self.cancelled = asyncio.Event()
        answers: dict[str, Callable[[Mapping[str, Any]], Awaitable[Any]]] = {
            "echo": echo,
            "refuse": refuse,
            "break": break_down,
            "infinite": infinite,
            "wait": self.wait,
        }
        self.ours = RpcConnection(talk, ask, answers=answers, hears={"progress": self.told.append})

    async def wait(self, what: Mapping[str, Any]) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Ends, RpcClient, asyncio.Task[Any]]]:
    ends = Ends()
    rpc = RpcClient(ends.talk, ends.ask, when_left=lambda: None)
    holding = asyncio.create_task(ends.ours.hold({"task": "t"}))
    try:
        assert await rpc.open() == {"task": "t"}
        assert rpc._reading is not None
        yield ends, rpc, holding
    finally:
        if rpc._reading is not None:
            rpc._reading.cancel()
        if rpc._writer is not None:
            rpc._writer.close()
        ends.ask.close()
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        ends.ours.close()
        await asyncio.sleep(0)


async def test_calls_are_answered_side_by_side_and_the_last_word_ends_it():
    async with opened() as (ends, rpc, holding):
        texts = [f"text {number} \ud800 é" for number in range(100)]
        assert await asyncio.gather(*(rpc.call("echo", text=text) for text in texts)) == texts
        rpc.tell("progress", done=1, total=2)
        ending = asyncio.create_task(rpc.end({"done": {"x": 1}}))
        assert await holding == {"done": {"x": 1}}
        ends.ours.close()
        await ending
        assert ends.told == [{"done": 1, "total": 2}]


async def test_code_that_cannot_await_asks_too():
    async with opened() as (_, rpc, _holding):
        assert await asyncio.to_thread(rpc.call_blocking, "echo", text="now") == "now"
        with pytest.raises(LLMRejected):
            await asyncio.to_thread(rpc.call_blocking, "refuse")


async def test_an_error_of_ours_is_raised_there_as_what_it_was():
    async with opened() as (_, rpc, _holding):
        with pytest.raises(LLMRejected, match="no such key") as raised:
            await rpc.call("refuse")
        assert raised.value.status == 401
        with pytest.raises(JudgeBug, match="unknown call 'steal'"):
            await rpc.call("steal")
        with pytest.raises(JudgeBug, match="cannot be sent"):
            await rpc.call("infinite")


async def test_a_call_that_is_called_off_is_called_off_here():
    async with opened() as (ends, rpc, _holding):
        waiting = asyncio.create_task(rpc.call("wait"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(ends.cancelled.wait(), 120)


async def test_what_breaks_here_is_nothing_of_the_files_doing():
    async with opened() as (_, rpc, holding):
        asking = asyncio.create_task(rpc.call("break"))
        with pytest.raises(ZeroDivisionError):
            await holding
        asking.cancel()


async def test_news_arrive_without_being_asked_for():
    async with opened() as (ends, rpc, _holding):
        heard: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        rpc.on_notification = heard.set_result
        ends.ours.tell(7)
        assert await asyncio.wait_for(heard, 120) == 7


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x03{x}",
        b"\x00\x00\x00\x0a" + b'{"a": NaN}',
        struct.pack(">I", rpc_framing.MAX_FRAME_BYTES + 1),
        rpc_framing.encode({"call": 3, "id": 1, "with": {}}),
        rpc_framing.encode({"what": "ever"}),
        struct.pack(">I", 200_000) + b"[" * 200_000,
    ],
)
async def test_what_is_no_message_ends_the_run_as_the_files_bug(data: bytes):
    ends = Ends()
    holding = asyncio.create_task(ends.ours.hold({}))
    await asyncio.to_thread(ends.talk.sendall, data)
    with pytest.raises(JudgeBug, match="process sent"):
        await asyncio.wait_for(holding, 120)
    ends.ours.close()
    ends.talk.close()
    ends.ask.close()
    await asyncio.sleep(0)


async def test_silence_for_good_is_no_result():
    ends = Ends()
    holding = asyncio.create_task(ends.ours.hold({}))
    await asyncio.sleep(0.05)
    ends.talk.close()
    assert await asyncio.wait_for(holding, 120) is None
    ends.ours.close()
    ends.ask.close()
    await asyncio.sleep(0)


def test_a_frame_is_a_length_and_json():
    data = rpc_framing.encode({"text": "é\ud800"})
    assert struct.unpack(">I", data[:4]) == (len(data) - 4,)
    assert json.loads(data[4:]) == {"text": "é\ud800"}
    with pytest.raises(ValueError, match="too long"):
        rpc_framing.encode({"x": "y" * (rpc_framing.MAX_FRAME_BYTES + 1)})


async def test_what_is_said_to_a_side_that_has_had_its_last_word_does_not_lose_it():
    (talk, service), (ask, unused) = socket.socketpair(), socket.socketpair()
    service.settimeout(5.0)
    rpc_framing.send_blocking(service, {"task": "t"})
    left: list[None] = []
    rpc = RpcClient(talk, ask, when_left=lambda: left.append(None))
    await rpc.open()
    ending = asyncio.create_task(rpc.end({"done": 1}))
    assert not (await asyncio.wait({ending}, timeout=0.2))[0]
    for _ in range(3):
        rpc_framing.send_blocking(service, {"news": "late"})
        await asyncio.sleep(0.05)
    assert rpc_framing.receive_blocking(service) == {"done": 1}
    service.close()
    await asyncio.wait_for(ending, 120)
    for each in (ask, unused):
        each.close()
    assert left == []
