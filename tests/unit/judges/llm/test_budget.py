from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from judges.errors import LLMBudgetExceeded, LLMTimeout
from judges.llm.client import LLMRequest
from judges.llm.pricing import Estimate, Prices, ProcessBudget, estimate_cost, price_of
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.remote import RemoteLLM
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Reason, Usage
from tests.fakes.backend import ScriptedBackend

REQUEST = LLMRequest(model="o4-mini", messages=(), schema=BinaryEvalResult, purpose="verify")


def reply(text: str = '{"reasoning": "r", "result": true}', model: str = "o4-mini") -> RawReply:
    return RawReply(text=text, finish=FinishReason.STOP, model=model, input_tokens=1_000_000, output_tokens=0)


def limited(backend: ScriptedBackend, budget: ProcessBudget, *, at_once: int = 1) -> RemoteLLM:
    return RemoteLLM(backend, Retrier(RetryPolicy(), asyncio.Semaphore(at_once)), budget=budget)


async def test_no_request_is_sent_after_the_budget_is_spent():
    backend = ScriptedBackend(reply())
    llm = limited(backend, ProcessBudget(2.0))  # a request costs 1.10 USD
    ended = await asyncio.gather(*(llm.complete(REQUEST) for _ in range(10)), return_exceptions=True)
    refused = [one for one in ended if isinstance(one, LLMBudgetExceeded)]
    assert (len(backend.sent), len(refused)) == (2, 8)
    assert refused[0].reason is Reason.BUDGET


UNPRICED = Estimate(model="mine", usd=None, tokens=100)


async def test_model_without_price_is_limited_by_tokens():
    budget = ProcessBudget(1.0, 1_000)
    await budget.reserve(UNPRICED)
    budget.settle(UNPRICED, Usage(calls=1, input_tokens=900, output_tokens=100, usd=None), "mine", "verify")
    with pytest.raises(LLMBudgetExceeded, match="1000 tokens is used up: raise ASSAY_BUDGET_TOKENS"):
        await budget.reserve(UNPRICED)
    assert (budget.spent_usd, budget.used_tokens) == (0, 1_000)


@pytest.mark.parametrize("budget", [ProcessBudget(0.01), ProcessBudget(None, 2_000)], ids=["usd", "tokens"])
async def test_request_that_times_out_is_charged_with_the_estimate(budget: ProcessBudget):
    backend = ScriptedBackend(gate=asyncio.Event())
    retrier = Retrier(RetryPolicy(total_s=0.01), asyncio.Semaphore(1))
    llm = RemoteLLM(backend, retrier, budget=budget)
    ended = await asyncio.gather(*(llm.complete(REQUEST) for _ in range(9)), return_exceptions=True)
    assert [type(one) for one in ended] == [LLMTimeout] * 2 + [LLMBudgetExceeded] * 7


def test_cost_estimate_is_an_upper_bound():
    text = {"role": "user", "content": "word " * 4000}
    picture = {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "what is this?"}]}
    price = price_of("o4-mini")
    assert price is not None

    def usd(model: str, *messages: Mapping[str, Any]) -> float | None:
        return estimate_cost(model, messages, Prices()).usd

    one, both = usd("o4-mini", text), usd("o4-mini", text, picture)
    assert one is not None
    assert both is not None
    assert both > one > price.usd(input_tokens=5000, output_tokens=1000)
    assert usd("a model of my own", text) is None
