"""Checkpoints and usage of a job across attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from answers.submission import Answer
from app.jobs.budget_ledger import AttemptAccounting, BudgetLedger
from app.storage.budgets import UsageKey
from judges.context import JudgeContext
from judges.errors import LLMBudgetExceeded, ShorterPage, UnusableKind, UnusableReply
from judges.extractor import Extractor
from judges.llm.cached import CachedLLM
from judges.llm.client import CheckpointedReply, LLMReply, LLMRequest, for_job
from judges.llm.observed import ObservedLLM
from judges.llm.pricing import Estimate
from judges.llm.provider_adapter import RawReply
from judges.llm.remote import RemoteLLM
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from judges.runner import JudgeTools, run_judge
from judges.verifier import Verifier
from rubrics.verdict import Usage
from tests.fakes.backend import ScriptedBackend
from tests.fakes.pages import FixedEvidence
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres

UNUSABLE = UnusableReply(
    kind=UnusableKind.MALFORMED,
    text="I think so. \u20ac",
    detail="it stopped",
    model="gpt-6-luna",
    usage=Usage(calls=1, input_tokens=5, output_tokens=2, usd=0.5),
    then=({"role": "user", "content": "Once more."},),
)


async def test_checkpoint_restores_reply_with_usage_and_failed_attempts(rig: Rig):
    [job_id] = await rig.submit("an answer")
    usage = Usage(calls=2, input_tokens=10, output_tokens=4, usd=1.0)
    shorter = ShorterPage(refusal="400", page_chars=5_000, unusable=(UNUSABLE,))
    before: dict[str, Any] = {"unusable": (UNUSABLE,), "shorter_page": shorter, "retried": ("429",)}
    reply = LLMReply(text="{}", parsed=None, model="gpt-6-luna", usage=usage, **before)
    plain = LLMReply(text="{}", parsed=None, model="gpt-6-luna", usage=Usage(calls=1))
    async with BudgetLedger(rig.database, limit_usd=None).running() as ledger:
        accounting = await AttemptAccounting.open(rig.database, ledger, await rig.job(job_id))
        await accounting.store_reply("ab", reply)
        await accounting.store_reply("ef", plain)
        taken_over = await AttemptAccounting.open(rig.database, ledger, await rig.job(job_id))
    assert taken_over.stored_reply("ab") == CheckpointedReply(
        text="{}", model="gpt-6-luna", usage=usage, cached=False, **before
    )
    found = taken_over.stored_reply("ef")
    assert found is not None and (found.unusable, found.shorter_page) == ((), None)
    assert taken_over.stored_reply("cd") is None


@pytest.mark.parametrize("usage", [Usage(calls=1, usd=None), None], ids=["no token counts", "no reply"])
async def test_reply_of_unknown_cost_is_charged_with_the_estimate(rig: Rig, usage: Usage | None):
    [job_id] = await rig.submit("an answer")
    estimate = Estimate(model="gpt-6-luna", usd=0.6, tokens=100)
    async with BudgetLedger(rig.database, limit_usd=1.0).running() as ledger:
        account = await AttemptAccounting.open(rig.database, ledger, await rig.job(job_id))
        await account.reserve(estimate)
        account.settle(estimate, usage, "gpt-6-luna", "verify")
        with pytest.raises(LLMBudgetExceeded):
            await account.reserve(estimate)


class StoppingBackend(ScriptedBackend):
    """Provider that stops replying after ``replies`` replies."""

    def __init__(self, replies: int) -> None:
        super().__init__()
        self._replies = replies
        self.has_stopped = asyncio.Event()

    async def send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply:
        if len(self.sent) >= self._replies:
            self.has_stopped.set()
            await asyncio.Event().wait()
        return await super().send(request, params)


async def shared_claims(ctx: JudgeContext) -> None:
    for n in range(2):
        chain = ctx.sequential(f"chain{n}", f"Chain {n}")
        chain.verify("gate", f"Gate {n} is open", critical=True)
        chain.verify("shared", "The lamp is blue")
    ctx.verify("early", "The lamp is blue")


async def judge(backend: ScriptedBackend, account: AttemptAccounting) -> dict[str, Usage]:
    """Judge the answer and return the usage of each leaf."""
    llm = ObservedLLM(
        CachedLLM(RemoteLLM(backend, Retrier(RetryPolicy(), asyncio.Semaphore(3))), None), (), prepare=for_job(account)
    )
    block_builder = BlockBuilder(b"0123456789abcdef")
    pages = PagePreparer(block_builder)
    tools = JudgeTools(
        verifier=Verifier(llm, "gpt-4o", block_builder=block_builder, pages=pages),
        extractor=Extractor(llm, "gpt-4o", block_builder=block_builder, pages=pages),
        evidence_for=FixedEvidence({}),
    )
    lamp = Judge(task="t", description="The lamp.", coroutine=shared_claims)
    judgement = await run_judge(lamp, Answer(name="answer_1.md", text="x"), tools)
    return {leaf.id: leaf.verdict.usage for leaf in judgement.rubric.leaves() if leaf.verdict is not None}


async def test_takeover_keeps_the_usage_of_each_leaf(rig: Rig):
    async def attempt(job_id: str, backend: ScriptedBackend, until: asyncio.Event | None = None) -> dict[str, Usage]:
        async with BudgetLedger(rig.database, limit_usd=None).running() as ledger:
            account = await AttemptAccounting.open(rig.database, ledger, await rig.job(job_id))
            judging = asyncio.create_task(judge(backend, account))
            if until is None:
                return await judging
            await until.wait()
            judging.cancel()
            await asyncio.wait([judging])
            return {}

    uninterrupted_id, *others = await rig.submit("one", *(f"taken over after {n}" for n in range(1, 6)))
    uninterrupted = await attempt(uninterrupted_id, backend := ScriptedBackend())
    assert len(backend.sent) == 6
    assert [usage.calls for usage in uninterrupted.values()] == [2, 2, 2, 0, 0]
    for replies, job_id in enumerate(others, 1):
        stopping, resumed = StoppingBackend(replies), ScriptedBackend()
        await attempt(job_id, stopping, stopping.has_stopped)
        assert await attempt(job_id, resumed) == uninterrupted, f"after {replies} replies"
        assert len(resumed.sent) <= 6 - replies + 3


async def test_entry_that_cannot_be_written_does_not_stop_the_other_jobs(rig: Rig):
    [job_id] = await rig.submit("an answer")
    reply = LLMReply(text="{}", parsed=None, model="m", usage=Usage(calls=1))
    async with BudgetLedger(rig.database, limit_usd=None, retry_for_s=0).running() as ledger, asyncio.timeout(60):
        accounting = await AttemptAccounting.open(rig.database, ledger, await rig.job(job_id))
        ledger.record_usage(UsageKey("o", "a", "t", "m", "verify"), Usage(calls=10**30))
        await accounting.store_reply("lost", reply)
        await accounting.store_reply("stored", reply)
        taken_over = await AttemptAccounting.open(rig.database, ledger, await rig.job(job_id))
    assert taken_over.stored_reply("stored") is not None
