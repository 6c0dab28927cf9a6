from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from judges.errors import LLMBudgetExceeded, LLMOutputUnusable, LLMRejected, RejectionScope
from judges.llm.budget import Budget, likely_usd
from judges.llm.client import LLMRequest
from judges.llm.pricing import price_of
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


async def test_a_cost_nobody_knows_cannot_be_counted():
    budget = Budget(1.0)
    budget.settle(0.0, Usage(calls=1, usd=None), "mine", "verify")
    await budget.reserve(1.0)
    assert budget.spent_usd == 0


class NotingPurse:
    """A purse with no bottom that writes down what it is asked and told."""

    def __init__(self) -> None:
        self.reserved: list[float] = []
        self.settled: list[tuple[float, Usage, str]] = []

    async def reserve(self, usd: float) -> None:
        self.reserved.append(usd)

    def settle(self, reserved_usd: float, usage: Usage, model: str, role: str) -> None:
        self.settled.append((reserved_usd, usage, model))


async def test_the_purse_of_a_request_pays_and_the_clients_own_does_not():
    own, purse = Budget(0.0), NotingPurse()
    await limited(ScriptedBackend(reply()), own).complete(replace(ASKED, purse=purse))
    [(reserved, usage, model)] = purse.settled
    assert (purse.reserved, model) == ([reserved], "o4-mini")
    assert usage.usd == pytest.approx(1.1)
    assert own.spent_usd == 0


async def test_what_was_set_aside_is_settled_however_the_request_ends():
    purse = NotingPurse()
    gate = asyncio.Event()
    backend = ScriptedBackend(gate=gate)
    asking = asyncio.create_task(limited(backend, Budget(1.0)).complete(replace(ASKED, purse=purse)))
    await backend.started.wait()
    asking.cancel()
    await asyncio.wait({asking})
    refused = LLMRejected("no", scope=RejectionScope.REQUEST)
    with pytest.raises(LLMRejected):
        await limited(ScriptedBackend(refused), Budget(1.0)).complete(replace(ASKED, purse=purse))
    assert [usage for _, usage, _ in purse.settled] == [Usage(), Usage()]


def test_a_request_is_rather_guessed_too_dear():
    text = {"role": "user", "content": "word " * 4000}
    picture = {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "what is this?"}]}
    price = price_of("o4-mini")
    assert price is not None
    assert likely_usd("o4-mini", [text]) > price.usd(input_tokens=5000, output_tokens=1000)
    assert likely_usd("o4-mini", [text, picture]) > likely_usd("o4-mini", [text])
    assert likely_usd("a model of my own", [text]) == 0.0
