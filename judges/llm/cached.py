"""Caching model client: checkpoints of the job, reply cache, and single flight for equal requests.

Votes on the same claim have different indexes. They are therefore different requests and never share a reply.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from cache.single_flight import SingleFlight
from judges.errors import LLMError, LLMOutputUnusable, ReplyNotCached, ShorterPage
from judges.llm.client import CheckpointedReply, LLMReply, LLMRequest
from judges.llm.encoding import request_key
from judges.llm.learned_formats import Images
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.remote import RemoteLLM, sent_params
from judges.llm.replies import read_reply
from judges.llm.response_cache import ReplyCache
from rubrics.verdict import Usage

CONFIGURATION_HASH_CHARS = 16


@dataclass(slots=True)
class _Exchange:
    """Reply that concurrent callers share. The first caller that uses it is charged the cost."""

    reply: LLMReply
    is_paid: bool = False


class CachedLLM:
    """``LLMClient`` that caches the replies of a remote client.

    With ``store=None`` it stores nothing and only shares requests in flight.
    """

    def __init__(self, inner: RemoteLLM, store: ReplyCache | None) -> None:
        self._inner = inner
        self._store = store
        self._in_flight: SingleFlight[str, _Exchange] = SingleFlight()

    @property
    def remote(self) -> RemoteLLM:
        """Return the client without the cache."""
        return self._inner

    def key_of(self, request: LLMRequest) -> str:
        """Return the cache key: a hash of everything that determines the reply."""
        # ASSAY_IMAGES changes the request. The default is left out so that older keys stay valid.
        image_options = {} if self._inner.images is Images.AUTO else {"images": self._inner.images.value}
        return request_key(
            request,
            provider=self._inner.provider,
            endpoint=self._inner.endpoint,
            params={**sent_params(request), **image_options},
        )

    def configuration_hash(self, request: LLMRequest) -> str:
        """Return a short hash of provider, address and parameters. ``request`` has no messages."""
        return self.key_of(request)[:CONFIGURATION_HASH_CHARS]

    async def complete(self, request: LLMRequest) -> LLMReply:
        key, checkpoints = self.key_of(request), request.checkpoints
        if checkpoints is None:
            return await self._complete(key, request)
        known = checkpoints.stored_reply(key)
        if known is not None and (checkpointed := _parse_checkpoint(request, known)) is not None:
            return replace(checkpointed, key=key)
        reply = await self._complete(key, request)
        await checkpoints.store_reply(key, reply)
        return reply

    async def _complete(self, key: str, request: LLMRequest) -> LLMReply:
        try:
            reply = await self._cached_or_sent(key, request)
        except LLMError as error:
            if error.key == key:  # another caller of the same request already got this error and is charged for it
                raise error.unpaid() from None
            error.key = key
            raise
        return replace(reply, key=key)

    async def _cached_or_sent(self, key: str, request: LLMRequest) -> LLMReply:
        if request.cache_only:
            kept = await self._stored(key, request)
            if kept is None:
                raise ReplyNotCached
            return kept
        is_first = False

        async def fetch() -> _Exchange:
            nonlocal is_first
            is_first = True
            # Looked up inside the single flight: while a reply is being stored, a caller could otherwise miss both.
            stored = await self._stored(key, request)
            if stored is not None:
                return _Exchange(stored)
            reply = await self._inner.complete(request)
            if self._store is not None:
                await self._store.put(key, reply)
            return _Exchange(reply)

        exchange = await self._in_flight.run(key, fetch)
        reply, is_paid = exchange.reply, exchange.is_paid
        own_reply = reply if is_first and not is_paid else parse_stored(request, reply)
        if own_reply is None:
            return await self._inner.complete(request)
        exchange.is_paid = True
        # The first caller to get here pays. The one that sent the request may be cancelled, or resume after another.
        return own_reply if is_paid else replace(reply, parsed=own_reply.parsed)

    async def aclose(self) -> None:
        await self._in_flight.aclose()
        await self._inner.aclose()

    async def _stored(self, key: str, request: LLMRequest) -> LLMReply | None:
        stored = None if self._store is None else await self._store.get(key)
        return None if stored is None else parse_stored(request, stored)


class ReplyFields(Protocol):
    """Fields of a stored reply."""

    @property
    def text(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def shorter_page(self) -> ShorterPage | None: ...
    @property
    def text_only(self) -> bool: ...


def parse_stored(request: LLMRequest, paid: ReplyFields) -> LLMReply | None:
    """Return a stored reply, parsed into the class of the request; None if it does not match the class.

    Equal requests may have different class objects, because each answer loads its judge file again, and a class may
    have changed since the reply was stored. ``shorter_page`` keeps only the fields that distinguish the requests.
    """
    raw = RawReply(text=paid.text, finish=FinishReason.STOP, model=paid.model)
    try:
        parsed = read_reply(raw, request.schema, purpose=request.purpose)
    except LLMOutputUnusable:
        return None
    return LLMReply(
        text=paid.text,
        parsed=parsed,
        model=paid.model,
        usage=Usage(cached_calls=1),
        cached=True,
        shorter_page=None if paid.shorter_page is None else replace(paid.shorter_page, unusable=()),
        text_only=paid.text_only,
    )


def _parse_checkpoint(request: LLMRequest, stored: CheckpointedReply) -> LLMReply | None:
    """Return the reply as the job received it; None if it no longer matches the class of the request."""
    reply = parse_stored(request, stored)
    if reply is None or stored.counted:
        return reply
    return replace(
        reply,
        usage=stored.usage,
        cached=stored.cached,
        unusable=stored.unusable,
        shorter_page=stored.shorter_page,
        retried=stored.retried,
    )
