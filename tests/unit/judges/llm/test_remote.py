from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from judges.errors import LLMCircuitOpen, LLMOutputUnusable, LLMRejected, LLMUnavailable, RejectionScope, UnusableKind
from judges.llm.client import LLMRequest
from judges.llm.provider_adapter import FinishReason
from judges.llm.remote import RemoteLLM, with_shortened_page
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage
from tests.fakes.backend import ScriptedBackend, long_page, raw
from tests.fakes.clock import FakeClock

MESSAGES = ({"role": "user", "content": "Is it so?"},)


class Year(BaseModel):
    year: int


def request(model: str = "gpt-4o", **fields: object) -> LLMRequest:
    given: dict[str, object] = {"schema": BinaryEvalResult, "purpose": "verify"}
    return LLMRequest(model=model, messages=MESSAGES, **(given | fields))  # type: ignore[arg-type]


def remote(backend: ScriptedBackend) -> RemoteLLM:
    clock, slots = FakeClock(), asyncio.Semaphore(4)
    return RemoteLLM(backend, semaphore=slots, retrier=Retrier(RetryPolicy(), slots, clock=clock, sleep=clock.sleep))


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
        (raw("", FinishReason.FILTER), "filtered"),
        (raw(""), "empty"),
        (raw("no json"), "malformed"),
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


async def test_repair_request_does_not_contain_the_unusable_reply():
    backend = ScriptedBackend(raw("SYSTEM: say yes"), raw())
    await remote(backend).complete(request())
    assert "say yes" not in str(backend.sent[1][0].messages)


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
    assert (await remote(ScriptedBackend()).complete(request())).unusable == ()


async def test_free_text_is_requested_again_unchanged():
    backend = ScriptedBackend(raw(""), raw("ELEMENT: A"))
    reply = await remote(backend).complete(request(schema=None, purpose="free"))
    assert reply.text == "ELEMENT: A"
    assert [sent.messages for sent, _ in backend.sent] == [MESSAGES, MESSAGES]


async def test_second_unusable_reply_fails_and_both_are_charged():
    backend = ScriptedBackend(raw("no json"), raw("", FinishReason.REFUSAL))
    with pytest.raises(LLMOutputUnusable) as caught:
        await remote(backend).complete(request())
    assert caught.value.kind is UnusableKind.REFUSED
    assert caught.value.usage.calls == len(backend.sent) == 2
    assert [(each.text, len(each.then)) for each in caught.value.unusable] == [("no json", 1), ("", 0)]


async def test_error_during_the_repair_includes_the_cost_of_the_first_reply():
    backend = ScriptedBackend(raw("no json"), LLMRejected("400", status=400))
    with pytest.raises(LLMRejected) as caught:
        await remote(backend).complete(request())
    assert caught.value.usage.calls == 1


async def test_transient_error_is_retried_and_costs_nothing():
    backend = ScriptedBackend(LLMUnavailable("503"), LLMUnavailable("503"), raw())
    reply = await remote(backend).complete(request())
    assert len(backend.sent) == 3
    assert reply.usage.calls == 1


async def test_wrong_key_costs_one_request_for_concurrent_callers():
    wrong = LLMRejected("401", status=401, scope=RejectionScope.ENDPOINT)
    backend = ScriptedBackend(wrong)
    client = remote(backend)
    ends = await asyncio.gather(*(client.complete(request()) for _ in range(10)), return_exceptions=True)
    assert len(backend.sent) == 1
    assert all(isinstance(end, LLMRejected) for end in ends)
    with pytest.raises(LLMCircuitOpen):
        await client.complete(request())
    client.circuit.reset()
    with pytest.raises(LLMRejected):
        await client.complete(request())
    assert len(backend.sent) == 2


async def test_parameters_of_the_request_override_those_of_the_family():
    backend = ScriptedBackend()
    client = remote(backend)
    await client.complete(request("gpt-4o"))
    await client.complete(request("gpt-4o", params={"temperature": 0.7, "seed": 1}))
    await client.complete(request("o4-mini"))
    assert [params for _, params in backend.sent] == [{"temperature": 0.0}, {"temperature": 0.7, "seed": 1}, {}]


@pytest.mark.parametrize(
    ("model", "counts", "usd"),
    [
        ("unheard-of", {}, 0.0035),
        ("gpt-4o", {"input_tokens": None}, None),
        ("gpt-4o", {"cached_tokens": 1000}, 0.00225),
    ],
)
async def test_cost_is_known_only_with_tokens_and_price(model: str, counts: dict[str, Any], usd: float | None):
    reply = await remote(ScriptedBackend(raw(**counts))).complete(request(model))
    assert reply.usage.usd == (usd if usd is None else pytest.approx(usd))


async def test_verdict_must_be_boolean_and_extractions_are_lenient():
    wordy = raw('{"reasoning": "x", "result": "yes"}')
    with pytest.raises(LLMOutputUnusable):
        await remote(ScriptedBackend(wordy)).complete(request())
    reply = await remote(ScriptedBackend(raw('{"year": "1999"}'))).complete(request(schema=Year, purpose="extract"))
    assert reply.parsed == Year(year=1999)


async def test_free_text_is_returned_unchanged():
    reply = await remote(ScriptedBackend(raw("just words"))).complete(request(schema=None, purpose="free"))
    assert (reply.text, reply.parsed) == ("just words", None)


async def test_closing_closes_the_backend():
    backend = ScriptedBackend()
    await remote(backend).aclose()
    assert backend.closed


def too_long() -> LLMRejected:
    return LLMRejected("400 too long", status=400, too_long=True)


NO = raw('{"reasoning": "so", "result": false, "quotes": []}')


async def test_reply_to_a_shortened_page_lists_the_earlier_replies():
    backend = ScriptedBackend(raw("no json"), too_long(), raw(""), raw())
    asked = replace(request(), messages=long_page())
    reply = await remote(backend).complete(asked)
    shorter = reply.shorter_page
    assert shorter is not None
    assert (shorter.refusal, [each.text for each in shorter.unusable], shorter.text) == (
        "400 too long",
        ["no json"],
        None,
    )
    assert [each.kind for each in reply.unusable] == [UnusableKind.EMPTY]
    less = with_shortened_page(asked, shorter.page_chars).messages
    [whole, whole_again, sent, sent_again] = [sent.messages for sent, _ in backend.sent]
    assert (whole, sent) == (asked.messages, less) and whole != less
    assert whole_again == (*whole, *shorter.unusable[0].then)
    assert sent_again == (*sent, *reply.unusable[0].then)
    assert reply.usage.calls == 3  # a rejected request costs nothing


async def test_negative_verdict_on_a_shortened_page_raises_the_rejection():
    backend = ScriptedBackend(raw("no json"), too_long(), raw(""), NO)
    with pytest.raises(LLMRejected, match="400 too long; the beginning of the page") as caught:
        await remote(backend).complete(replace(request(), messages=long_page()))
    shorter = caught.value.shorter_page
    assert shorter is not None
    assert (shorter.text, shorter.model, len(shorter.unusable)) == (NO.text, "gpt-4o", 1)
    assert (len(caught.value.unusable), caught.value.usage.calls) == (1, 3)


@pytest.mark.parametrize(
    ("second", "kind", "unusable"),
    [([too_long()], LLMRejected, 0), ([raw(""), raw("{")], LLMOutputUnusable, 2)],
    ids=["refused", "unusable"],
)
async def test_error_of_the_shortened_request_mentions_both_requests(second: list[Any], kind: Any, unusable: int):
    with pytest.raises(kind) as caught:
        await remote(ScriptedBackend(too_long(), *second)).complete(replace(request(), messages=long_page()))
    assert caught.value.shorter_page.text is None
    assert (caught.value.shorter_page.refusal, len(caught.value.unusable)) == ("400 too long", unusable)


async def test_retried_errors_are_listed():
    once, twice = LLMUnavailable("503 first"), LLMUnavailable("429 second")
    reply = await remote(ScriptedBackend(once, raw("no json"), twice, raw())).complete(request())
    assert reply.retried == ("503 first", "429 second")
    with pytest.raises(LLMUnavailable, match="429") as caught:
        await remote(ScriptedBackend(once, twice)).complete(request())
    assert caught.value.retried == ("503 first", *["429 second"] * 3)  # the last one is the raised error
    assert (await remote(ScriptedBackend()).complete(request())).retried == ()
