"""The replies of one answer, for the two runs of its script that look-ahead makes: each question is asked once.

Both runs ask through a view. The n-th time a run asks a question it gets the n-th reply to it, whichever run asked
first, so the run that counts is told exactly what it would have been told alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from judges.errors import LLMError, NotKept
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.encoding import request_key
from judges.llm.replies import read_reply
from judges.llm.wire import Finish, RawReply
from rubrics.verdict import Usage

_Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class _Entry:
    """One question under way or answered; ``waiting`` counts who awaits it, ``told`` whether the real run was told."""

    task: asyncio.Task[LLMReply]
    waiting: int = 0
    told: bool = False


class SharedReplies:
    """Asks ``llm`` for both runs. Keeps what was replied until it is dropped itself."""

    def __init__(self, llm: LLMClient) -> None:
        self._llm = llm
        self.on_asking: Callable[[int], None] | None = None
        """Told ``asked`` whenever it grows."""
        self._entries: dict[_Key, _Entry] = {}
        self._called_off: list[asyncio.Task[LLMReply]] = []
        self.asked = 0
        """Calls made for either run."""

    def view(self, *, real: bool) -> LLMClient:
        """The client of one run; ``real`` is the one whose verdicts count."""
        return _View(self, real=real)

    async def reply(self, key: _Key, request: LLMRequest, *, real: bool) -> LLMReply:
        """The reply to a question, asked now if neither run has asked it.

        A question nobody waits for any more is called off and forgotten.
        """
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(asyncio.create_task(self._ask(request)))
            self.asked += 1
            if self.on_asking is not None:
                self.on_asking(self.asked)
        entry.waiting += 1
        try:
            reply = await asyncio.shield(entry.task)
        finally:
            entry.waiting -= 1
            if entry.task.done():
                entry.told = entry.told or real
            elif entry.waiting == 0:
                entry.task.cancel()
                self._called_off.append(entry.task)
                del self._entries[key]
        return reply

    def unused(self) -> Usage:
        """What was paid for replies that the real run never asked for."""
        done = (entry.task for entry in self._entries.values() if entry.task.done() and not entry.told)
        return sum(_paid([*done, *self._called_off]), Usage())

    async def aclose(self) -> None:
        """Call off what is still under way and wait until it has ended."""
        tasks = {entry.task for entry in self._entries.values() if not entry.task.done()} | set(self._called_off)
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
    """The client of one run; implements ``LLMClient``."""

    def __init__(self, replies: SharedReplies, *, real: bool) -> None:
        self._replies = replies
        self._real = real
        self._asked: Counter[str] = Counter()

    async def complete(self, request: LLMRequest) -> LLMReply:
        if request.kept_only:
            raise NotKept  # the other run may have asked: what is kept is not looked up behind its back
        question = request_key(request, provider="", endpoint="", params=request.params)
        number = self._asked[question]
        self._asked[question] += 1
        reply = await self._replies.reply((question, number), request, real=self._real)
        return _own(reply, request)

    async def aclose(self) -> None:
        """The service's client stays open."""


def _own(reply: LLMReply, request: LLMRequest) -> LLMReply:
    """The reply with values of its own: each run has its own classes, and may change what it is given."""
    if request.schema is None:
        return reply
    raw = RawReply(text=reply.text, finish=Finish.STOP, model=reply.model)
    return replace(reply, parsed=read_reply(raw, request.schema, strict=request.purpose == "verify"))
