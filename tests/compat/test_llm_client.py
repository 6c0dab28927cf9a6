"""Model clients that scripts receive or create, against a stand-in model server over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel

from judges.errors import ModelNotConfigured
from mind2web2 import (
    AsyncAzureOpenAIClient,
    AsyncOpenAIClient,
    AzureOpenAIClient,
    JudgeConfig,
    LLMClient,
    OpenAIClient,
    calculate_api_cost,
)
from tests.standin.call import Call
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM
from tests.standin.rules import keyword_rule

KEYS = [
    "OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT_URL",
    "AZURE_OPENAI_API_VERSION", "AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_REGION",
]  # fmt: skip


class City(BaseModel):
    name: str
    year: int | None = None


ASK: dict[str, Any] = {"model": "o4-mini", "messages": [{"role": "user", "content": "Which city?"}]}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandInLLM]:
    extractions = {"City": {"name": "Paris", "year": 1889}}
    async with StandInLLM(extractions=extractions, rule=keyword_rule({"wrong": False})) as standin:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
        monkeypatch.setenv("OPENAI_BASE_URL", standin.base_url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-of-a-test")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT_URL", standin.base_url)
        yield standin


@pytest.mark.parametrize("provider", ["openai", "azure_openai", "bedrock_anthropic"])
@pytest.mark.parametrize("is_async", [False, True])
def test_missing_key_raises_when_the_client_is_created(provider: str, is_async: bool):
    with pytest.raises(ModelNotConfigured, match="KEY"):
        LLMClient(provider, is_async=is_async)


@pytest.mark.parametrize("provider", ["azure", ""])
def test_unknown_provider_raises_value_error(provider: str):
    with pytest.raises(ValueError, match="openai, azure_openai, bedrock_anthropic"):
        LLMClient(provider)


async def test_client_attribute_is_the_client_of_the_provider(server: StandInLLM):
    assert isinstance(LLMClient("openai").client, OpenAIClient)
    assert isinstance(LLMClient("openai", is_async=True).client, AsyncOpenAIClient)
    assert isinstance(LLMClient("azure_openai").client, AzureOpenAIClient)
    assert isinstance(LLMClient("azure_openai", is_async=True).client, AsyncAzureOpenAIClient)


async def test_reply_is_an_instance_of_the_requested_class(server: StandInLLM):
    client = LLMClient("openai", is_async=True)
    assert await client.async_response(**ASK, response_format=City) == City(name="Paris", year=1889)
    assert server.calls[0].model == "o4-mini"
    assert server.calls[0].messages == ASK["messages"]


async def test_reply_without_a_class_is_text(server: StandInLLM):
    reply = await AsyncOpenAIClient().response(**ASK)
    assert isinstance(reply, str)
    assert reply


async def test_sync_call_on_async_client_and_vice_versa_raise_value_error(server: StandInLLM):
    with pytest.raises(ValueError, match="asynchronous"):
        LLMClient("openai", is_async=True).response(**ASK)
    with pytest.raises(ValueError, match="not asynchronous"):
        await LLMClient("openai").async_response(**ASK)


@pytest.mark.parametrize("is_async", [True, False])
async def test_judge_and_server_of_an_azure_client(server: StandInLLM, is_async: bool):
    client = LLMClient("azure_openai", is_async, judge=JudgeConfig("gpt-6-luna"), base_url=server.base_url)
    asked: dict[str, Any] = {**ASK, "temperature": 0.0, "response_format": City, "count_token": True}
    said = await (client.async_response(**asked) if is_async else asyncio.to_thread(client.response, **asked))
    assert said[0] == City(name="Paris", year=1889)
    assert server.calls[0].params == {"reasoning_effort": "max"}
    assert "/deployments/gpt-6-luna/" in server.calls[0].path


def test_bedrock_refuses_a_reasoning_effort():
    with pytest.raises(ValueError, match="reasoning effort"):
        LLMClient("bedrock_anthropic", judge=JudgeConfig("anthropic.claude-4", reasoning_effort="high"))


@pytest.mark.parametrize("fault", [Fault(delay_s=60), Fault(status=503)], ids=["waits", "retries"])
async def test_cancellation_ends_a_request_and_its_retries(server: StandInLLM, fault: Fault):
    arrived = asyncio.Event()

    def fault_for(call: Call) -> Fault | None:
        arrived.set()
        return fault if len(server.calls) == 1 else None

    server.fault_for = fault_for
    client = LLMClient(is_async=True, retry_initial_delay=60)
    asked = asyncio.create_task(client.async_response(**ASK))
    await arrived.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert len(server.calls) == 1
    assert await client.async_response(**ASK)


def test_prices_per_million_tokens():
    assert calculate_api_cost(1_000_000, 1_000_000, "o4-mini") == pytest.approx(5.5)
    with pytest.raises(ValueError, match="my-model"):
        calculate_api_cost(1, 1, "my-model")
