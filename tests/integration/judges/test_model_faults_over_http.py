"""The fault matrix: everything a model server can do wrong, over a real socket, through the whole client.

For each fault: how many requests it costs, what becomes of the claim, and that it is never "false".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from email.utils import formatdate

import pytest

from judges.errors import (
    LLMCircuitOpen,
    LLMOutputUnusable,
    LLMQuotaExhausted,
    LLMRejected,
    LLMTimeout,
    LLMUnavailable,
)
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.openai import open_openai
from judges.llm.remote import RemoteLLM
from judges.llm.request_formats import LADDER
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.verdict_reply import BinaryEvalResult
from judges.verifier import Verifier
from rubrics.verdict import Claim, Outcome, Reason, Verdict
from tests.fakes.clock import FakeClock
from tests.fakes.pages import page
from tests.standin import faults
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

IGNORES_THE_FORM = frozenset(
    {"cut_json", "empty", "list_not_object", "malformed", "not_a_number", "off_schema", "two_objects", "wrong_types"}
)
"""Faults that look as if the server ignored the form in which it was asked."""
SEPARATOR = BlockBuilder(b"0123456789abcdef")
REQUEST = LLMRequest(
    model="gpt-6-luna",
    messages=({"role": "user", "content": "So it is."},),
    schema=BinaryEvalResult,
    purpose="verify",
)


@pytest.fixture
async def server() -> AsyncIterator[StandInLLM]:
    async with StandInLLM() as running:
        yield running


@pytest.fixture
async def connect(server: StandInLLM) -> AsyncIterator[Callable[..., RemoteLLM]]:
    """Makes clients of the server whose waits take no time; closes them in the end."""
    made: list[RemoteLLM] = []

    def make(*, clock: FakeClock | None = None, base_url: str | None = None, **policy: float) -> RemoteLLM:
        clock = clock or FakeClock()
        slots = asyncio.Semaphore(30)
        backend = open_openai(api_key="sk-test", base_url=base_url or server.base_url)
        retrier = Retrier(
            RetryPolicy(**policy),  # type: ignore[arg-type]
            slots,
            clock=time.monotonic if policy else clock,
            sleep=clock.sleep,
            jitter=lambda seconds: seconds,
        )
        made.append(RemoteLLM(backend, semaphore=slots, retrier=retrier))
        return made[-1]

    yield make
    for client in made:
        await client.aclose()


Connect = Callable[..., RemoteLLM]


async def verdict_by(client: RemoteLLM) -> Verdict:
    verifier = Verifier(client, "gpt-6-luna", separator=SEPARATOR, pages=PagePreparer(SEPARATOR))
    return await verifier.judge(Claim(text="So it is."), task="t", answer="a")


def result_of(reply: LLMReply) -> bool:
    assert isinstance(reply.parsed, BinaryEvalResult)
    return reply.parsed.result


@pytest.mark.parametrize("name", sorted(faults.UNUSABLE))
async def test_an_unusable_reply_is_repaired_by_one_more_request(server: StandInLLM, connect: Connect, name: str):
    server.faults.append(faults.UNUSABLE[name])
    reply = await connect().complete(REQUEST)
    assert result_of(reply) is True
    assert len(server.calls) == reply.usage.calls == 2


@pytest.mark.parametrize("name", sorted(faults.UNUSABLE))
async def test_replies_that_stay_unusable_leave_the_claim_open(server: StandInLLM, connect: Connect, name: str):
    server.always = faults.UNUSABLE[name]
    verdict = await verdict_by(connect())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_JUDGED, Reason.LLM_OUTPUT_UNUSABLE)
    # The first vote of a server of which nothing is known tries every rung, the second one does not.
    calls = 2 + 5 if name in IGNORES_THE_FORM else 2 * 2
    assert len(server.calls) == verdict.usage.calls == calls


@pytest.mark.parametrize("name", sorted(faults.USABLE))
async def test_an_odd_reply_that_says_plainly_what_was_asked_is_taken(server: StandInLLM, connect: Connect, name: str):
    server.always = faults.USABLE[name]
    assert result_of(await connect().complete(REQUEST)) is True
    assert len(server.calls) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_a_transient_status_is_tried_again(server: StandInLLM, connect: Connect, status: int):
    server.faults.extend([Fault(status=status), Fault(status=status)])
    assert result_of(await connect().complete(REQUEST)) is True
    assert len(server.calls) == 3


@pytest.mark.parametrize("fault", [faults.RESET, faults.RESET_MID_BODY])
async def test_a_cut_connection_is_tried_again(server: StandInLLM, connect: Connect, fault: Fault):
    server.faults.append(fault)
    assert result_of(await connect().complete(REQUEST)) is True
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    "fault",
    [faults.RATE_LIMITED, Fault(status=500), faults.RESET, faults.RESET_MID_BODY],
    ids=["429", "500", "cut", "mid"],
)
async def test_a_storm_ends_after_five_tries(server: StandInLLM, connect: Connect, fault: Fault):
    server.always = fault
    with pytest.raises(LLMUnavailable) as caught:
        await connect().complete(REQUEST)
    assert caught.value.tries == len(server.calls) == 5


async def test_a_storm_leaves_the_claim_open(server: StandInLLM, connect: Connect):
    server.always = Fault(status=503)
    verdict = await verdict_by(connect())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_JUDGED, Reason.LLM_UNAVAILABLE)
    assert len(server.calls) == 2 * 5


async def test_nobody_listening_leaves_the_claim_open(server: StandInLLM, connect: Connect):
    client = connect()
    await server.stop()
    verdict = await verdict_by(client)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_JUDGED, Reason.LLM_UNAVAILABLE)


@pytest.mark.parametrize("asked", ["date", "seconds"])
async def test_retry_after_is_waited_for(server: StandInLLM, connect: Connect, asked: str):
    header = formatdate(time.time() + 20, usegmt=True) if asked == "date" else "20"
    server.faults.append(Fault(status=429, headers={"Retry-After": header}))
    clock = FakeClock()
    await connect(clock=clock).complete(REQUEST)
    assert clock.sleeps == [pytest.approx(21, abs=1.5)]


@pytest.mark.parametrize("header", ["soon", "", "-1", "0", "99999999999999999999", "3600"])
async def test_no_retry_after_makes_it_hang_or_hammer(server: StandInLLM, connect: Connect, header: str):
    server.always = Fault(status=429, headers={"Retry-After": header})
    clock = FakeClock()
    with pytest.raises(LLMUnavailable):
        await connect(clock=clock).complete(REQUEST)
    assert len(server.calls) <= 5
    assert sum(clock.sleeps) <= 60


@pytest.mark.parametrize(
    "fault",
    [faults.WRONG_KEY, faults.NO_ACCESS, faults.UNKNOWN_MODEL, faults.BAD_REQUEST],
    ids=["401", "403", "404", "400"],
)
async def test_a_refusal_for_good_costs_one_request_for_everybody(server: StandInLLM, connect: Connect, fault: Fault):
    server.always = fault
    clock = FakeClock()
    client = connect(clock=clock)
    verdicts = await asyncio.gather(*(verdict_by(client) for _ in range(20)))
    # A 400 that names nothing may be about the form: one request is tried on every rung, in one message, and without
    # its reasoning effort.
    assert len(server.calls) <= (len(LADDER) + 2 if fault is faults.BAD_REQUEST else 1)
    assert {verdict.reason for verdict in verdicts} == {Reason.LLM_REJECTED}
    assert clock.sleeps == []
    with pytest.raises(LLMCircuitOpen):
        await client.complete(REQUEST)


async def test_a_mended_key_is_used_after_a_reset(server: StandInLLM, connect: Connect):
    server.api_key = "another key"
    client = connect()
    with pytest.raises(LLMRejected, match="the key is wrong"):
        await client.complete(REQUEST)
    server.api_key = "sk-test"
    client.circuit.reset()
    assert result_of(await client.complete(REQUEST)) is True
    assert len(server.calls) == 2


async def test_a_key_that_the_server_repeats_is_not_repeated_by_us(server: StandInLLM, connect: Connect):
    server.always = Fault(status=401, message="no such key: sk-test")
    with pytest.raises(LLMRejected) as caught:
        await connect().complete(REQUEST)
    assert "sk-test" not in str(caught.value)
    assert "no such key" in str(caught.value)


async def test_a_key_that_dies_midway_stops_what_follows(server: StandInLLM, connect: Connect):
    server.faults.extend([None, None])
    server.always = faults.WRONG_KEY
    client = connect()
    assert (await verdict_by(client)).outcome is Outcome.PASSED
    assert (await verdict_by(client)).reason is Reason.LLM_REJECTED
    assert (await verdict_by(client)).reason is Reason.LLM_REJECTED
    assert len(server.calls) <= 2 + 2


async def test_an_empty_account_is_not_tried_again(server: StandInLLM, connect: Connect):
    server.always = faults.NO_QUOTA
    with pytest.raises(LLMQuotaExhausted, match="quota"):
        await connect().complete(REQUEST)
    assert len(server.calls) == 1


async def test_a_request_that_is_too_long_stops_no_other(server: StandInLLM, connect: Connect):
    server.faults.append(faults.TOO_LONG)
    client = connect()
    with pytest.raises(LLMRejected):
        await client.complete(REQUEST)
    assert result_of(await client.complete(REQUEST)) is True
    assert len(server.calls) == 2


@pytest.mark.parametrize(("result", "outcome"), [(True, Outcome.PASSED), (False, Outcome.NOT_JUDGED)])
async def test_a_page_that_is_too_long_is_shown_in_part_once_and_only_its_support_counts(
    server: StandInLLM, connect: Connect, result: bool, outcome: Outcome
):
    server.fault_for = lambda call: faults.TOO_LONG if len(call.page) > 10_000 else None
    server.rule = lambda call: result
    verifier = Verifier(connect(), "gpt-6-luna", separator=SEPARATOR, pages=PagePreparer(SEPARATOR))
    shown = page(text="So it is. " * 1_500)
    verdict = await verifier.judge(Claim(text="So it is."), task="t", answer="a", evidence=shown)
    assert verdict.outcome is outcome
    assert verdict.reason is (None if result else Reason.LLM_REJECTED)
    assert [len(call.page) > 10_000 for call in server.calls].count(True) == len(server.calls) / 2
    assert verdict.usage.calls == len(server.calls) / 2


async def test_a_page_that_is_too_long_in_part_too_leaves_its_claim_open(server: StandInLLM, connect: Connect):
    server.always = faults.TOO_LONG
    verifier = Verifier(connect(), "gpt-6-luna", separator=SEPARATOR, pages=PagePreparer(SEPARATOR))
    shown = page(text="So it is. " * 1_500)
    verdict = await verifier.judge(Claim(text="So it is."), task="t", answer="a", evidence=shown, trials=1)
    assert (verdict.outcome, verdict.reason, len(server.calls)) == (Outcome.NOT_JUDGED, Reason.LLM_REJECTED, 2)


async def test_a_filtered_prompt_leaves_only_its_claim_open(server: StandInLLM, connect: Connect):
    server.faults.append(Fault(status=400, code="content_filter"))
    client = connect()
    with pytest.raises(LLMOutputUnusable):
        await client.complete(REQUEST)
    assert result_of(await client.complete(REQUEST)) is True


@pytest.mark.parametrize(("model", "limit"), [("gpt-4o", "total_s"), ("gpt-6-luna", "long_total_s")])
async def test_a_reply_that_never_comes_ends_in_time(server: StandInLLM, connect: Connect, model: str, limit: str):
    server.always = Fault(delay_s=30)
    with pytest.raises(LLMTimeout, match=r"within 0\.1 s"):
        await connect(**{limit: 0.1}).complete(replace(REQUEST, model=model))
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("lost", "outcome", "reason", "calls"),
    [
        ({0}, Outcome.PASSED, None, 2 + 2),
        ({0, 2}, Outcome.NOT_JUDGED, Reason.NO_MAJORITY, 2 + 2 + 1),
        ({0, 1}, Outcome.NOT_JUDGED, Reason.LLM_OUTPUT_UNUSABLE, 2 + 2),
    ],
)
async def test_two_of_three_votes_lost_are_no_majority(
    server: StandInLLM, connect: Connect, lost: set[int], outcome: Outcome, reason: Reason | None, calls: int
):
    client, alone = connect(), asyncio.Lock()
    await client.complete(REQUEST)  # the server's form is known
    server.calls.clear()

    class Losing:
        """Loses the votes named, by scripting two unusable replies for each."""

        async def complete(self, request: LLMRequest) -> LLMReply:
            async with alone:
                if request.vote in lost:
                    server.faults.extend([faults.MALFORMED, faults.EMPTY])
                return await client.complete(request)

        async def aclose(self) -> None: ...

    verifier = Verifier(Losing(), "gpt-6-luna", separator=SEPARATOR, pages=PagePreparer(SEPARATOR))
    verdict = await verifier.judge(Claim(text="So it is."), task="t", answer="a")
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert len(server.calls) == calls
