"""All dialects of OpenAI-compatible servers, over a real socket and through the whole client. Each test judges a true
and a false claim, extracts values, and counts the requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
from pydantic import BaseModel

from judges.extractor import ExtractionQuestion, Extractor
from judges.llm.cached import CachedLLM
from judges.llm.client import LLMClient
from judges.llm.learned_formats import LearnedFormats
from judges.llm.openai import OpenAIAdapter
from judges.llm.provider_adapter import Access
from judges.llm.providers import make_client
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.verifier import ClaimQuestion, Verifier
from rubrics.verdict import Claim, Outcome
from tests.fakes.pages import jpeg, page
from tests.standin.dialects import DIALECTS
from tests.standin.llm import StandInLLM
from tests.standin.rules import keyword_rule

BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
MODEL = "llama-9"
"""Model of a family that receives a temperature."""
MAX_FIRST = 6
"""Maximum requests for the first claim, including the two that every claim needs."""
FEWER_FIRST = {"string-content": 4}
TEXT_ONLY = {
    "deepseek", "deepseek-reasoner", "hf-router", "llama.cpp", "lm-studio", "nginx-413", "ollama", "openrouter",
    "string-content", "vllm-no-images", "vllm-text-only",
}  # fmt: skip
"""Dialects that accept no images. All other servers must receive them in the end."""
SHOWN = page(text="The lamp shop is open on Mondays and closed on Sundays. " * 8, screenshots=(jpeg(),))


class Shop(BaseModel):
    name: str = ""
    days: list[str] = []


@pytest.fixture
async def server() -> AsyncIterator[StandInLLM]:
    shop = {"name": "The lamp shop", "days": ["Monday"]}
    async with StandInLLM(rule=keyword_rule({"sundays only": False}), extractions={"Shop": shop}) as running:
        yield running


def client_of(server: StandInLLM) -> LLMClient:
    access = Access(openai_api_key="sk-test", openai_base_url=server.base_url)
    policy = RetryPolicy(first_wait_s=0.01)
    client, _ = make_client(f"openai/{MODEL}", Retrier(policy, asyncio.Semaphore(30)), access=access)
    return client


@pytest.mark.parametrize("name", sorted(DIALECTS))
async def test_dialect_yields_correct_verdicts_and_is_detected_once(server: StandInLLM, name: str):
    server.dialect = DIALECTS[name]
    client = client_of(server)
    pages = PagePreparer(BLOCK_BUILDER)
    verifier = Verifier(client, MODEL, block_builder=BLOCK_BUILDER, pages=pages)
    extractor = Extractor(client, MODEL, block_builder=BLOCK_BUILDER, pages=pages)
    counts: list[int] = []

    async def judge(text: str, trials: int = 1) -> Outcome:
        before = len(server.calls)
        verdict = await verifier.settle(
            ClaimQuestion(claim=Claim(text=text), task="t", answer="a", evidence=SHOWN, trials=trials)
        )
        counts.append(len(server.calls) - before)
        return verdict.outcome

    async def extract() -> Shop:
        before = len(server.calls)
        shop = (
            await extractor.extract(
                Shop, ExtractionQuestion(prompt="Which shop?", task="t", answer="The lamp shop, Monday")
            )
        ).value
        counts.append(len(server.calls) - before)
        return shop

    try:
        outcomes = [await judge("The shop is open.", trials=3), await judge("It is open on Sundays only.")]
        shops = [await extract(), await extract()]
        outcomes.append(await judge("The shop is open on Mondays."))
    finally:
        await client.aclose()
    if os.environ.get("ASSAY_DIALECT_TABLE"):
        print(f"| {name} | {server.dialect.about} | {outcomes} | {counts} |")
    assert outcomes == [Outcome.PASSED, Outcome.FAILED, Outcome.PASSED]
    assert shops == [Shop(name="The lamp shop", days=["Monday"])] * 2
    assert counts[0] <= FEWER_FIRST.get(name, MAX_FIRST)
    assert bool(server.calls[-1].images) is (name not in TEXT_ONLY)
    assert (counts[1], counts[3], counts[4]) == (1, 1, 1)


async def test_concurrent_first_claims_detect_the_format_once(server: StandInLLM):
    server.dialect = DIALECTS["gateway-prompt-only"]
    client = client_of(server)
    assert isinstance(client, CachedLLM)
    assert isinstance(client.remote.backend, OpenAIAdapter)
    # A busy machine may reject late.
    client.remote.backend.learned_formats = LearnedFormats(server.base_url, first_request_wait_s=20.0)
    verifier = Verifier(client, MODEL, block_builder=BLOCK_BUILDER, pages=PagePreparer(BLOCK_BUILDER))
    claims = [Claim(text=f"The shop has {number} lamps.") for number in range(30)]
    try:
        verdicts = await asyncio.gather(
            *(verifier.settle(ClaimQuestion(claim=claim, task="t", answer="a", trials=1)) for claim in claims)
        )
    finally:
        await client.aclose()
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}
    assert len(server.calls) <= 30 + MAX_FIRST
