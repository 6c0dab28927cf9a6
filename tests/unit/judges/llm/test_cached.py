from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import create_model

from judges.errors import LLMOutputUnusable, LLMRejected
from judges.llm.cached import CachedLLM, FolderReplyCache, StoredReply
from judges.llm.client import LLMRequest
from judges.llm.remote import RemoteLLM
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage
from tests.fakes.backend import ScriptedBackend, long_page, raw

REQUEST = LLMRequest(
    model="gpt-4o", messages=({"role": "user", "content": "?"},), schema=BinaryEvalResult, purpose="verify"
)


def client(backend: ScriptedBackend, folder: Path | None = None) -> CachedLLM:
    store = None if folder is None else FolderReplyCache(folder)
    return CachedLLM(RemoteLLM(backend, semaphore=asyncio.Semaphore(30)), store)


async def test_stored_reply_is_not_requested_again(tmp_path: Path):
    backend = ScriptedBackend()
    first = await client(backend, tmp_path).complete(REQUEST)
    second = await client(backend, tmp_path).complete(REQUEST)
    assert len(backend.sent) == 1
    assert (first.cached, second.cached) == (False, True)
    assert second.parsed == first.parsed
    assert second.usage == Usage(cached_calls=1)


async def test_votes_are_different_requests(tmp_path: Path):
    backend = ScriptedBackend()
    caching = client(backend, tmp_path)
    await asyncio.gather(*(caching.complete(replace(REQUEST, vote=vote)) for vote in range(3)))
    assert len(backend.sent) == 3


@pytest.mark.parametrize("stored", [True, False])
async def test_concurrent_equal_requests_are_joined(tmp_path: Path, stored: bool):
    gate = asyncio.Event()
    backend = ScriptedBackend(gate=gate)
    joining = client(backend, tmp_path if stored else None)
    tasks = [asyncio.create_task(joining.complete(REQUEST)) for _ in range(5)]
    async with asyncio.timeout(240):
        await backend.started.wait()
        await asyncio.sleep(0.01)
        gate.set()
        replies = await asyncio.gather(*tasks)
    assert len(backend.sent) == 1
    assert sorted(reply.cached for reply in replies) == [False, True, True, True, True]
    assert sum((reply.usage for reply in replies), Usage()).calls == 1


async def test_each_joined_request_gets_an_object_of_its_own_class():
    """A task script is loaded once per answer, so equal classes of two answers are two class objects."""
    gate = asyncio.Event()
    joining = client(ScriptedBackend(raw('{"name": "Ada"}'), gate=gate))
    classes = [create_model("Person", name=(str, ...)) for _ in range(3)]
    tasks = [asyncio.create_task(joining.complete(replace(REQUEST, schema=each, purpose="free"))) for each in classes]
    await asyncio.sleep(0.01)
    gate.set()
    replies = await asyncio.gather(*tasks)
    assert [type(reply.parsed) for reply in replies] == classes
    assert sum(not reply.cached for reply in replies) == 1


async def test_cancelling_one_joined_request_does_not_affect_the_others():
    gate = asyncio.Event()
    backend = ScriptedBackend(gate=gate)
    joining = client(backend)
    first, second = (asyncio.create_task(joining.complete(REQUEST)) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.wait([first])
    gate.set()
    reply = await second
    assert reply.parsed is not None
    assert len(backend.sent) == 1
    assert (reply.usage.calls, reply.cached) == (1, False)  # the remaining request is charged


async def test_joined_request_that_fails_is_charged_once():
    gate = asyncio.Event()
    joining = client(ScriptedBackend(raw("no"), gate=gate))
    tasks = [asyncio.create_task(joining.complete(REQUEST)) for _ in range(3)]
    await asyncio.sleep(0.01)
    gate.set()
    await asyncio.wait(tasks)
    errors = [task.exception() for task in tasks]
    usages = [error.usage.calls for error in errors if isinstance(error, LLMOutputUnusable)]
    assert sorted(usages) == [0, 0, 2]
    assert {error.key for error in errors if isinstance(error, LLMOutputUnusable)} == {joining.key_of(REQUEST)}


async def test_lookup_that_ends_after_the_reply_was_stored_sends_no_request(tmp_path: Path):
    gate, is_stored, reads = asyncio.Event(), asyncio.Event(), 0

    class SlowStore(FolderReplyCache):
        async def get(self, key: str) -> StoredReply | None:
            nonlocal reads
            reads += 1
            found = await super().get(key)
            if reads > 1:
                await is_stored.wait()
            return found

    backend = ScriptedBackend(gate=gate)
    caching = CachedLLM(RemoteLLM(backend, semaphore=asyncio.Semaphore(30)), SlowStore(tmp_path))
    first = asyncio.create_task(caching.complete(REQUEST))
    await backend.started.wait()
    second = asyncio.create_task(caching.complete(REQUEST))
    await asyncio.sleep(0.01)
    gate.set()
    await first
    is_stored.set()
    assert (await second).cached
    assert len(backend.sent) == 1


async def test_unusable_replies_are_not_stored(tmp_path: Path):
    caching = client(ScriptedBackend(raw("no"), raw("no"), raw()), tmp_path)
    with pytest.raises(LLMOutputUnusable):
        await caching.complete(REQUEST)
    assert (await FolderReplyCache(tmp_path).size()).entries == 0
    assert not (await caching.complete(REQUEST)).cached


async def test_later_request_without_a_store_is_sent_again():
    backend = ScriptedBackend()
    caching = client(backend)
    await caching.complete(REQUEST)
    await caching.complete(REQUEST)
    assert len(backend.sent) == 2


async def test_changed_class_of_the_same_name_is_requested_again(tmp_path: Path):
    backend = ScriptedBackend()
    caching = client(backend, tmp_path)
    await caching.complete(REQUEST)
    changed = create_model("BinaryEvalResult", reasoning=(str, ...), result=(bool, ...))
    await caching.complete(replace(REQUEST, schema=changed))
    assert len(backend.sent) == 2


async def test_closing_cancels_pending_requests():
    backend = ScriptedBackend(gate=asyncio.Event())
    caching = client(backend)
    task = asyncio.create_task(caching.complete(REQUEST))
    await asyncio.sleep(0.01)
    await caching.aclose()
    assert backend.closed
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("again", ["stored", "joined"])
async def test_cached_reply_to_a_shortened_page_is_marked(tmp_path: Path, again: str):
    gate = asyncio.Event()
    backend = ScriptedBackend(LLMRejected("400 too long", status=400, too_long=True), raw("no"), raw(), gate=gate)
    caching = client(backend, tmp_path if again == "stored" else None)
    asked = replace(REQUEST, messages=long_page())
    tasks = [asyncio.create_task(caching.complete(asked)) for _ in range(1 if again == "stored" else 2)]
    await asyncio.sleep(0.01)
    gate.set()
    replies = await asyncio.gather(*tasks)
    if again == "stored":
        replies.append(await client(backend, tmp_path).complete(asked))
    first, second = sorted(replies, key=lambda reply: reply.cached)
    assert len(backend.sent) == 3
    assert (first.cached, second.cached) == (False, True)
    assert first.shorter_page == second.shorter_page is not None
    assert (len(first.unusable), second.unusable, second.usage) == (1, (), Usage(cached_calls=1))


async def test_negative_reply_to_a_shortened_page_is_not_stored(tmp_path: Path):
    no = raw('{"reasoning": "so", "result": false, "quotes": []}')
    backend = ScriptedBackend(LLMRejected("400 too long", status=400, too_long=True), no)
    with pytest.raises(LLMRejected):
        await client(backend, tmp_path).complete(replace(REQUEST, messages=long_page()))
    assert (await FolderReplyCache(tmp_path).size()).entries == 0
