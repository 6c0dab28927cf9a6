"""What lies between a provider's adapter and everything above it: one attempt in, one raw reply out.

A raw reply is any reply with a 200, however useless; whether it can be used is decided in ``replies``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from judges.llm.client import LLMRequest
from judges.llm.dialects import Dialect
from judges.llm.negotiation import Dialects


class Finish(StrEnum):
    """How the model ended its reply, in one vocabulary for all providers."""

    STOP = "stop"
    LENGTH = "length"
    REFUSAL = "refusal"
    FILTER = "filter"
    BROKEN = "broken"
    """The body of the HTTP reply is not what the provider's API promises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReply:
    """``text`` is what the model wrote, ``detail`` what the provider says about a reply that has none.

    The words of a refusal are ``text``, too, and so is the beginning of a broken body: nobody reads a verdict out of
    either, and they belong into the record.
    ``cached_tokens`` of the ``input_tokens`` were read from the provider's prompt cache, ``cache_write_tokens`` written
    to it. Token counts are None if the provider does not report them. ``form`` is how the request was sent (None: the
    provider has one form), ``text_only`` that its pictures were left out.
    """

    text: str
    finish: Finish
    model: str
    detail: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    form: Dialect | None = None
    text_only: bool = False


class Backend(Protocol):
    """One provider. Sends a request once: no retries, no repair, no accounting.

    Raises only ``LLMUnavailable``, ``LLMRejected`` and ``LLMOutputUnusable``, and CancelledError.
    """

    @property
    def provider(self) -> str: ...

    @property
    def endpoint(self) -> str:
        """The base URL or region: with ``provider`` it tells one account from another."""
        ...

    @property
    def dialects(self) -> Dialects | None:
        """How each model of the server wants to be asked; None: all in one way."""
        ...

    async def send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply: ...

    async def aclose(self) -> None: ...
