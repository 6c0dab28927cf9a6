"""Model client for task scripts."""

from __future__ import annotations

from typing import Any, Final

from judges.llm.retry import retry_window
from mind2web2.llm_client.azure_openai_client import AsyncAzureOpenAIClient, AzureOpenAIClient
from mind2web2.llm_client.bedrock_anthropic_client import AsyncBedrockAnthropicClient, BedrockAnthropicClient
from mind2web2.llm_client.judge import JudgeConfig, JudgeUsage
from mind2web2.llm_client.openai_client import AsyncOpenAIClient, OpenAIClient
from mind2web2.llm_client.provider_client import AsyncProviderClient, ClientOptions, ProviderClient, Response

__all__ = ["LLMClient"]

_CLIENTS: Final[dict[str, tuple[type[ProviderClient], type[AsyncProviderClient]]]] = {
    "openai": (OpenAIClient, AsyncOpenAIClient),
    "azure_openai": (AzureOpenAIClient, AsyncAzureOpenAIClient),
    "bedrock_anthropic": (BedrockAnthropicClient, AsyncBedrockAnthropicClient),
}
_NO_EFFORT: Final = "bedrock_anthropic"


class LLMClient:
    """Client of a provider, chosen by name.

    ``client`` is the provider-specific client, ``judge`` the judge that replaces model and parameters of every request,
    and ``usage`` the record of all requests.
    """

    client: Any

    def __init__(
        self,
        provider: str = "openai",
        is_async: bool = False,
        *,
        judge: JudgeConfig | None = None,
        base_url: str | None = None,
        retry_seconds: float = 900.0,
        retry_initial_delay: float = 1.0,
        timeout: float = 600.0,
    ) -> None:
        """Create a client with keys from the environment.

        Args:
            judge: Replaces model, reasoning effort and temperature of every request. None: requests are sent as given.
            base_url: Address of the server; None for the one in the environment, else the provider's own.
            retry_seconds: Time from the first attempt of a request after which it is not retried.
            retry_initial_delay: Delay before the first retry, in seconds.
            timeout: Time limit of one attempt, in seconds.

        Raises:
            ValueError: unknown provider, or one that does not support the judge's reasoning effort.
            judges.errors.ModelNotConfigured: a key is missing; the message names it.
        """
        if provider not in _CLIENTS:
            raise ValueError(f"Unknown provider {provider!r}: use one of {', '.join(_CLIENTS)}.")
        if provider == _NO_EFFORT and judge is not None and judge.reasoning_effort is not None:
            raise ValueError(f"{provider} supports no reasoning effort: use a JudgeConfig without reasoning_effort.")
        self.provider = provider
        self.is_async = is_async
        self.judge = judge
        self.usage = JudgeUsage()
        policy = retry_window(seconds=retry_seconds, initial_delay_s=retry_initial_delay, attempt_s=timeout)
        options = ClientOptions(judge=judge, base_url=base_url, policy=policy)
        self.client = _CLIENTS[provider][is_async](options, self.usage)

    def response(self, **kwargs: Any) -> Response:
        """Send a request and block until the reply arrives.

        Raises:
            ValueError: this client is asynchronous.
            JudgeError: there is no usable reply.
        """
        if self.is_async:
            raise ValueError("this client is asynchronous: use `await client.async_response(...)`")
        return self.client.response(**kwargs)

    async def async_response(self, **kwargs: Any) -> Response:
        """Send a request and await the reply.

        Raises:
            ValueError: this client is not asynchronous.
            JudgeError: there is no usable reply.
        """
        if not self.is_async:
            raise ValueError("this client is not asynchronous: use `client.response(...)`")
        return await self.client.response(**kwargs)
