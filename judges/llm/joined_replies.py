"""Two places for the replies of models: one at hand, and one further away that other machines fill, too.

The near one is asked first. What only the far one has comes near, so that it is fetched once.
"""

from __future__ import annotations

from typing import Protocol

from judges.llm.client import LLMReply
from judges.llm.response_cache import ReplyStore, StoredReply


class FarReplies(Protocol):
    """The far place. It never fails: what it cannot give is not there, what it cannot take is forgotten."""

    async def get(self, key: str) -> StoredReply | None: ...

    def offer(self, key: str, reply: LLMReply) -> None:
        """Take a reply without waiting for anything."""
        ...


class JoinedReplies:
    """Implements ``Replies`` over both."""

    def __init__(self, near: ReplyStore, far: FarReplies) -> None:
        self._near = near
        self._far = far

    async def get(self, key: str) -> StoredReply | None:
        found = await self._near.get(key)
        if found is not None:
            return found
        found = await self._far.get(key)
        if found is not None:
            await self._near.put(key, found)
        return found

    async def put(self, key: str, reply: LLMReply) -> None:
        self._far.offer(key, reply)
        await self._near.put(key, reply)
