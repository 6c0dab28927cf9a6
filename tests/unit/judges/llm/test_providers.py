from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from judges.errors import ModelNotConfigured
from judges.llm.cached import CachedLLM
from judges.llm.lexical import LexicalClient
from judges.llm.provider_adapter import Access
from judges.llm.providers import (
    PROVIDERS,
    REMOTE_PROVIDERS,
    ModelName,
    Provider,
    account_identity,
    make_client,
    parse_model,
)

KEYED = Access(
    openai_api_key="sk-1",
    azure_api_key="az-1",
    azure_endpoint="https://mine.example",
    aws_access_key="a",
    aws_secret_key="s",
)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("openai/o4-mini", ModelName("openai", "o4-mini")),
        ("openai:o4-mini", ModelName("openai", "o4-mini")),
        ("openai/meta-llama/Llama-3", ModelName("openai", "meta-llama/Llama-3")),
        ("azure_openai/dep", ModelName("azure", "dep")),
        ("bedrock/us.anthropic.claude-3-v1:0", ModelName("bedrock", "us.anthropic.claude-3-v1:0")),
        ("bedrock_anthropic:x", ModelName("bedrock", "x")),
        (" gpt-4.1 ", ModelName("openai", "gpt-4.1")),
        ("lexical", ModelName("lexical", "lexical")),
        ("lexical/lexical", ModelName("lexical", "lexical")),
    ],
)
def test_model_name_is_parsed_with_its_provider(written: str, name: ModelName):
    assert parse_model(written) == name


@pytest.mark.parametrize("written", ["", "openai", "openai/", "nobody/x", "a b", "meta-llama/Llama-3"])
def test_invalid_model_name_is_rejected(written: str):
    with pytest.raises(ModelNotConfigured, match="model"):
        parse_model(written)


@pytest.mark.parametrize(
    ("model", "setting"),
    [("openai/x", "OPENAI_API_KEY"), ("azure/x", "AZURE_OPENAI_API_KEY"), ("bedrock/x", "AWS_ACCESS_KEY")],
)
def test_error_for_a_missing_key_names_the_setting(model: str, setting: str):
    with pytest.raises(ModelNotConfigured, match=setting):
        make_client(model, semaphore=asyncio.Semaphore(1), access=Access())


@pytest.mark.parametrize("model", ["openai/o4-mini", "azure/o4-mini"])
async def test_client_is_returned_with_the_bare_model_name(model: str):
    client, bare = make_client(model, semaphore=asyncio.Semaphore(1), access=KEYED)
    assert isinstance(client, CachedLLM)
    assert bare == "o4-mini"
    await client.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai/o4-mini", "azure/o4-mini", "bedrock/o4-mini"])
async def test_only_the_retrier_limits_the_time_of_a_reply(model: str):
    """A reply may take an hour (``ASSAY_LLM_TIMEOUT_S``). A shorter limit of the SDK would send and pay it twice."""
    client, _ = make_client(model, semaphore=asyncio.Semaphore(1), access=KEYED)
    backend: Any = client.remote._backend  # type: ignore[attr-defined]
    assert backend._client.timeout.read is None
    await client.aclose()


async def test_custom_base_url_needs_no_key():
    client, _ = make_client(
        "openai/x", semaphore=asyncio.Semaphore(1), access=Access(openai_base_url="http://127.0.0.1:9/v1")
    )
    await client.aclose()


def test_lexical_model_needs_no_configuration():
    client, bare = make_client("lexical", semaphore=asyncio.Semaphore(1), access=Access())
    assert isinstance(client, LexicalClient)
    assert bare == "lexical"


@pytest.mark.parametrize("row", REMOTE_PROVIDERS.values(), ids=lambda row: row.name)
def test_account_identity_depends_on_every_account_setting(row: Provider):
    for name in row.account:
        values: list[dict[str, Any]] = [{name: "a"}, {name: "b"}]
        one, other = (account_identity(row.name, replace(Access(), **value)) for value in values)
        assert one != other
    assert row.account
    assert {field for group in row.required for field in group} <= set(row.account)


@pytest.mark.parametrize("row", REMOTE_PROVIDERS.values(), ids=lambda row: row.name)
def test_error_of_every_provider_names_the_required_settings(row: Provider):
    with pytest.raises(ModelNotConfigured) as caught:
        make_client(f"{row.name}/m", semaphore=asyncio.Semaphore(1), access=Access())
    assert row.needs in str(caught.value)
    assert all(PROVIDERS[alias] == row.name for alias in (row.name, *row.aliases))
