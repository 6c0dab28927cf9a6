"""Table of model providers, and construction of the client for a ``provider/model`` name.

``probe`` finds the request format of a model server with two small requests.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

from PIL import Image
from pydantic import BaseModel

from judges.errors import LLMError, ModelNotConfigured
from judges.llm.cached import CachedLLM, ReplyCache
from judges.llm.circuit import CircuitBreaker
from judges.llm.client import LLMClient, LLMRequest
from judges.llm.encoding import DataURI, image_part
from judges.llm.lexical import LexicalClient
from judges.llm.models import DEFAULT_MODEL, ModelList
from judges.llm.pricing import Prices, RequestBudget
from judges.llm.provider_adapter import Access, ProviderAdapter
from judges.llm.remote import DirectLLM, RemoteLLM
from judges.llm.request_formats import to_json
from judges.llm.retry import Retrier, RetryPolicy
from judges.voting import check_members, members_in

DEFAULT_PROVIDER: Final = "openai"
LEXICAL: Final = "lexical"
_NAME = re.compile(r"(?P<provider>\w+)[/:](?P<model>.+)")


# Adapters are imported on first use: the SDK alone takes a fifth of the start-up time of a service.


def _open_openai(access: Access) -> ProviderAdapter:
    from judges.llm.openai import open_openai

    return open_openai(access)


def _open_azure(access: Access) -> ProviderAdapter:
    from judges.llm.openai import open_azure

    return open_azure(access)


def _open_bedrock(access: Access) -> ProviderAdapter:
    from judges.llm.bedrock import open_bedrock

    return open_bedrock(access)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One model provider.

    ``account`` names the fields of ``Access`` that identify an account. An HMAC of their values with the installation's
    secret is the fingerprint under which workers share the status of the account. ``required`` lists groups of fields;
    at least one field of each group must be set, and ``needs`` names them in the error message. ``address`` is the
    field that a caller of ``make_direct_client`` may override. ``vendor`` selects the rows of the price table whose
    shutdown dates apply to this provider.
    """

    name: str
    account: tuple[str, ...]
    required: tuple[tuple[str, ...], ...]
    needs: str
    open: Callable[[Access], ProviderAdapter]
    aliases: tuple[str, ...] = ()
    address: str | None = None
    vendor: str | None = None


REMOTE_PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType(
    {
        row.name: row
        for row in (
            Provider(
                name="openai",
                account=("openai_api_key", "openai_base_url"),
                # A self-hosted server may need no key; OpenAI's API always does.
                required=(("openai_api_key", "openai_base_url"),),
                needs="OPENAI_API_KEY (or OPENAI_BASE_URL for a server that asks for no key)",
                open=_open_openai,
                address="openai_base_url",
                vendor="openai",
            ),
            Provider(
                name="azure",
                aliases=("azure_openai",),
                account=("azure_api_key", "azure_endpoint"),
                required=(("azure_api_key",), ("azure_endpoint",)),
                needs="AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT_URL",
                open=_open_azure,
                address="azure_endpoint",
            ),
            Provider(
                name="bedrock",
                aliases=("bedrock_anthropic",),
                account=("aws_access_key", "aws_secret_key", "aws_region"),
                required=(("aws_access_key",), ("aws_secret_key",)),
                needs="AWS_ACCESS_KEY and AWS_SECRET_KEY",
                open=_open_bedrock,
            ),
        )
    }
)
"""Remote providers by name. To add a provider, add a row."""

PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {alias: row.name for row in REMOTE_PROVIDERS.values() for alias in (row.name, *row.aliases)} | {LEXICAL: LEXICAL}
)
"""Provider name by alias."""


def account_identity(provider: str, access: Access) -> tuple[str, ...]:
    """Return the values that identify an account at a provider. They contain secrets: do not log or display them.

    >>> account_identity("openai", Access(openai_api_key="a")) == account_identity("openai", Access(openai_api_key="b"))
    False
    """
    row = REMOTE_PROVIDERS.get(provider)
    return () if row is None else tuple(str(getattr(access, name)) for name in row.account)


@dataclass(frozen=True, slots=True)
class ModelName:
    """Name of a provider (not an alias), and of one of its models without the provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


def parse_model(name: str) -> ModelName:
    """Parse ``provider/model`` or ``provider:model``. Without a provider, the provider is ``openai``.

    >>> [str(parse_model(name)) for name in ("azure:my-gpt", "gpt-6-sol", "openai/meta/llama", "lexical")]
    ['azure/my-gpt', 'openai/gpt-6-sol', 'openai/meta/llama', 'lexical/lexical']

    Raises:
        ModelNotConfigured: the provider is unknown, or the model name is missing.
    """
    trimmed = name.strip()
    if "," in trimmed:
        raise ModelNotConfigured(f"invalid model {name!r}: name one model, a jury cannot be used here")
    if trimmed == LEXICAL:
        return ModelName(LEXICAL, LEXICAL)
    match = _NAME.fullmatch(trimmed)
    if match is None:
        if get_close_matches(trimmed.lower(), [LEXICAL], cutoff=0.8):
            raise ModelNotConfigured(f"invalid model {name!r}: did you mean {LEXICAL!r}?")
        if re.fullmatch(r"[\w.-]+", trimmed) and trimmed not in PROVIDERS:
            return ModelName(DEFAULT_PROVIDER, trimmed)
        raise ModelNotConfigured(f"invalid model {name!r}: use provider/model, for example openai/{DEFAULT_MODEL}")
    provider = PROVIDERS.get(match["provider"])
    if provider is None:
        known = ", ".join(sorted(set(PROVIDERS.values())))
        close = get_close_matches(match["provider"].lower(), list(PROVIDERS), n=1)
        meant = f"; did you mean '{close[0]}/{match['model']}'?" if close else f"; use one of {known}"
        raise ModelNotConfigured(f"invalid model {name!r}: unknown provider {match['provider']!r}{meant}")
    return ModelName(provider, match["model"])


@dataclass(frozen=True, slots=True)
class JudgeName:
    """Name of a judge: a model, or a jury of an odd number of models with different names.

    The first model of a jury gives the replies that are not verdicts, for example extractions.
    """

    members: tuple[ModelName, ...]

    def __str__(self) -> str:
        return ",".join(map(str, self.members))

    @property
    def model(self) -> str:
        """Name without providers, as in results."""
        return ",".join(member.model for member in self.members)

    @property
    def first(self) -> ModelName:
        return self.members[0]

    @property
    def providers(self) -> dict[str, str]:
        """Provider by model."""
        return {member.model: member.provider for member in self.members}

    @property
    def is_jury(self) -> bool:
        return len(self.members) > 1


def parse_judge(name: str) -> JudgeName:
    """Parse the name of a model, or ``a,b,c`` for a jury.

    >>> str(parse_judge("gpt-6-sol, azure:mine,lexical")), parse_judge("gpt-6-sol").model
    ('openai/gpt-6-sol,azure/mine,lexical/lexical', 'gpt-6-sol')

    Raises:
        ModelNotConfigured: a model is invalid, a model is in the jury twice, or the number of members is even or too
            high.
    """
    names = members_in(name)
    if len(names) == 1:
        return JudgeName((parse_model(name),))
    try:
        judge = JudgeName(tuple(map(parse_model, names)))
        check_members([member.model for member in judge.members])
    except (ModelNotConfigured, ValueError) as error:
        raise ModelNotConfigured(f"invalid jury {name!r}: {error}") from error
    return judge


def make_client(
    model: str,
    retrier: Retrier,
    *,
    access: Access,
    store: ReplyCache | None = None,
    circuit: CircuitBreaker | None = None,
    budget: RequestBudget | None = None,
    prices: Prices | None = None,
    models: Callable[[ProviderAdapter], ModelList] = ModelList,
) -> tuple[LLMClient, str]:
    """Return a client for ``model``, and the name of the model without the provider.

    Clients with the same key should share a ``circuit``, and clients of one run a ``budget``. With ``store=None`` there
    is no reply cache. ``models`` constructs the model list of the client's server.

    Raises:
        ModelNotConfigured: the name is invalid or a required setting is missing; the message names the setting.
    """
    name = parse_model(model)
    if name.provider == LEXICAL:
        return LexicalClient(), name.model
    backend = _backend(name, access)
    remote = RemoteLLM(backend, retrier, circuit=circuit, budget=budget, prices=prices, models=models(backend))
    return CachedLLM(remote, store), name.model


def make_direct_client(
    provider: str,
    access: Access,
    *,
    base_url: str | None,
    policy: RetryPolicy,
    before_attempt: Callable[[], None],
) -> LLMClient:
    """Return a client for any model of a provider that sends requests as given. See ``DirectLLM``.

    Raises:
        ModelNotConfigured: a required setting is missing; the message names it.
    """
    address = REMOTE_PROVIDERS[provider].address
    options: dict[str, Any] = {} if address is None or not base_url else {address: base_url}
    backend = _backend(ModelName(provider, "any model"), replace(access, explores=False, **options))
    return DirectLLM(backend, policy, before_attempt)


def _backend(name: ModelName, access: Access) -> ProviderAdapter:
    row = REMOTE_PROVIDERS[name.provider]
    if not all(any(getattr(access, field) for field in group) for group in row.required):
        raise ModelNotConfigured(f"{name} needs {row.needs}")
    return row.open(access)


_WORD = "lighthouse"
_ASK = f'Fill the form: "word" is the word {_WORD}, "holds" is true.'


class Probe(BaseModel):
    """What the model is asked to fill in."""  # part of the schema that is sent

    word: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """Result of a probe. ``request_format`` is the name of the request format, ``facts`` its JSON value.

    ``right``: the model filled in the correct values.
    """

    request_format: str
    right: bool
    images: bool
    facts: dict[str, Any]


async def probe(client: object, model: str) -> ProbeResult:
    """Request a small JSON object from ``model``, first without and then with an image, and learn its request format.

    Raises:
        ModelNotConfigured: the provider has only one request format.
        LLMError: the server accepts the first request in no format.
    """
    if not isinstance(client, CachedLLM) or client.remote.backend.learned_formats is None:
        raise ModelNotConfigured("this provider has only one request format, so it cannot be probed")
    remote, formats = client.remote, client.remote.backend.learned_formats
    formats.forget(model)
    reply = await remote.complete(
        LLMRequest(
            model=model,
            messages=({"role": "system", "content": "You fill in forms."}, _user_message(_ASK)),
            schema=Probe,
        )
    )
    right = isinstance(reply.parsed, Probe) and reply.parsed.word.strip().lower() == _WORD and reply.parsed.holds
    image = image_part(await asyncio.to_thread(_white_image))
    message = _user_message([image, {"type": "text", "text": _ASK}])
    images = formats.known(model).request_format.images
    if images:
        try:
            images = not (await remote.complete(LLMRequest(model=model, messages=(message,), schema=Probe))).text_only
        except LLMError:
            images = False
    request_format = formats.known(model).request_format
    facts = {**to_json(request_format), "images": images, "calls": reply.usage.calls}
    return ProbeResult(request_format=str(request_format), right=right, images=images, facts=facts)


def _user_message(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _white_image() -> DataURI:
    body = io.BytesIO()
    Image.new("RGB", (64, 64), "white").save(body, "JPEG")
    return DataURI.of_jpeg(body.getvalue())
