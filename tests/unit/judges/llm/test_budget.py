from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from judges.errors import LLMBudgetExceeded, LLMOutputUnusable, LLMRejected, LLMTimeout, RejectionScope
from judges.llm.client import LLMRequest
from judges.llm.pricing import Estimate, Prices, ProcessBudget, estimate_cost, price_of
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.remote import RemoteLLM
from judges.llm.retry import RetryPolicy
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Reason, Usage
from tests.fakes.backend import ScriptedBackend

REQUEST = LLMRequest(model="o4-mini", messages=(), schema=BinaryEvalResult, purpose="verify")


def reply(text: str = '{"reasoning": "r", "result": true}', model: str = "o4-mini") -> RawReply:
    return RawReply(text=text, finish=FinishReason.STOP, model=model, input_tokens=1_000_000, output_tokens=0)


def limited(backend: ScriptedBackend, budget: ProcessBudget, *, at_once: int = 1) -> RemoteLLM:
    return RemoteLLM(backend, semaphore=asyncio.Semaphore(at_once), budget=budget)


async def test_no_request_is_sent_after_the_budget_is_spent():
    backend = ScriptedBackend(reply())
    llm = limited(backend, ProcessBudget(2.0))  # a request costs 1.10 USD
    ended = await asyncio.gather(*(llm.complete(REQUEST) for _ in range(10)), return_exceptions=True)
    refused = [one for one in ended if isinstance(one, LLMBudgetExceeded)]
    assert (len(backend.sent), len(refused)) == (2, 8)
    assert refused[0].reason is Reason.BUDGET


async def test_unusable_replies_are_charged():
    budget = ProcessBudget(100.0)
    with pytest.raises(LLMOutputUnusable):
        await limited(ScriptedBackend(reply("no")), budget).complete(REQUEST)
    assert budget.spent_usd == pytest.approx(2.2)


async def test_repair_attempt_is_not_sent_after_the_budget_is_spent():
    backend = ScriptedBackend(reply("no"), reply())
    with pytest.raises(LLMBudgetExceeded) as caught:
        await limited(backend, ProcessBudget(1.0)).complete(REQUEST)
    assert len(backend.sent) == 1
    assert caught.value.usage.calls == 1


UNPRICED = Estimate(model="mine", usd=None, tokens=100)


async def test_usd_budget_rejects_a_model_without_price_and_names_the_settings():
    with pytest.raises(LLMBudgetExceeded, match=r"price of mine is unknown.*ASSAY_PRICES.*ASSAY_BUDGET_TOKENS"):
        await ProcessBudget(1.0).reserve(UNPRICED)


async def test_model_without_price_is_limited_by_tokens():
    budget = ProcessBudget(1.0, 1_000)
    await budget.reserve(UNPRICED)
    budget.settle(UNPRICED, Usage(calls=1, input_tokens=900, output_tokens=100, usd=None), "mine", "verify")
    with pytest.raises(LLMBudgetExceeded, match="1000 tokens is used up: raise ASSAY_BUDGET_TOKENS"):
        await budget.reserve(UNPRICED)
    assert (budget.spent_usd, budget.used_tokens) == (0, 1_000)


async def test_token_limit_applies_to_a_model_with_price_too():
    llm = limited(ScriptedBackend(reply()), ProcessBudget(None, 1_500_000))  # a request takes a million
    ended = await asyncio.gather(*(llm.complete(REQUEST) for _ in range(4)), return_exceptions=True)
    assert sum(isinstance(one, LLMBudgetExceeded) for one in ended) == 2


@pytest.mark.parametrize("budget", [ProcessBudget(0.01), ProcessBudget(None, 2_000)], ids=["usd", "tokens"])
async def test_reply_without_token_counts_is_charged_with_the_estimate(budget: ProcessBudget):
    backend = ScriptedBackend(replace(reply(), input_tokens=None, output_tokens=None))
    llm = limited(backend, budget)
    ended = await asyncio.gather(*(llm.complete(REQUEST) for _ in range(9)), return_exceptions=True)
    refused = [one for one in ended if isinstance(one, LLMBudgetExceeded)]
    assert (len(backend.sent), len(refused)) == (2, 7)


class RecordingBudget:
    """Unlimited budget that records reservations and settlements."""

    def __init__(self) -> None:
        self.reserved: list[Estimate] = []
        self.settled: list[tuple[Estimate, Usage | None, str]] = []

    async def reserve(self, estimate: Estimate) -> None:
        self.reserved.append(estimate)

    def settle(self, estimate: Estimate, usage: Usage | None, model: str, role: str) -> None:
        self.settled.append((estimate, usage, model))


async def test_budget_of_the_request_replaces_that_of_the_client():
    own, budget = ProcessBudget(0.0), RecordingBudget()
    await limited(ScriptedBackend(reply()), own).complete(replace(REQUEST, budget=budget))
    [(reserved, usage, model)] = budget.settled
    assert (budget.reserved, model) == ([reserved], "o4-mini")
    assert usage is not None and usage.usd == pytest.approx(1.1)
    assert own.spent_usd == 0


async def test_reservation_is_final_after_cancellation_and_errors():
    budget = RecordingBudget()
    gate = asyncio.Event()
    backend = ScriptedBackend(gate=gate)
    asking = asyncio.create_task(limited(backend, ProcessBudget(1.0)).complete(replace(REQUEST, budget=budget)))
    await backend.started.wait()
    asking.cancel()
    await asyncio.wait({asking})
    refused = LLMRejected("no", scope=RejectionScope.REQUEST)
    with pytest.raises(LLMRejected):
        await limited(ScriptedBackend(refused), ProcessBudget(1.0)).complete(replace(REQUEST, budget=budget))
    assert [usage for _, usage, _ in budget.settled] == [None, Usage()]


@pytest.mark.parametrize("budget", [ProcessBudget(0.01), ProcessBudget(None, 2_000)], ids=["usd", "tokens"])
async def test_request_that_times_out_is_charged_with_the_estimate(budget: ProcessBudget):
    backend = ScriptedBackend(gate=asyncio.Event())
    policy = RetryPolicy(total_s=0.01)
    llm = RemoteLLM(backend, semaphore=asyncio.Semaphore(1), budget=budget, policy=policy)
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
