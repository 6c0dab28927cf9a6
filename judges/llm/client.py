"""The one question every judge model is asked through: a request in, a reply out, or an error.

Defined here by its consumers (extractor and verifier); the adapters beside this file implement it.
Nothing in this module may import a provider's SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel

from judges.errors import ShorterPage, UnusableReply
from judges.llm.budget import Purse
from judges.llm.dialects import Dialect
from rubrics.verdict import Usage

Message: TypeAlias = Mapping[str, Any]
"""One chat message in the OpenAI shape: role and content (a str or a list of text/image_url parts)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMRequest:
    """Everything that decides a reply.

    ``parts`` holds the labelled plain texts the messages were rendered from (task, answer, page, claim,
    instruction ...): a judge without a model, such as ``lexical``, reads those instead of the prose.
    ``vote`` is the index of this vote: equal requests with different votes are different requests. ``evidence`` are
    the SHA-256 digests of the page that is shown, all of it, also of what had to be cut.
    ``purse`` is who pays (None: whoever pays for the client), ``kept_only`` that nobody is to be asked: a client that
    keeps replies raises NotKept where it has none. ``form`` is how to send it (None: as the server is known to want
    it). None of these decides anything about the reply.
    """

    model: str
    messages: tuple[Message, ...]
    schema: type[BaseModel] | None = None
    purpose: Literal["verify", "extract", "free"] = "free"
    prompt: str | None = None
    vote: int = 0
    parts: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    purse: Purse | None = field(default=None, compare=False, repr=False)
    kept_only: bool = field(default=False, compare=False, repr=False)
    form: Dialect | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMReply:
    """A usable reply: ``parsed`` is an instance of the request's schema, or None where it had none.

    ``unusable`` are the replies before it that could not be used; whoever is given a kept reply is not told of them.
    Nor of ``retried``, the faults after which the same was sent again.
    ``shorter_page``: it is one to the request with less of its page, the whole was refused. Kept replies say so, too.
    ``text_only``: the model was not shown the request's pictures, because it takes none; kept replies say so, too.
    ``form`` is how the request was sent if not in the usual form, for the record of calls.
    ``key`` is the key of the request, empty if the client has no keys.
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
    form: str = ""
    key: str = ""


class LLMClient(Protocol):
    """Something that answers an LLMRequest. Raises only errors of ``judges.errors``."""

    async def complete(self, request: LLMRequest) -> LLMReply: ...

    async def aclose(self) -> None: ...
