from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from judges.errors import ModelNotConfigured
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
from judges.llm.retry import Retrier, RetryPolicy


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("openai/o4-mini", ModelName("openai", "o4-mini")),
        ("openai:o4-mini", ModelName("openai", "o4-mini")),
        ("openai/meta-llama/Llama-3", ModelName("openai", "meta-llama/Llama-3")),
        ("azure_openai/dep", ModelName("azure", "dep")),
        ("lexical", ModelName("lexical", "lexical")),
    ],
)
def test_model_name_is_parsed_with_its_provider(written: str, name: ModelName):
    assert parse_model(written) == name


@pytest.mark.parametrize("written", ["openai", "nobody/x", "a b"])
def test_invalid_model_name_is_rejected(written: str):
    with pytest.raises(ModelNotConfigured, match="model"):
        parse_model(written)


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
        make_client(f"{row.name}/m", Retrier(RetryPolicy(), asyncio.Semaphore(1)), access=Access())
    assert row.needs in str(caught.value)
    assert all(PROVIDERS[alias] == row.name for alias in (row.name, *row.aliases))
