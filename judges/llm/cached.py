"""Reply cache in front of a remote model: stored replies, and single flight for equal requests.

The votes on one claim are different requests because of their index, so they are never joined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from cache.single_flight import SingleFlight
from judges.errors import LLMError, LLMOutputUnusable, NotKept, ShorterPage
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.encoding import request_key
from judges.llm.negotiation import Images
from judges.llm.remote import RemoteLLM, sent_params
from judges.llm.replies import read_reply
from judges.llm.response_cache import Replies
from judges.llm.wire import Finish, RawReply
from rubrics.verdict import Usage

MARK_CHARS = 16


@dataclass(slots=True)
class _Exchange:
    """The reply to one request, for every caller that joined it. The first that takes it is charged its cost."""

    reply: LLMReply
    is_paid: bool = False


class CachedLLM:
    """An ``LLMClient`` in front of a remote one. ``store=None`` joins requests and stores nothing."""

    def __init__(self, inner: RemoteLLM, store: Replies | None) -> None:
        self._inner = inner
        self._store = store
        self._under_way: SingleFlight[str, _Exchange] = SingleFlight()

    @property
    def remote(self) -> RemoteLLM:
        """The client behind, which keeps nothing."""
        return self._inner

    def key_of(self, request: LLMRequest) -> str:
        """The hash of everything that decides the reply."""
        # A setting that decides what is shown makes another question; the default is not part of the key.
        shown = {} if self._inner.images is Images.AUTO else {"images": self._inner.images.value}
        return request_key(
            request,
            provider=self._inner.provider,
            endpoint=self._inner.endpoint,
            params={**sent_params(request), **shown},
        )

    def manner(self, request: LLMRequest) -> str:
        """A short hash of how a model is asked: provider, address and parameters. ``request`` has no messages."""
        return self.key_of(request)[:MARK_CHARS]

    async def complete(self, request: LLMRequest) -> LLMReply:
        return await self.complete_keyed(self.key_of(request), request)

    async def complete_keyed(self, key: str, request: LLMRequest) -> LLMReply:
        """``complete`` for a caller that knows the request's key already: hashing a long page twice is slow."""
        try:
            reply = await self._replied(key, request)
        except LLMError as error:
            if error.key == key:  # another caller of the same request has this error already, and pays
                raise error.unpaid() from None
            error.key = key
            raise
        return replace(reply, key=key)

    async def _replied(self, key: str, request: LLMRequest) -> LLMReply:
        if request.kept_only:
            kept = await self._stored(key, request)
            if kept is None:
                raise NotKept
            return kept
        is_first = False

        async def fetch() -> _Exchange:
            nonlocal is_first
            is_first = True
            # Looked up in here: a caller that comes while a reply is being stored would otherwise miss both.
            stored = await self._stored(key, request)
            if stored is not None:
                return _Exchange(stored)
            reply = await self._inner.complete(request)
            if self._store is not None:
                await self._store.put(key, reply)
            return _Exchange(reply)

        exchange = await self._under_way.run(key, fetch)
        reply, is_paid = exchange.reply, exchange.is_paid
        own = reply if is_first and not is_paid else read_for(request, reply)
        if own is None:
            return await self._inner.complete(request)
        exchange.is_paid = True
        # Often the caller that sent the request pays, but it may have been cancelled, or be resumed later than others.
        return own if is_paid else replace(reply, parsed=own.parsed)

    async def kept(self, request: LLMRequest) -> LLMReply | None:
        """The reply that is kept for a request, if there is one; asks nobody."""
        return await self._stored(self.key_of(request), request)

    async def aclose(self) -> None:
        await self._under_way.aclose()
        await self._inner.aclose()

    async def _stored(self, key: str, request: LLMRequest) -> LLMReply | None:
        found = None if self._store is None else await self._store.get(key)
        return None if found is None else read_for(request, found)


class PaidReply(Protocol):
    """What is kept of a reply that was paid for."""

    @property
    def text(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def shorter_page(self) -> ShorterPage | None: ...
    @property
    def text_only(self) -> bool: ...


def read_for(request: LLMRequest, paid: PaidReply) -> LLMReply | None:
    """Return a reply that was paid for before, as an object of the request's own class; None if it does not fit.

    Even for equal requests the classes may be two: each answer has its judge script loaded anew. And a class may
    have changed since the reply was stored. ``shorter_page`` keeps only what tells the requests apart.
    """
    raw = RawReply(text=paid.text, finish=Finish.STOP, model=paid.model)
    try:
        parsed = read_reply(raw, request.schema, strict=request.purpose == "verify")
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
