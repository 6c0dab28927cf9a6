"""Azure OpenAI clients under the public names."""

from __future__ import annotations

from mind2web2.llm_client.provider_client import AsyncProviderClient, ProviderClient

__all__ = ["AsyncAzureOpenAIClient", "AzureOpenAIClient"]


class AzureOpenAIClient(ProviderClient):
    """Blocking client. Reads AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT_URL and AZURE_OPENAI_API_VERSION."""

    provider = "azure"


class AsyncAzureOpenAIClient(AsyncProviderClient):
    """Asynchronous client. Reads AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT_URL and AZURE_OPENAI_API_VERSION."""

    provider = "azure"
