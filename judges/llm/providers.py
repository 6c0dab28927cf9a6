"""From ``provider/model`` to a client. The one place that knows every provider; reads no environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from judges.errors import ModelNotConfigured
from judges.llm.bedrock import open_bedrock
from judges.llm.budget import Purse
from judges.llm.cached import CachedLLM
from judges.llm.circuit import Circuit
from judges.llm.client import LLMClient
from judges.llm.lexical import LexicalClient
from judges.llm.openai import AZURE_API_VERSION, open_azure, open_openai
from judges.llm.remote import RemoteLLM
from judges.llm.response_cache import Replies
from judges.llm.retry import RetryPolicy
from judges.llm.wire import Backend

DEFAULT_PROVIDER: Final = "openai"
LEXICAL: Final = "lexical"
PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "openai": "openai",
        "azure": "azure",
        "azure_openai": "azure",
        "bedrock": "bedrock",
        "bedrock_anthropic": "bedrock",
        LEXICAL: LEXICAL,
    }
)
"""Every name a provider goes by, and ours for it."""

_NAME = re.compile(r"(?P<provider>\w+)[/:](?P<model>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The keys and addresses of the providers, as the settings have them; what is None is not configured."""

    openai_api_key: str | None = None
    openai_base_url: str | None = None
    azure_api_key: str | None = None
    azure_endpoint: str | None = None
    azure_api_version: str = AZURE_API_VERSION
    aws_access_key: str | None = None
    aws_secret_key: str | None = None
    aws_session_token: str | None = None
    aws_region: str = "us-east-1"


@dataclass(frozen=True, slots=True)
class ModelName:
    """A provider, by our name for it, and the bare name of one of its models."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


def parse_model(name: str) -> ModelName:
    """Read ``provider/model`` or ``provider:model``; a name without a provider is OpenAI's.

    >>> [str(parse_model(name)) for name in ("azure:my-gpt", "o4-mini", "openai/meta/llama", "lexical")]
    ['azure/my-gpt', 'openai/o4-mini', 'openai/meta/llama', 'lexical/lexical']

    Raises:
        ModelNotConfigured: no such provider, or no model name.
    """
    trimmed = name.strip()
    if trimmed == LEXICAL:
        return ModelName(LEXICAL, LEXICAL)
    found = _NAME.fullmatch(trimmed)
    if found is None:
        if re.fullmatch(r"[\w.-]+", trimmed) and trimmed not in PROVIDERS:
            return ModelName(DEFAULT_PROVIDER, trimmed)
        raise ModelNotConfigured(f"model {name!r}: write it as provider/model, for example openai/o4-mini")
    provider = PROVIDERS.get(found["provider"])
    if provider is None:
        known = ", ".join(sorted(set(PROVIDERS.values())))
        raise ModelNotConfigured(f"model {name!r}: no provider {found['provider']!r}; there are {known}")
    return ModelName(provider, found["model"])


def make_client(
    model: str,
    *,
    semaphore: AbstractAsyncContextManager[Any],
    api_key: str | None = None,
    base_url: str | None = None,
    access: Access | None = None,
    store: Replies | None = None,
    policy: RetryPolicy | None = None,
    circuit: Circuit | None = None,
    budget: Purse | None = None,
) -> tuple[LLMClient, str]:
    """A client for ``model`` and the model's bare name.

    ``api_key`` and ``base_url`` are those of the model's own provider and go before what ``access`` says.
    Clients of one key should share a ``circuit``, and those of one purse a ``budget``. ``store=None`` keeps no replies.

    Raises:
        ModelNotConfigured: the name or a key cannot lead to a client; the message names the setting.
    """
    name = parse_model(model)
    if name.provider == LEXICAL:
        return LexicalClient(), name.model
    backend = _backend(name, access or Access(), api_key=api_key, base_url=base_url)
    remote = RemoteLLM(backend, semaphore=semaphore, policy=policy, circuit=circuit, budget=budget)
    return CachedLLM(remote, store), name.model


def _backend(name: ModelName, access: Access, *, api_key: str | None, base_url: str | None) -> Backend:
    if name.provider == "azure":
        key, endpoint = api_key or access.azure_api_key, base_url or access.azure_endpoint
        if not key or not endpoint:
            raise ModelNotConfigured(f"{name} needs AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT_URL")
        return open_azure(api_key=key, base_url=endpoint, api_version=access.azure_api_version)
    if name.provider == "bedrock":
        if not access.aws_access_key or not access.aws_secret_key:
            raise ModelNotConfigured(f"{name} needs AWS_ACCESS_KEY and AWS_SECRET_KEY")
        return open_bedrock(
            access_key=access.aws_access_key,
            secret_key=access.aws_secret_key,
            session_token=access.aws_session_token,
            region=access.aws_region,
        )
    key, endpoint = api_key or access.openai_api_key, base_url or access.openai_base_url
    if not key and not endpoint:
        # A server of one's own may ask for no key; OpenAI's always does.
        raise ModelNotConfigured(f"{name} needs OPENAI_API_KEY (or OPENAI_BASE_URL for a server that asks for no key)")
    return open_openai(api_key=key, base_url=endpoint)
