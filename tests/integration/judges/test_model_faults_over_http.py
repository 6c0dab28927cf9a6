"""Faults of a model server over a real socket, through the whole client: number of requests and outcome of the claim
for each fault. A fault never yields a negative verdict."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from judges.errors import (
    LLMCircuitOpen,
    LLMRejected,
    LLMTimeout,
    LLMUnavailable,
)
from judges.llm.client import LLMRequest
from judges.llm.openai import open_openai
from judges.llm.pricing import Prices, ProcessBudget, estimate_cost
from judges.llm.provider_adapter import Access
from judges.llm.remote import RemoteLLM
from judges.llm.request_formats import LADDER
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import BinaryEvalResult
from judges.verifier import ClaimQuestion, Verifier
from rubrics.verdict import Claim, Outcome, Reason, Verdict
from tests.fakes.clock import FakeClock
from tests.fakes.llm import patient_circuits  # noqa: F401 - fixture
from tests.standin import faults
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

LOOKS_LIKE_IGNORED_FORMAT = frozenset(
    {"cut_json", "empty", "list_not_object", "malformed", "not_a_number", "off_schema", "two_objects", "wrong_types"}
)
"""Faults that look as if the server ignored the requested format."""
BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
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
    """Return a factory for clients whose retries do not wait. The clients are closed after the test."""
    made: list[RemoteLLM] = []

    def make(
        *,
        clock: FakeClock | None = None,
        base_url: str | None = None,
        key: str = "sk-test",
        connect_timeout_s: float = 10.0,
        **policy: float,
    ) -> RemoteLLM:
        clock = clock or FakeClock()
        slots = asyncio.Semaphore(30)
        access = Access(
            openai_api_key=key,
            openai_base_url=base_url or server.base_url,
            connect_timeout_s=connect_timeout_s,
        )
        backend = open_openai(access)
        retrier = Retrier(
            RetryPolicy(**policy),  # type: ignore[arg-type]
            slots,
            clock=time.monotonic if policy else clock,
            sleep=clock.sleep,
            jitter=lambda seconds: seconds,
        )
        made.append(RemoteLLM(backend, retrier))
        return made[-1]

    yield make
    for client in made:
        await client.aclose()


Connect = Callable[..., RemoteLLM]


async def verdict_by(client: RemoteLLM) -> Verdict:
    verifier = Verifier(client, "gpt-6-luna", block_builder=BLOCK_BUILDER, pages=PagePreparer(BLOCK_BUILDER))
    return await verifier.settle(ClaimQuestion(claim=Claim(text="So it is."), task="t", answer="a"))


@pytest.mark.parametrize("name", sorted(faults.UNUSABLE))
async def test_repeated_unusable_replies_leave_claim_unjudged(server: StandInLLM, connect: Connect, name: str):
    server.always = faults.UNUSABLE[name]
    verdict = await verdict_by(connect())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_JUDGED, Reason.LLM_OUTPUT_UNUSABLE)
    # The first vote with an unknown server tries every request format, the second one does not.
    calls = 2 + 5 if name in LOOKS_LIKE_IGNORED_FORMAT else 2 * 2
    assert len(server.calls) == verdict.usage.calls == calls


@pytest.mark.parametrize(
    ("fault", "is_charged"),
    [(faults.RESET, True), (faults.RESET_MID_BODY, True), (faults.NOT_HTTP, False), (Fault(status=503), False)],
    ids=["cut", "mid", "not_http", "503"],
)
async def test_request_whose_reply_is_lost_is_charged_with_the_estimate(
    server: StandInLLM, connect: Connect, fault: Fault, is_charged: bool
):
    server.faults.append(fault)
    budget = ProcessBudget(None, 1_000_000)
    estimate = estimate_cost(REQUEST.model, REQUEST.messages, Prices()).tokens
    reply = await connect().complete(replace(REQUEST, budget=budget))
    paid = reply.usage.input_tokens + reply.usage.output_tokens
    assert budget.used_tokens == paid + (estimate if is_charged else 0)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_request_that_was_not_sent_is_not_charged(connect: Connect, scheme: str):
    budget = ProcessBudget(None, 1_000_000)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # A closed port refuses the connection. An open one never answers the TLS handshake.
        port = 9 if scheme == "http" else silent.getsockname()[1]
        with pytest.raises(LLMUnavailable) as caught:
            await connect(base_url=f"{scheme}://127.0.0.1:{port}/v1", connect_timeout_s=0.1).complete(
                replace(REQUEST, budget=budget)
            )
    assert isinstance(caught.value, LLMTimeout) is (scheme == "https")
    assert budget.used_tokens == 0


@pytest.mark.parametrize(
    "fault",
    [faults.WRONG_KEY, faults.NO_ACCESS, faults.UNKNOWN_MODEL, faults.BAD_REQUEST],
    ids=["401", "403", "404", "400"],
)
@pytest.mark.usefixtures("patient_circuits")
async def test_permanent_rejection_costs_one_request_for_all_claims(server: StandInLLM, connect: Connect, fault: Fault):
    server.always = fault
    clock = FakeClock()
    client = connect(clock=clock)
    verdicts = await asyncio.gather(*(verdict_by(client) for _ in range(20)))
    # A 400 without details may concern the format: one request is tried in every format, as a single message, and
    # without reasoning effort.
    assert len(server.calls) <= (len(LADDER) + 2 if fault is faults.BAD_REQUEST else 1)
    assert {verdict.reason for verdict in verdicts} == {Reason.LLM_REJECTED}
    assert clock.sleeps == []
    with pytest.raises(LLMCircuitOpen):
        await client.complete(REQUEST)


async def test_key_in_server_message_is_redacted(server: StandInLLM, connect: Connect):
    server.always = Fault(status=401, message="no such key: sk-test")
    with pytest.raises(LLMRejected) as caught:
        await connect().complete(REQUEST)
    assert "sk-test" not in str(caught.value)
    assert "no such key" in str(caught.value)
