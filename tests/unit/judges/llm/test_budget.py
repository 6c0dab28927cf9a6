from __future__ import annotations

import pytest

from judges.errors import LLMBudgetExceeded, LLMOutputUnusable, UnusableKind
from judges.llm.budget import BudgetedLLM
from judges.llm.client import LLMRequest
from rubrics.verdict import Reason, Usage
from tests.fakes.llm import RuleLLM

REQUEST = LLMRequest(model="m", messages=(), purpose="verify", parts={"claim": "x"})


async def test_nothing_is_asked_once_the_money_is_spent():
    inner = RuleLLM()
    budgeted = BudgetedLLM(inner, max_usd=0.0025)
    for _ in range(3):
        await budgeted.complete(REQUEST)
    with pytest.raises(LLMBudgetExceeded) as caught:
        await budgeted.complete(REQUEST)
    assert len(inner.requests) == 3
    assert caught.value.reason is Reason.BUDGET


async def test_replies_that_could_not_be_used_are_paid_for_too():
    fault = LLMOutputUnusable(UnusableKind.EMPTY, "empty", usage=Usage(calls=2, usd=0.5))
    budgeted = BudgetedLLM(RuleLLM(lambda request: fault), max_usd=1)
    with pytest.raises(LLMOutputUnusable):
        await budgeted.complete(REQUEST)
    assert budgeted.spent_usd == 0.5


async def test_a_cost_nobody_knows_cannot_be_counted():
    fault = LLMOutputUnusable(UnusableKind.EMPTY, "empty", usage=Usage(calls=1, usd=None))
    budgeted = BudgetedLLM(RuleLLM(lambda request: fault), max_usd=1)
    for _ in range(2):
        with pytest.raises(LLMOutputUnusable):
            await budgeted.complete(REQUEST)
    assert budgeted.spent_usd == 0


async def test_closing_closes_the_client_behind():
    inner = RuleLLM()
    await BudgetedLLM(inner, max_usd=1).aclose()
    assert inner.closed
