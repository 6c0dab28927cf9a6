"""Checkpoints: each model reply of a job is stored before the job uses it.

The reply cache (``response_cache``) serves equal requests of different jobs and may evict replies. Checkpoints belong
to one job and exist until it ends. A worker that takes the job over reads the same replies with their cost, and
therefore produces the same result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from judges.errors import ShorterPage, UnusableReply
from judges.llm.budget import RequestBudget
from judges.llm.cached import CachedLLM, parse_stored
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.lexical import LexicalClient
from rubrics.verdict import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointedReply:
    """Stored reply of a job. ``counted``: a stored result of the job already contains its cost."""

    text: str
    model: str
    usage: Usage
    cached: bool
    counted: bool = False
    unusable: tuple[UnusableReply, ...] = ()
    shorter_page: ShorterPage | None = None
    retried: tuple[str, ...] = ()
    text_only: bool = False

    def to_reply(self, request: LLMRequest) -> LLMReply | None:
        """Return the reply as the job received it; None if it no longer matches the class of the request."""
        again = parse_stored(request, self)
        if again is None or self.counted:
            return again
        return replace(
            again,
            usage=self.usage,
            cached=self.cached,
            unusable=self.unusable,
            shorter_page=self.shorter_page,
            retried=self.retried,
        )


class Checkpoints(Protocol):
    """Stored replies of one job."""

    def stored_reply(self, key: str) -> CheckpointedReply | None:
        """Return the stored reply to the request with this key, or None."""

    async def store_reply(self, key: str, reply: LLMReply) -> None:
        """Store a reply. Returns after the write is durable."""


class CheckpointedLLM:
    """``LLMClient`` of one job. It wraps a shared client, which it does not close."""

    def __init__(self, inner: CachedLLM, checkpoints: Checkpoints, budget: RequestBudget | None) -> None:
        self._inner = inner
        self._checkpoints = checkpoints
        self._budget = budget

    async def complete(self, request: LLMRequest) -> LLMReply:
        key = self._inner.key_of(request)
        known = self._checkpoints.stored_reply(key)
        if known is not None and (again := known.to_reply(request)) is not None:
            return replace(again, key=key)
        reply = await self._inner.complete_keyed(key, replace(request, budget=self._budget))
        await self._checkpoints.store_reply(key, reply)
        return reply

    async def aclose(self) -> None:
        """Do nothing: the wrapped client is shared."""


def with_checkpoints(client: LLMClient, checkpoints: Checkpoints, budget: RequestBudget | None = None) -> LLMClient:
    """Add the checkpoints and the budget of a job to ``client``. The lexical client needs neither.

    Raises:
        TypeError: ``client`` computes no request keys, so its replies could not be stored.
    """
    if isinstance(client, LexicalClient):
        return client
    if not isinstance(client, CachedLLM):
        raise TypeError(f"{type(client).__name__} has no request keys: add checkpoints before other client wrappers")
    return CheckpointedLLM(client, checkpoints, budget)
