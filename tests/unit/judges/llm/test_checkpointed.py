from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from judges.errors import LLMRejected, LLMUnavailable
from judges.llm.budget import ProcessBudget
from judges.llm.cached import CachedLLM
from judges.llm.checkpointed import CheckpointedReply, with_checkpoints
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.lexical import LexicalClient
from judges.llm.remote import RemoteLLM
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.verdict_reply import BinaryEvalResult
from rubrics.verdict import Usage
from tests.fakes.backend import ScriptedBackend, long_page, raw
from tests.fakes.clock import FakeClock
from tests.fakes.llm import RuleLLM

REQUEST = LLMRequest(
    model="gpt-4o", messages=({"role": "user", "content": "?"},), schema=BinaryEvalResult, purpose="verify"
)


class Notebook:
    """Checkpoints in memory; ``gate`` holds up the writing."""

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.kept: dict[str, CheckpointedReply] = {}
        self._gate = gate

    def recall(self, key: str) -> CheckpointedReply | None:
        return self.kept.get(key)

    async def keep(self, key: str, reply: LLMReply) -> None:
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


async def test_what_a_job_was_told_it_is_told_again_at_the_same_cost_and_nobody_is_asked():
    backend, notes = ScriptedBackend(), Notebook()
    first = await with_checkpoints(client(backend), notes).complete(REQUEST)
    again = await with_checkpoints(client(backend), notes).complete(REQUEST)
    assert len(backend.sent) == 1
    assert again == first
    assert (again.usage.calls, again.cached) == (1, False)


async def test_a_repaired_reply_comes_back_with_the_one_that_could_not_be_used():
    backend, notes = ScriptedBackend(raw("no verdict"), raw()), Notebook()
    first = await with_checkpoints(client(backend), notes).complete(REQUEST)
    again = await with_checkpoints(client(backend), notes).complete(REQUEST)
    assert [each.text for each in again.unusable] == ["no verdict"]
    assert again == first


async def test_what_a_stored_result_has_counted_costs_nothing_in_the_next():
    backend, notes = ScriptedBackend(), Notebook()
    await with_checkpoints(client(backend), notes).complete(REQUEST)
    notes.kept = {key: replace(reply, counted=True) for key, reply in notes.kept.items()}
    again = await with_checkpoints(client(backend), notes).complete(REQUEST)
    assert (again.usage, again.cached) == (Usage(cached_calls=1), True)


async def test_a_reply_does_not_count_before_it_is_written_down():
    gate = asyncio.Event()
    asking = asyncio.create_task(with_checkpoints(client(ScriptedBackend()), Notebook(gate)).complete(REQUEST))
    await asyncio.sleep(0.05)
    assert not asking.done()
    gate.set()
    await asking


async def test_a_kept_reply_that_no_longer_fits_is_asked_for_anew():
    backend, notes = ScriptedBackend(raw("no verdict"), raw()), Notebook()
    key = client(backend).key_of(REQUEST)
    notes.kept[key] = CheckpointedReply(text="no verdict", model="gpt-4o", usage=Usage(calls=1), cached=False)
    assert (await with_checkpoints(client(backend), notes).complete(REQUEST)).parsed is not None
    assert len(backend.sent) == 2


async def test_the_purse_of_the_job_pays():
    budget = ProcessBudget(100.0)
    await with_checkpoints(client(ScriptedBackend()), Notebook(), budget).complete(REQUEST)
    assert budget.spent_usd > 0


def test_a_judge_that_asks_nobody_needs_no_memory():
    lexical = LexicalClient()
    assert with_checkpoints(lexical, Notebook()) is lexical


def test_a_client_without_keys_is_not_silently_left_without_a_memory():
    with pytest.raises(TypeError, match="RuleLLM"):
        with_checkpoints(RuleLLM(), Notebook())


@pytest.mark.parametrize("counted", [True, False])
async def test_a_reply_to_a_shorter_page_comes_back_as_one(counted: bool):
    refusal = LLMRejected("400 too long", status=400, too_long=True)
    backend, notes = ScriptedBackend(raw("no"), refusal, LLMUnavailable("503"), raw()), Notebook()
    asked, slots, clock = replace(REQUEST, messages=long_page()), asyncio.Semaphore(1), FakeClock()
    retrier = Retrier(RetryPolicy(), slots, clock=clock, sleep=clock.sleep)
    inner = CachedLLM(RemoteLLM(backend, semaphore=slots, retrier=retrier), None)
    first = await with_checkpoints(inner, notes).complete(asked)
    notes.kept = {key: replace(reply, counted=counted) for key, reply in notes.kept.items()}
    again = await with_checkpoints(inner, notes).complete(asked)
    assert len(backend.sent) == 4
    assert first.shorter_page is not None
    assert ([each.text for each in first.shorter_page.unusable], first.retried) == (["no"], ("503",))
    if counted:
        assert (again.shorter_page, again.retried) == (replace(first.shorter_page, unusable=()), ())
    else:
        assert again == first
