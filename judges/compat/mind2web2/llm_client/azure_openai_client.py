"""Azure OpenAI under the public names."""

from __future__ import annotations

from mind2web2.llm_client.provider_client import AsyncProviderClient, ProviderClient

__all__ = ["AsyncAzureOpenAIClient", "AzureOpenAIClient"]


class AzureOpenAIClient(ProviderClient):
    """Blocks. AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT_URL and AZURE_OPENAI_API_VERSION."""

    provider = "azure"


class AsyncAzureOpenAIClient(AsyncProviderClient):
    """Is awaited. AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT_URL and AZURE_OPENAI_API_VERSION."""

    provider = "azure"
