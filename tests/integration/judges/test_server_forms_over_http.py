"""Rejections by model servers and their interpretation, over a real socket: images, keys, length limits, truncated
replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from judges.errors import LLMCircuitOpen, LLMRejected, RejectionScope
from judges.llm.client import LLMRequest
from judges.llm.encoding import DataURI, image_part
from judges.llm.learned_formats import MAX_AGE_S, FormatFile, Images
from judges.llm.openai import open_openai
from judges.llm.provider_adapter import Access
from judges.llm.remote import RemoteLLM
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import BinaryEvalResult
from judges.verifier import ClaimQuestion, Verifier
from rubrics.verdict import Claim, Outcome
from tests.fakes.clock import FakeClock
from tests.fakes.pages import long_text, page
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
MODEL = "llama-9"
PLAIN = LLMRequest(
    model=MODEL,
    messages=({"role": "user", "content": "So it is."},),
    schema=BinaryEvalResult,
    purpose="verify",
)
SHOWN = LLMRequest(
    model=MODEL,
    messages=(
        {"role": "user", "content": [image_part(DataURI.of_jpeg(b"j" * 3000)), {"type": "text", "text": "So it is."}]},
    ),
    schema=BinaryEvalResult,
    purpose="verify",
)
Connect = Callable[..., RemoteLLM]


@pytest.fixture
async def server() -> AsyncIterator[StandInLLM]:
    async with StandInLLM() as running:
        yield running


@pytest.fixture
async def connect(server: StandInLLM) -> AsyncIterator[Connect]:
    made: list[RemoteLLM] = []

    def make(*, images: Images = Images.AUTO, format_file: FormatFile | None = None) -> RemoteLLM:
        clock, slots = FakeClock(), asyncio.Semaphore(30)
        backend = open_openai(
            Access(openai_api_key="sk-test", openai_base_url=server.base_url, images=images, format_file=format_file)
        )
        retrier = Retrier(RetryPolicy(), slots, clock=clock, sleep=clock.sleep, jitter=lambda seconds: seconds)
        made.append(RemoteLLM(backend, retrier))
        return made[-1]

    yield make
    for client in made:
        await client.aclose()


@pytest.mark.parametrize(("images", "shown"), [(Images.AUTO, [True, False, False]), (Images.OFF, [False, False])])
async def test_text_only_model_judges_on_text(server: StandInLLM, connect: Connect, images: Images, shown: list[bool]):
    server.fault_for = lambda call: Fault(status=400, message="not a multimodal model") if call.images else None
    client = connect(images=images)
    assert [(await client.complete(SHOWN)).text_only for _ in range(2)] == [True, True]
    assert [bool(call.images) for call in server.calls] == shown


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "At most 0 image(s) may be provided in one prompt."),
        (400, "Model does not support images. Please use a model that does."),
        (422, "messages.1.content: Input should be a valid string"),
        (404, "No endpoints found that support image input"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
    ],
)
async def test_message_indicates_text_only_model(server: StandInLLM, connect: Connect, status: int, words: str):
    server.fault_for = lambda call: Fault(status=status, message=words) if call.images else None
    assert (await connect().complete(SHOWN)).text_only
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Authentication Error, Invalid proxy server token passed"),
        (400, "API key not valid. Please pass a valid API key."),
        (500, "Missing bearer token: not authenticated"),
    ],
)
async def test_message_indicates_invalid_key_and_opens_circuit(
    server: StandInLLM, connect: Connect, status: int, words: str
):
    server.always = Fault(status=status, message=words)
    client = connect()
    with pytest.raises(LLMRejected) as caught:
        await client.complete(PLAIN)
    assert caught.value.scope is RejectionScope.ENDPOINT
    with pytest.raises(LLMCircuitOpen):
        await client.complete(PLAIN)
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "litellm.ContextWindowExceededError: prompt is too long: 9000 tokens > 8000 maximum"),
        (400, "This model's maximum context length is 8000 tokens. However, your request has 9000 input tokens."),
        (422, "`inputs` must have less than 8000 tokens. Given: 9000"),
        (413, "Request Entity Too Large"),
    ],
)
async def test_message_indicates_too_long_page(server: StandInLLM, connect: Connect, status: int, words: str):
    server.fault_for = lambda call: Fault(status=status, message=words) if len(call.page) > 14_000 else None
    verifier = Verifier(connect(), MODEL, block_builder=BLOCK_BUILDER, pages=PagePreparer(BLOCK_BUILDER))
    shown = page(text=long_text(15_000))
    verdict = await verifier.settle(
        ClaimQuestion(claim=Claim(text="So it is."), task="t", answer="a", evidence=shown, trials=1)
    )
    assert (verdict.outcome, len(server.calls)) == (Outcome.PASSED, 2)


async def test_request_format_is_cached_until_max_age(server: StandInLLM, connect: Connect, tmp_path: Path):
    server.fault_for = lambda call: Fault(status=400, message="json_schema unsupported") if call.schema else None
    path = tmp_path / "dialects.json"
    found: list[int] = []
    for now in (0.0, MAX_AGE_S - 1, MAX_AGE_S + 1):
        before = len(server.calls)
        await connect(format_file=FormatFile(path, clock=lambda now=now: now)).complete(PLAIN)  # type: ignore[misc]
        found.append(len(server.calls) - before)
    assert found == [2, 1, 2]
