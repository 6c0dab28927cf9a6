"""What one job has paid for, it has for good: each reply is written down before it counts.

The reply store (``response_cache``) makes equal requests of different jobs cheap, on one machine and as long as there
is room. This is the other half: the replies of a single job, kept until it ends, wherever it goes on. A job that is
taken over therefore sees the very same replies, with what they cost, and comes to the same result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from judges.errors import ShorterPage, UnusableReply
from judges.llm.budget import Purse
from judges.llm.cached import CachedLLM, read_for
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.lexical import LexicalClient
from rubrics.verdict import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReply:
    """A reply as it is kept. ``counted``: a stored result of the job has its cost already."""

    text: str
    model: str
    usage: Usage
    cached: bool
    counted: bool = False
    unusable: tuple[UnusableReply, ...] = ()
    shorter_page: ShorterPage | None = None
    retried: tuple[str, ...] = ()
    text_only: bool = False

    def read_for(self, request: LLMRequest) -> LLMReply | None:
        """What the job was told, as it was told; None where it does not fit the request any more."""
        again = read_for(request, self)
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
    """The replies that one job was given."""

    def recall(self, key: str) -> KeptReply | None:
        """The reply to the request with this key, if the job was given one before."""

    async def keep(self, key: str, reply: LLMReply) -> None:
        """Write a reply down; returns when it is safe."""


class CheckpointedLLM:
    """An ``LLMClient`` for one job over one that many share, which it does not close."""

    def __init__(self, inner: CachedLLM, checkpoints: Checkpoints, purse: Purse | None) -> None:
        self._inner = inner
        self._checkpoints = checkpoints
        self._purse = purse

    async def complete(self, request: LLMRequest) -> LLMReply:
        key = self._inner.key_of(request)
        known = self._checkpoints.recall(key)
        if known is not None and (again := known.read_for(request)) is not None:
            return replace(again, key=key)
        reply = await self._inner.complete_keyed(key, replace(request, purse=self._purse))
        await self._checkpoints.keep(key, reply)
        return reply

    async def aclose(self) -> None:
        """The client behind belongs to somebody else."""


def checkpointed(client: LLMClient, checkpoints: Checkpoints, purse: Purse | None = None) -> LLMClient:
    """``client`` with the memory and the purse of a job. One that asks nobody needs neither.

    Raises:
        TypeError: ``client`` cannot tell the key of a request; to go on without a memory would be noticed too late.
    """
    if isinstance(client, LexicalClient):
        return client
    if not isinstance(client, CachedLLM):
        raise TypeError(f"{type(client).__name__} has no keys: put what wraps a client around its checkpoints")
    return CheckpointedLLM(client, checkpoints, purse)
