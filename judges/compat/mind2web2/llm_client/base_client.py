"""The client that judge scripts are handed and annotate with."""

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
    """One provider's client by the provider's name; ``client`` is that provider's own."""

    client: Any

    def __init__(self, provider: str, is_async: bool = False) -> None:
        """Keys come from the environment.

        Raises:
            ValueError: no such provider.
            judges.errors.ModelNotConfigured: a key is missing; the message names it.
        """
        if provider not in _CLIENTS:
            raise ValueError(f"no provider {provider!r}; there are {', '.join(_CLIENTS)}")
        self.provider = provider
        self.is_async = is_async
        self.client = _CLIENTS[provider][is_async]()

    def response(self, **kwargs: Any) -> Response:
        """Ask and block until the reply is there.

        Raises:
            ValueError: this client is asynchronous.
            judges.errors.LLMError: there was no usable reply.
        """
        if self.is_async:
            raise ValueError("this client is asynchronous: await async_response")
        return self.client.response(**kwargs)

    async def async_response(self, **kwargs: Any) -> Response:
        """Ask, and await the reply.

        Raises:
            ValueError: this client is not asynchronous.
            judges.errors.LLMError: there was no usable reply.
        """
        if not self.is_async:
            raise ValueError("this client is not asynchronous: call response")
        return await self.client.response(**kwargs)
