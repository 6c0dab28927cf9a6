"""Order of the first requests to a server whose request format is unknown."""

from __future__ import annotations

import asyncio

import pytest

from judges.llm.learned_formats import FIRST_REQUEST_WAIT_S, LearnedFormats


class Requests:
    """Requests without a reply, in the order in which they were sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self._formats = LearnedFormats("server")

    async def begin(self, name: str) -> asyncio.Task[None]:
        """Start a request. It was sent on return if it does not have to wait."""

        async def request() -> None:
            async with self._formats.exclusive_probe("m"):
                self.sent.append(name)
                await asyncio.Event().wait()

        begun = asyncio.create_task(request())
        await some_iterations()
        return begun


async def some_iterations() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("age_s", "sent"), [(0.0, ["first"]), (FIRST_REQUEST_WAIT_S, ["first", "second"])])
async def test_request_waits_only_while_the_first_one_is_new(
    age_s: float, sent: list[str], monkeypatch: pytest.MonkeyPatch
):
    requests, loop = Requests(), asyncio.get_running_loop()
    begun = [await requests.begin("first")]
    now = loop.time() + age_s
    monkeypatch.setattr(loop, "time", lambda: now)
    begun.append(await requests.begin("second"))
    assert requests.sent == sent
    for request in begun:
        request.cancel()


async def test_waiting_request_is_sent_when_the_first_one_ends(monkeypatch: pytest.MonkeyPatch):
    requests, loop = Requests(), asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    begun = [await requests.begin("first"), await requests.begin("second")]
    assert requests.sent == ["first"]
    begun[0].cancel()
    await some_iterations()
    assert requests.sent == ["first", "second"]
    begun[1].cancel()
