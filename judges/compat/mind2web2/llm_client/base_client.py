"""Model client for judge scripts."""

from __future__ import annotations

from typing import Any, Final

from mind2web2.llm_client.azure_openai_client import AsyncAzureOpenAIClient, AzureOpenAIClient
from mind2web2.llm_client.bedrock_anthropic_client import AsyncBedrockAnthropicClient, BedrockAnthropicClient
from mind2web2.llm_client.openai_client import AsyncOpenAIClient, OpenAIClient
from mind2web2.llm_client.provider_client import AsyncProviderClient, ProviderClient, Response

__all__ = ["LLMClient"]

_CLIENTS: Final[dict[str, tuple[type[ProviderClient], type[AsyncProviderClient]]]] = {
    "openai": (OpenAIClient, AsyncOpenAIClient),
    "azure_openai": (AzureOpenAIClient, AsyncAzureOpenAIClient),
    "bedrock_anthropic": (BedrockAnthropicClient, AsyncBedrockAnthropicClient),
}


class LLMClient:
    """Client of a provider, chosen by name. ``client`` is the provider-specific client."""

    client: Any

    def __init__(self, provider: str, is_async: bool = False) -> None:
        """Create a client with keys from the environment.

        Raises:
            ValueError: unknown provider.
            judges.errors.ModelNotConfigured: a key is missing; the message names it.
        """
        if provider not in _CLIENTS:
            raise ValueError(f"Unknown provider {provider!r}: use one of {', '.join(_CLIENTS)}.")
        self.provider = provider
        self.is_async = is_async
        self.client = _CLIENTS[provider][is_async]()

    def response(self, **kwargs: Any) -> Response:
        """Send a request and block until the reply arrives.

        Raises:
            ValueError: this client is asynchronous.
            judges.errors.LLMError: there was no usable reply.
        """
        if self.is_async:
            raise ValueError("this client is asynchronous: use `await client.async_response(...)`")
        return self.client.response(**kwargs)

    async def async_response(self, **kwargs: Any) -> Response:
        """Send a request and await the reply.

        Raises:
            ValueError: this client is not asynchronous.
            judges.errors.LLMError: there was no usable reply.
        """
        if not self.is_async:
            raise ValueError("this client is not asynchronous: use `client.response(...)`")
        return await self.client.response(**kwargs)
