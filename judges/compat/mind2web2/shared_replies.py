"""Model replies shared by the two runs of a script with look-ahead: each request is sent once.

Each run has its own view. The n-th time a run sends a request, it gets the n-th reply to that request, whichever run
sent it first. The real run therefore gets the same replies as without look-ahead.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from judges.errors import LLMError, ReplyNotCached
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.encoding import request_key
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply
from rubrics.verdict import Usage

_Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class _Entry:
    """Request, pending or done."""

    task: asyncio.Task[LLMReply]
    waiting: int = 0
    """Number of callers that wait for the reply."""
    received_by_real: bool = False
    """The real run has got the reply."""


class SharedReplies:
    """Sends the requests of both runs to ``llm`` and keeps the replies for its lifetime."""

    def __init__(self, llm: LLMClient) -> None:
        self._llm = llm
        self.on_request: Callable[[int], None] | None = None
        """Called with ``request_count`` whenever it increases."""
        self._entries: dict[_Key, _Entry] = {}
        self._cancelled: list[asyncio.Task[LLMReply]] = []
        self.request_count = 0
        """Number of requests sent for either run."""

    def view(self, *, real: bool) -> LLMClient:
        """Return the client of one run. ``real`` is the run whose verdicts count."""
        return _View(self, real=real)

    async def reply(self, key: _Key, request: LLMRequest, *, real: bool) -> LLMReply:
        """Return the reply to a request; send it if neither run has.

        A pending request without callers is cancelled and forgotten.
        """
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(asyncio.create_task(self._ask(request)))
            self.request_count += 1
            if self.on_request is not None:
                self.on_request(self.request_count)
        entry.waiting += 1
        try:
            reply = await asyncio.shield(entry.task)
        finally:
            entry.waiting -= 1
            if entry.task.done():
                entry.received_by_real = entry.received_by_real or real
            elif entry.waiting == 0:
                entry.task.cancel()
                self._cancelled.append(entry.task)
                del self._entries[key]
        return reply

    def unused(self) -> Usage:
        """Return the usage of replies that the real run did not request."""
        done = (entry.task for entry in self._entries.values() if entry.task.done() and not entry.received_by_real)
        return sum(_paid([*done, *self._cancelled]), Usage())

    async def aclose(self) -> None:
        """Cancel pending requests and wait for them."""
        tasks = {entry.task for entry in self._entries.values() if not entry.task.done()} | set(self._cancelled)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _ask(self, request: LLMRequest) -> LLMReply:
        return await self._llm.complete(request)


def _paid(tasks: Iterable[asyncio.Task[LLMReply]]) -> Iterable[Usage]:
    for task in tasks:
        if not task.done() or task.cancelled():
            continue
        error = task.exception()
        if error is None:
            yield task.result().usage
        elif isinstance(error, LLMError):
            yield error.usage


class _View:
    """``LLMClient`` of one run."""

    def __init__(self, replies: SharedReplies, *, real: bool) -> None:
        self._replies = replies
        self._real = real
        self._request_counts: Counter[str] = Counter()

    async def complete(self, request: LLMRequest) -> LLMReply:
        if request.cache_only:
            raise ReplyNotCached  # the other run may have a pending request, so the cache is not consulted
        request_digest = request_key(request, provider="", endpoint="", params=request.params)
        number = self._request_counts[request_digest]
        self._request_counts[request_digest] += 1
        reply = await self._replies.reply((request_digest, number), request, real=self._real)
        return _parsed_copy(reply, request)

    async def aclose(self) -> None:
        """Do nothing: the service's client stays open."""


def _parsed_copy(reply: LLMReply, request: LLMRequest) -> LLMReply:
    """Return the reply parsed again, because each run has its own classes and may modify the value."""
    if request.schema is None:
        return reply
    raw = RawReply(text=reply.text, finish=FinishReason.STOP, model=reply.model)
    return replace(reply, parsed=read_reply(raw, request.schema, purpose=request.purpose))
