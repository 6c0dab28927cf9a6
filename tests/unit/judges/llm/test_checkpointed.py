from __future__ import annotations

import asyncio
from dataclasses import replace

from judges.llm.cached import CachedLLM
from judges.llm.client import CheckpointedReply, LLMReply, LLMRequest, for_job
from judges.llm.observed import ObservedLLM
from judges.llm.pricing import RequestBudget
from judges.llm.remote import RemoteLLM
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage
from tests.fakes.backend import ScriptedBackend, raw

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
    return CachedLLM(RemoteLLM(backend, Retrier(RetryPolicy(), asyncio.Semaphore(30))), None)


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


async def test_checkpoint_counted_in_an_earlier_result_costs_nothing():
    backend, checkpoints = ScriptedBackend(), MemoryCheckpoints()
    await with_checkpoints(client(backend), checkpoints).complete(REQUEST)
    checkpoints.kept = {key: replace(reply, counted=True) for key, reply in checkpoints.kept.items()}
    again = await with_checkpoints(client(backend), checkpoints).complete(REQUEST)
    assert (again.usage, again.cached) == (Usage(cached_calls=1), True)


async def test_invalid_checkpoint_is_requested_again():
    backend, checkpoints = ScriptedBackend(raw("no verdict"), raw()), MemoryCheckpoints()
    key = client(backend).key_of(REQUEST)
    checkpoints.kept[key] = CheckpointedReply(text="no verdict", model="gpt-4o", usage=Usage(calls=1), cached=False)
    assert (await with_checkpoints(client(backend), checkpoints).complete(REQUEST)).parsed is not None
    assert len(backend.sent) == 2
