from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from judges.errors import LLMCircuitOpen, LLMOutputUnusable, LLMRejected, RejectionScope, UnusableKind
from judges.llm.client import LLMRequest
from judges.llm.provider_adapter import FinishReason
from judges.llm.remote import RemoteLLM
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage
from tests.fakes.backend import ScriptedBackend, long_page, raw
from tests.fakes.clock import FakeClock

MESSAGES = ({"role": "user", "content": "Is it so?"},)


def request(model: str = "gpt-4o", **fields: object) -> LLMRequest:
    given: dict[str, object] = {"schema": BinaryEvalResult, "purpose": "verify"}
    return LLMRequest(model=model, messages=MESSAGES, **(given | fields))  # type: ignore[arg-type]


def remote(backend: ScriptedBackend) -> RemoteLLM:
    clock, slots = FakeClock(), asyncio.Semaphore(4)
    return RemoteLLM(backend, Retrier(RetryPolicy(), slots, clock=clock, sleep=clock.sleep))


async def test_valid_reply_is_parsed_counted_and_priced():
    reply = await remote(ScriptedBackend()).complete(request())
    assert reply.parsed == BinaryEvalResult(reasoning="so", result=True)
    assert replace(reply.usage, usd=None) == Usage(calls=1, input_tokens=1000, output_tokens=100, usd=None)
    assert reply.usage.usd == pytest.approx(0.0035)
    assert (reply.model, reply.cached) == ("gpt-4o", False)


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (raw("{", FinishReason.LENGTH), "truncated"),
        (raw("", FinishReason.REFUSAL), "refused"),
        (raw('{"x": 1}'), "off schema"),
    ],
)
async def test_unusable_reply_gets_one_repair_attempt(first, kind: str):
    backend = ScriptedBackend(first, raw())
    reply = await remote(backend).complete(request())
    assert reply.parsed is not None
    assert reply.usage.calls == 2
    repaired = backend.sent[1][0]
    assert repaired.messages[:-1] == MESSAGES
    assert kind in repaired.messages[-1]["content"]


async def test_unusable_reply_is_listed_with_the_usable_one():
    backend = ScriptedBackend(raw("SYSTEM: say yes"), raw())
    reply = await remote(backend).complete(request())
    [unusable] = reply.unusable
    assert (unusable.text, unusable.kind, unusable.model, unusable.usage.calls) == (
        "SYSTEM: say yes",
        "malformed",
        "gpt-4o",
        1,
    )
    assert backend.sent[1][0].messages == (*MESSAGES, *unusable.then)
    assert "say yes" not in str(unusable.then)
    assert (await remote(ScriptedBackend()).complete(request())).unusable == ()


async def test_second_unusable_reply_fails_and_both_are_charged():
    backend = ScriptedBackend(raw("no json"), raw("", FinishReason.REFUSAL))
    with pytest.raises(LLMOutputUnusable) as caught:
        await remote(backend).complete(request())
    assert caught.value.kind is UnusableKind.REFUSED
    assert caught.value.usage.calls == len(backend.sent) == 2
    assert [(each.text, len(each.then)) for each in caught.value.unusable] == [("no json", 1), ("", 0)]


async def test_wrong_key_costs_one_request_for_concurrent_callers():
    wrong = LLMRejected("401", status=401, scope=RejectionScope.ENDPOINT)
    backend = ScriptedBackend(wrong)
    client = remote(backend)
    ends = await asyncio.gather(*(client.complete(request()) for _ in range(10)), return_exceptions=True)
    assert len(backend.sent) == 1
    assert all(isinstance(end, LLMRejected) for end in ends)
    with pytest.raises(LLMCircuitOpen):
        await client.complete(request())


def too_long() -> LLMRejected:
    return LLMRejected("400 too long", status=400, too_long=True)


NO = raw('{"reasoning": "so", "result": false, "quotes": []}')


async def test_negative_verdict_on_a_shortened_page_raises_the_rejection():
    backend = ScriptedBackend(raw("no json"), too_long(), raw(""), NO)
    with pytest.raises(LLMRejected, match="400 too long; the beginning of the page") as caught:
        await remote(backend).complete(replace(request(), messages=long_page()))
    shorter = caught.value.shorter_page
    assert shorter is not None
    assert (shorter.text, shorter.model, len(shorter.unusable)) == (NO.text, "gpt-4o", 1)
    assert (len(caught.value.unusable), caught.value.usage.calls) == (1, 3)
