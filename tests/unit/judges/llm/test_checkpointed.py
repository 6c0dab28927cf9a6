from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from judges.errors import LLMRejected, LLMUnavailable
from judges.llm.cached import CachedLLM
from judges.llm.client import CheckpointedReply, LLMReply, LLMRequest, for_job
from judges.llm.observed import ObservedLLM
from judges.llm.pricing import ProcessBudget, RequestBudget
from judges.llm.remote import RemoteLLM
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage
from tests.fakes.backend import ScriptedBackend, long_page, raw
from tests.fakes.clock import FakeClock

REQUEST = LLMRequest(
    model="gpt-4o", messages=({"role": "user", "content": "?"},), schema=BinaryEvalResult, purpose="verify"
)


class MemoryCheckpoints:
    """In-memory checkpoints. ``gate`` delays writing."""

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.kept: dict[str, CheckpointedReply] = {}
        self._gate = gate

    def stored_reply(self, key: str) -> CheckpointedReply | None:
        return self.kept.get(key)

    async def store_reply(self, key: str, reply: LLMReply) -> None:
        if self._gate is not None:
            await self._gate.wait()
        self.kept[key] = CheckpointedReply(
            text=reply.text,
            model=reply.model,
            usage=reply.usage,
            cached=reply.cached,
            unusable=reply.unusable,
            shorter_page=reply.shorter_page,
            retried=reply.retried,
        )


def client(backend: ScriptedBackend) -> CachedLLM:
    return CachedLLM(RemoteLLM(backend, semaphore=asyncio.Semaphore(30)), None)


def with_checkpoints(
    client: CachedLLM, checkpoints: MemoryCheckpoints, budget: RequestBudget | None = None
) -> ObservedLLM:
    return ObservedLLM(client, (), prepare=for_job(checkpoints, budget))


async def test_repeated_request_of_a_job_uses_its_checkpoint_at_the_same_cost():
    backend, checkpoints = ScriptedBackend(), MemoryCheckpoints()
    first = await with_checkpoints(client(backend), checkpoints).complete(REQUEST)
    again = await with_checkpoints(client(backend), checkpoints).complete(REQUEST)
    assert len(backend.sent) == 1
    assert again == first
    assert (again.usage.calls, again.cached) == (1, False)


async def test_checkpoint_includes_the_unusable_reply():
    backend, checkpoints = ScriptedBackend(raw("no verdict"), raw()), MemoryCheckpoints()
    first = await with_checkpoints(client(backend), checkpoints).complete(REQUEST)
    again = await with_checkpoints(client(backend), checkpoints).complete(REQUEST)
    assert [each.text for each in again.unusable] == ["no verdict"]
    assert again == first


async def test_checkpoint_counted_in_an_earlier_result_costs_nothing():
    backend, checkpoints = ScriptedBackend(), MemoryCheckpoints()
    await with_checkpoints(client(backend), checkpoints).complete(REQUEST)
    checkpoints.kept = {key: replace(reply, counted=True) for key, reply in checkpoints.kept.items()}
    again = await with_checkpoints(client(backend), checkpoints).complete(REQUEST)
    assert (again.usage, again.cached) == (Usage(cached_calls=1), True)


async def test_reply_is_returned_only_after_its_checkpoint_is_written():
    gate = asyncio.Event()
    asking = asyncio.create_task(with_checkpoints(client(ScriptedBackend()), MemoryCheckpoints(gate)).complete(REQUEST))
    await asyncio.sleep(0.05)
    assert not asking.done()
    gate.set()
    await asking


async def test_invalid_checkpoint_is_requested_again():
    backend, checkpoints = ScriptedBackend(raw("no verdict"), raw()), MemoryCheckpoints()
    key = client(backend).key_of(REQUEST)
    checkpoints.kept[key] = CheckpointedReply(text="no verdict", model="gpt-4o", usage=Usage(calls=1), cached=False)
    assert (await with_checkpoints(client(backend), checkpoints).complete(REQUEST)).parsed is not None
    assert len(backend.sent) == 2


async def test_budget_of_the_job_is_charged():
    budget = ProcessBudget(100.0)
    await with_checkpoints(client(ScriptedBackend()), MemoryCheckpoints(), budget).complete(REQUEST)
    assert budget.spent_usd > 0


@pytest.mark.parametrize("counted", [True, False])
async def test_checkpoint_of_a_shortened_page_is_marked(counted: bool):
    refusal = LLMRejected("400 too long", status=400, too_long=True)
    backend, checkpoints = ScriptedBackend(raw("no"), refusal, LLMUnavailable("503"), raw()), MemoryCheckpoints()
    asked, slots, clock = replace(REQUEST, messages=long_page()), asyncio.Semaphore(1), FakeClock()
    retrier = Retrier(RetryPolicy(), slots, clock=clock, sleep=clock.sleep)
    inner = CachedLLM(RemoteLLM(backend, semaphore=slots, retrier=retrier), None)
    first = await with_checkpoints(inner, checkpoints).complete(asked)
    checkpoints.kept = {key: replace(reply, counted=counted) for key, reply in checkpoints.kept.items()}
    again = await with_checkpoints(inner, checkpoints).complete(asked)
    assert len(backend.sent) == 4
    assert first.shorter_page is not None
    assert ([each.text for each in first.shorter_page.unusable], first.retried) == (["no"], ("503",))
    if counted:
        assert (again.shorter_page, again.retried) == (replace(first.shorter_page, unusable=()), ())
    else:
        assert again == first
