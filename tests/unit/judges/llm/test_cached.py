from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import create_model

from judges.errors import LLMOutputUnusable, LLMRejected
from judges.llm.cached import CachedLLM, FolderReplyCache
from judges.llm.client import LLMRequest
from judges.llm.remote import RemoteLLM
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage
from tests.fakes.backend import ScriptedBackend, long_page, raw

REQUEST = LLMRequest(
    model="gpt-4o", messages=({"role": "user", "content": "?"},), schema=BinaryEvalResult, purpose="verify"
)


def client(backend: ScriptedBackend, folder: Path | None = None) -> CachedLLM:
    store = None if folder is None else FolderReplyCache(folder)
    return CachedLLM(RemoteLLM(backend, Retrier(RetryPolicy(), asyncio.Semaphore(30))), store)


async def test_stored_reply_is_not_requested_again(tmp_path: Path):
    backend = ScriptedBackend()
    first = await client(backend, tmp_path).complete(REQUEST)
    second = await client(backend, tmp_path).complete(REQUEST)
    assert len(backend.sent) == 1
    assert (first.cached, second.cached) == (False, True)
    assert second.parsed == first.parsed
    assert second.usage == Usage(cached_calls=1)


async def some_iterations() -> None:
    """Let tasks run until they wait for a reply."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_concurrent_equal_requests_are_joined():
    gate = asyncio.Event()
    backend = ScriptedBackend(gate=gate)
    joining = client(backend)
    tasks = [asyncio.create_task(joining.complete(REQUEST)) for _ in range(5)]
    await some_iterations()
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
    await some_iterations()
    gate.set()
    replies = await asyncio.gather(*tasks)
    assert [type(reply.parsed) for reply in replies] == classes
    assert sum(not reply.cached for reply in replies) == 1


async def test_joined_request_that_fails_is_charged_once():
    gate = asyncio.Event()
    joining = client(ScriptedBackend(raw("no"), gate=gate))
    tasks = [asyncio.create_task(joining.complete(REQUEST)) for _ in range(3)]
    await some_iterations()
    gate.set()
    await asyncio.wait(tasks)
    errors = [task.exception() for task in tasks]
    usages = [error.usage.calls for error in errors if isinstance(error, LLMOutputUnusable)]
    assert sorted(usages) == [0, 0, 2]
    assert {error.key for error in errors if isinstance(error, LLMOutputUnusable)} == {joining.key_of(REQUEST)}


async def test_unusable_replies_are_not_stored(tmp_path: Path):
    caching = client(ScriptedBackend(raw("no"), raw("no"), raw()), tmp_path)
    with pytest.raises(LLMOutputUnusable):
        await caching.complete(REQUEST)
    assert FolderReplyCache(tmp_path).size().entries == 0
    assert not (await caching.complete(REQUEST)).cached


async def test_negative_reply_to_a_shortened_page_is_not_stored(tmp_path: Path):
    no = raw('{"reasoning": "so", "result": false, "quotes": []}')
    backend = ScriptedBackend(LLMRejected("400 too long", status=400, too_long=True), no)
    with pytest.raises(LLMRejected):
        await client(backend, tmp_path).complete(replace(REQUEST, messages=long_page()))
    assert FolderReplyCache(tmp_path).size().entries == 0
