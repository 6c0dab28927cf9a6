"""Two-level reply cache: a local folder, and a cache shared with other machines.

The local cache is read first. A reply found only in the shared cache is copied to the local one.
"""

from __future__ import annotations

from typing import Protocol

from judges.llm.client import LLMReply
from judges.llm.response_cache import FolderReplyCache, StoredReply


class SharedReplyCache(Protocol):
    """Shared cache. It never raises: if it fails, ``get`` returns None and ``offer`` drops the reply."""

    async def get(self, key: str) -> StoredReply | None: ...

    def offer(self, key: str, reply: LLMReply) -> None:
        """Store a reply in the background."""
        ...


class TwoLevelReplyCache:
    """Implementation of ``Replies`` with both levels."""

    def __init__(self, local: FolderReplyCache, shared: SharedReplyCache) -> None:
        self._local = local
        self._shared = shared

    async def get(self, key: str) -> StoredReply | None:
        found = await self._local.get(key)
        if found is not None:
            return found
        found = await self._shared.get(key)
        if found is not None:
            await self._local.put(key, found)
        return found

    async def put(self, key: str, reply: LLMReply) -> None:
        self._shared.offer(key, reply)
        await self._local.put(key, reply)
