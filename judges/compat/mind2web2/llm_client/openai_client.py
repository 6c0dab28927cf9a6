"""OpenAI, and every server that speaks its API, under the public names."""

from __future__ import annotations

from mind2web2.llm_client.provider_client import AsyncProviderClient, ProviderClient

__all__ = ["AsyncOpenAIClient", "OpenAIClient"]


class OpenAIClient(ProviderClient):
    """Blocks. Key in OPENAI_API_KEY."""

    provider = "openai"


class AsyncOpenAIClient(AsyncProviderClient):
    """Is awaited. Key in OPENAI_API_KEY."""

    provider = "openai"
