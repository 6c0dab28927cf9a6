"""Model clients under the public toolkit's names."""

from __future__ import annotations

from mind2web2.llm_client.api_cost import calculate_api_cost
from mind2web2.llm_client.azure_openai_client import AsyncAzureOpenAIClient, AzureOpenAIClient
from mind2web2.llm_client.base_client import LLMClient
from mind2web2.llm_client.bedrock_anthropic_client import AsyncBedrockAnthropicClient, BedrockAnthropicClient
from mind2web2.llm_client.judge import (
    DEFAULT_JUDGE_MODEL,
    DEFAULT_JUDGE_REASONING_EFFORT,
    ContextLengthError,
    HarnessError,
    JudgeConfig,
    JudgeContentError,
    JudgeError,
    JudgeUsage,
)
from mind2web2.llm_client.openai_client import AsyncOpenAIClient, OpenAIClient

__all__ = [
    "DEFAULT_JUDGE_MODEL",
    "DEFAULT_JUDGE_REASONING_EFFORT",
    "AsyncAzureOpenAIClient",
    "AsyncBedrockAnthropicClient",
    "AsyncOpenAIClient",
    "AzureOpenAIClient",
    "BedrockAnthropicClient",
    "ContextLengthError",
    "HarnessError",
    "JudgeConfig",
    "JudgeContentError",
    "JudgeError",
    "JudgeUsage",
    "LLMClient",
    "OpenAIClient",
    "calculate_api_cost",
]
