"""AWS Bedrock clients for Claude under the public names."""

from __future__ import annotations

from mind2web2.llm_client.provider_client import AsyncProviderClient, ProviderClient

__all__ = ["AsyncBedrockAnthropicClient", "BedrockAnthropicClient"]


class BedrockAnthropicClient(ProviderClient):
    """Blocking client. Reads AWS_ACCESS_KEY, AWS_SECRET_KEY and AWS_REGION."""

    provider = "bedrock"


class AsyncBedrockAnthropicClient(AsyncProviderClient):
    """Asynchronous client. Reads AWS_ACCESS_KEY, AWS_SECRET_KEY and AWS_REGION."""

    provider = "bedrock"
