"""Clients for OpenAI and compatible servers under the public names."""

from __future__ import annotations

from mind2web2.llm_client.provider_client import AsyncProviderClient, ProviderClient

__all__ = ["AsyncOpenAIClient", "OpenAIClient"]


class OpenAIClient(ProviderClient):
    """Blocking client. Reads OPENAI_API_KEY."""

    provider = "openai"


class AsyncOpenAIClient(AsyncProviderClient):
    """Asynchronous client. Reads OPENAI_API_KEY."""

    provider = "openai"
