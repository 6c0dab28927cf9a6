"""Model client interface: ``LLMRequest``, ``LLMReply`` and the protocol ``LLMClient``.

The extractor and the verifier use it; the other modules of this package implement it. This module must not import the
SDK of a provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeAlias

from pydantic import BaseModel

from judges.errors import ModelNotConfigured, ShorterPage, UnusableReply
from judges.llm.json_schema import ReplySchema, ReplyType, schema_name
from judges.llm.pricing import RequestBudget
from judges.llm.request_formats import RequestFormat
from rubrics.verdict import Usage

Purpose: TypeAlias = Literal["verify", "extract", "free"]
Message: TypeAlias = Mapping[str, Any]
"""One chat message in OpenAI's format: role and content (a string, or a list of ``text`` and ``image_url`` parts)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMRequest:
    """Model request.

    ``parts`` contains the labelled texts that the messages were rendered from (task, answer, page, claim, instruction
    ...). The ``lexical`` judge reads them instead of the messages. ``vote`` is the index of the vote: equal requests
    with different votes are different requests. ``evidence`` contains the SHA-256 digests of the complete page,
    including the part that was cut off.

    The last five fields do not affect the reply. ``metadata`` is sent to providers that accept it, for example for a
    proxy that assigns requests to samples. ``budget`` is the budget that pays (None: the client's own budget).
    ``checkpoints`` are the stored replies of the job that sends the request.
    With ``cache_only``, the client sends nothing and raises ``ReplyNotCached`` if the reply is not in its cache.
    ``request_format`` is None for the format learned for the server.
    """

    model: str
    messages: tuple[Message, ...]
    schema: ReplyType | None = None
    purpose: Purpose = "free"
    prompt: str | None = None
    vote: int = 0
    parts: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict, compare=False)
    budget: RequestBudget | None = field(default=None, compare=False, repr=False)
    checkpoints: Checkpoints | None = field(default=None, compare=False, repr=False)
    cache_only: bool = field(default=False, compare=False, repr=False)
    request_format: RequestFormat | None = field(default=None, compare=False, repr=False)

    @property
    def schema_name(self) -> str:
        """Name of the reply's class; empty for free text."""
        return "" if self.schema is None else schema_name(self.schema)

    @property
    def reply_class(self) -> type[BaseModel] | None:
        """Class of the reply; None for free text, or if the class exists only in a task file's process."""
        return None if isinstance(self.schema, ReplySchema) else self.schema


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMReply:
    """Usable reply. ``parsed`` is an instance of the request's class, or None without a class in this process.

    ``unusable`` contains the unusable replies that preceded it, and ``retried`` the faults after which the request was
    sent again. Both are empty for replies from the cache.
    ``shorter_page`` is set if the provider rejected the whole page and replied to a shortened one. ``text_only`` is
    true if the screenshots were left out because the model takes no images. Both are stored with the reply.
    ``request_format`` is the name of the request format, empty for the default. ``key`` is the cache key of the
    request, empty if the client computes none.
    ``tokens`` are detailed counts, if the client knows them: ``input_tokens``, ``cached_input_tokens``,
    ``output_tokens``, ``reasoning_tokens``, and ``served_model`` if the provider named it.
    """

    text: str
    parsed: BaseModel | None
    model: str
    usage: Usage
    cached: bool = False
    unusable: tuple[UnusableReply, ...] = ()
    shorter_page: ShorterPage | None = None
    retried: tuple[str, ...] = ()
    text_only: bool = False
    request_format: str = ""
    key: str = ""
    tokens: Mapping[str, Any] = field(default_factory=dict, compare=False)


def has_images(request: LLMRequest) -> bool:
    """Return whether any message contains an image."""
    contents = [message.get("content") for message in request.messages]
    return any(is_image(part) for content in contents if not isinstance(content, str) for part in content or ())


def without_images(request: LLMRequest) -> LLMRequest:
    """Return the request without the images in its messages."""
    messages = []
    for message in request.messages:
        content = message.get("content")
        if isinstance(content, list | tuple):
            content = [part for part in content if not is_image(part)]
        messages.append({**message, "content": content})
    return replace(request, messages=tuple(messages))


def is_image(part: Any) -> bool:
    """Return whether a part of a message is an image."""
    return isinstance(part, Mapping) and "image_url" in part


class LLMClient(Protocol):
    """Client for one or more models. Raises only errors of ``judges.errors``."""

    async def complete(self, request: LLMRequest) -> LLMReply: ...

    async def aclose(self) -> None: ...


class UnconfiguredLLM:
    """``LLMClient`` of a run that has no model or no key."""

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Raise ModelNotConfigured."""
        raise ModelNotConfigured(f"{request.model} is not configured")

    async def aclose(self) -> None:
        """Do nothing: no connection was opened."""


def for_job(checkpoints: Checkpoints, budget: RequestBudget | None = None) -> Callable[[LLMRequest], LLMRequest]:
    """Return a function that adds the checkpoints and the budget of a job to a request."""
    return lambda request: replace(request, checkpoints=checkpoints, budget=budget)


OWN_ROLE: Final = "own"
"""Role of requests with messages that a task file writes itself."""


def role_of(request: LLMRequest) -> str:
    """Return ``verify``, ``extract``, or else the name of the prompt (``transcribe``, ``mindact`` ...), or ``own``."""
    if request.purpose != "free":
        return request.purpose
    return OWN_ROLE if request.prompt is None else request.prompt.partition("@")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """Stored reply: text, model, and whether the page was shortened or the images were left out."""

    text: str
    model: str
    shorter_page: ShorterPage | None = None
    text_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointedReply(StoredReply):
    """Stored reply of a job. ``counted``: a stored result of the job already contains its cost."""

    usage: Usage
    cached: bool
    counted: bool = False
    unusable: tuple[UnusableReply, ...] = ()
    retried: tuple[str, ...] = ()


class Checkpoints(Protocol):
    """Replies of one job, each stored before the job uses it, until the job ends.

    The reply cache serves equal requests of different jobs and may evict replies. A worker that takes a job over reads
    the same checkpoints with their cost, and therefore produces the same result.
    """

    def stored_reply(self, key: str) -> CheckpointedReply | None:
        """Return the stored reply to the request with this key, or None."""

    async def store_reply(self, key: str, reply: LLMReply) -> None:
        """Store a reply. Returns after the write is durable."""
