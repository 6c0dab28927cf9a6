from __future__ import annotations

import asyncio

import pytest

from judges.errors import LLMBudgetExceeded, LLMOutputUnusable
from judges.llm.budget import Budget
from judges.llm.client import LLMRequest
from judges.llm.remote import RemoteLLM
from judges.llm.wire import Finish, RawReply
from judges.verdict_reply import BinaryEvalResult
from rubrics.verdict import Reason, Usage
from tests.fakes.backend import ScriptedBackend

ASKED = LLMRequest(model="o4-mini", messages=(), schema=BinaryEvalResult, purpose="verify")


def reply(text: str = '{"reasoning": "r", "result": true}', model: str = "o4-mini") -> RawReply:
    return RawReply(text=text, finish=Finish.STOP, model=model, input_tokens=1_000_000, output_tokens=0)


def limited(backend: ScriptedBackend, budget: Budget, *, at_once: int = 1) -> RemoteLLM:
    return RemoteLLM(backend, semaphore=asyncio.Semaphore(at_once), budget=budget)


async def test_nothing_is_asked_once_the_money_is_spent_however_much_waits_for_its_turn():
    backend = ScriptedBackend(reply())
    llm = limited(backend, Budget(2.0))  # a request costs 1.10 USD
    ended = await asyncio.gather(*(llm.complete(ASKED) for _ in range(10)), return_exceptions=True)
    refused = [one for one in ended if isinstance(one, LLMBudgetExceeded)]
    assert (len(backend.sent), len(refused)) == (2, 8)
    assert refused[0].reason is Reason.BUDGET


async def test_replies_that_could_not_be_used_are_paid_for_too():
    budget = Budget(100.0)
    with pytest.raises(LLMOutputUnusable):
        await limited(ScriptedBackend(reply("no")), budget).complete(ASKED)
    assert budget.spent_usd == pytest.approx(2.2)


async def test_a_repair_try_is_not_asked_for_either_once_the_money_is_spent():
    backend = ScriptedBackend(reply("no"), reply())
    with pytest.raises(LLMBudgetExceeded) as caught:
        await limited(backend, Budget(1.0)).complete(ASKED)
    assert len(backend.sent) == 1
    assert caught.value.usage.calls == 1


def test_a_cost_nobody_knows_cannot_be_counted():
    budget = Budget(1.0)
    budget.count(Usage(calls=1, usd=None), "mine")
    budget.check()
    assert budget.spent_usd == 0
