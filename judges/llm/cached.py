"""Never asks the same thing twice: replies from the store, and equal requests under way joined to one.

Votes of one claim are different requests by their index, so they are never joined.
"""

from __future__ import annotations

from dataclasses import replace

from cache.single_flight import SingleFlight
from judges.errors import LLMOutputUnusable
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.encoding import request_key
from judges.llm.remote import RemoteLLM, sent_params
from judges.llm.replies import read_reply
from judges.llm.response_cache import ReplyStore
from judges.llm.wire import Finish, RawReply
from rubrics.verdict import Usage


class CachedLLM:
    """An ``LLMClient`` in front of a remote one. ``store=None`` joins requests and stores nothing."""

    def __init__(self, inner: RemoteLLM, store: ReplyStore | None) -> None:
        self._inner = inner
        self._store = store
        self._under_way: SingleFlight[str, LLMReply] = SingleFlight()

    async def complete(self, request: LLMRequest) -> LLMReply:
        key = request_key(
            request, provider=self._inner.provider, endpoint=self._inner.endpoint, params=sent_params(request)
        )
        stored = await self._stored(key, request)
        if stored is not None:
            return stored
        asked = False

        async def ask() -> LLMReply:
            nonlocal asked
            asked = True
            reply = await self._inner.complete(request)
            if self._store is not None:
                await self._store.put(key, reply)
            return reply

        reply = await self._under_way.run(key, ask)
        # Whoever joined paid nothing: the cost stands with the one who asked.
        return reply if asked else replace(reply, cached=True, usage=Usage(cached_calls=1))

    async def aclose(self) -> None:
        await self._under_way.aclose()
        await self._inner.aclose()

    async def _stored(self, key: str, request: LLMRequest) -> LLMReply | None:
        found = None if self._store is None else await self._store.get(key)
        if found is None:
            return None
        raw = RawReply(text=found.text, finish=Finish.STOP, model=found.model)
        try:
            parsed = read_reply(raw, request.schema, strict=request.purpose == "verify")
        except LLMOutputUnusable:
            return None  # it fitted when it was stored; a class that changed since is asked for anew
        usage = Usage(cached_calls=1)
        return LLMReply(text=found.text, parsed=parsed, model=found.model, usage=usage, cached=True)
