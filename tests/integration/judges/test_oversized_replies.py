"""Replies of model servers that are larger than the limit: read no further, and never a verdict."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from judges.errors import LLMOutputUnusable, LLMRejected, LLMUnavailable
from judges.llm.client import LLMRequest
from judges.llm.provider_adapter import Access, ProviderAdapter
from judges.llm.providers import REMOTE_PROVIDERS
from judges.llm.remote import RemoteLLM
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.rendering import BinaryEvalResult
from tests.fakes.clock import FakeClock
from tests.standin.flood import Flood, bodies, bounded_memory

PROVIDERS = ("openai", "azure", "bedrock")
REQUEST = LLMRequest(
    model="claude",
    messages=({"role": "user", "content": "So it is."},),
    schema=BinaryEvalResult,
    purpose="verify",
)

Adapter = Callable[[str, str], ProviderAdapter]


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Adapter:
    def make(provider: str, origin: str) -> ProviderAdapter:
        monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", origin)
        return REMOTE_PROVIDERS[provider].open(
            Access(
                openai_base_url=f"{origin}/v1",
                azure_endpoint=origin,
                azure_api_key="az-key",
                aws_access_key="a",
                aws_secret_key="s",
            )
        )

    return make


@asynccontextmanager
async def remote(backend: ProviderAdapter) -> AsyncIterator[RemoteLLM]:
    clock, slots = FakeClock(), asyncio.Semaphore(1)
    client = RemoteLLM(backend, Retrier(RetryPolicy(), slots, clock=clock, sleep=clock.sleep))
    try:
        yield client
    finally:
        await client.aclose()


@pytest.mark.parametrize(("provider", "body"), [(each, "no length") for each in PROVIDERS] + [("openai", "gzip")])
async def test_oversized_reply_is_unusable_and_not_read_to_its_end(provider: str, body: str, adapter: Adapter):
    async with bodies()[body] as server, remote(adapter(provider, server.origin)) as client:
        with bounded_memory(), pytest.raises(LLMOutputUnusable, match="more than 4194304 bytes"):
            await client.complete(REQUEST)
        assert len(server.sent) == 2  # the request and its repair
        server.assert_not_read()


@pytest.mark.parametrize(("status", "error"), [(401, LLMRejected), (503, LLMUnavailable)])
async def test_status_of_an_oversized_error_decides(status: int, error: type[Exception], adapter: Adapter):
    server = Flood(status=status, start=b'{"error": {"message": "')
    async with server, remote(adapter("openai", server.origin)) as client:
        with bounded_memory(), pytest.raises(error):
            await client.complete(REQUEST)
        server.assert_not_read()
