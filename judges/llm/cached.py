"""Caching model client: checkpoints of the job, reply cache, and single flight for equal requests.

Votes on the same claim have different indexes. They are therefore different requests and never share a reply.

The reply cache is keyed by the hash of the request. Judging an unchanged answer again sends no requests.
``FolderReplyCache`` is the cache of one machine: one small file per reply, because several processes share the folder
and files are replaced atomically. Workers on several machines use ``app.storage.reply_cache``. Only usable replies are
stored, and an unreadable entry counts as a cache miss. A full cache evicts the least recently used replies.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from cache.atomic_files import write_atomic
from cache.single_flight import SingleFlight
from judges.errors import LLMError, LLMOutputUnusable, ReplyNotCached, ShorterPage
from judges.llm.client import CheckpointedReply, LLMClient, LLMReply, LLMRequest, StoredReply
from judges.llm.encoding import request_key
from judges.llm.learned_formats import Images
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.remote import RemoteLLM, sent_params
from judges.llm.replies import read_reply
from rubrics.verdict import Usage

log = logging.getLogger(__name__)

DEFAULT_MAX_BYTES = 1024**3
ENTRY_VERSION = 1
EVICTION_TARGET = 0.9
"""Fraction of the limit that eviction leaves, so that not every further reply triggers eviction."""


class ReplyCache(Protocol):
    """Reply cache, keyed by the hash of the request."""

    async def get(self, key: str) -> StoredReply | None: ...

    async def put(self, key: str, reply: LLMReply) -> None: ...


class CacheSize(NamedTuple):
    """Size of the cache, or of the removed part of it."""

    entries: int
    bytes: int


class _Entry(NamedTuple):
    path: Path
    bytes: int
    used_at: float


class FolderReplyCache:
    """Reply cache in a folder of at most ``max_bytes``. Files are read and written in a thread."""

    def __init__(self, folder: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._bytes: int | None = None
        self._accounting = asyncio.Lock()

    async def get(self, key: str) -> StoredReply | None:
        """Return the reply stored under ``key`` (hex); None if there is no readable one."""
        return await asyncio.to_thread(self._read, key) if self._has(key) else None

    async def put(self, key: str, reply: LLMReply) -> None:
        """Store a reply. If the disk is full, read-only or damaged, log a warning and continue."""
        try:
            written = await asyncio.to_thread(self._write, key, reply)
            async with self._accounting:
                if self._bytes is None:
                    self._bytes = (await asyncio.to_thread(self.size)).bytes
                else:
                    self._bytes += written
                if self._bytes > self._max_bytes:
                    self._bytes = await asyncio.to_thread(self._evict)
        except OSError as error:
            log.warning(
                "llm reply not stored or none evicted", extra={"folder": str(self._folder), "error": str(error)}
            )

    def size(self) -> CacheSize:
        """Return the size of the cache. Reads the folder."""
        return _total(entry.bytes for entry in self._entries())

    def clear(self, *, used_before: float | None = None) -> CacheSize:
        """Remove the replies that were last used before a time, in seconds since the epoch; None: all.

        Return the number and size of the removed replies. A process that is using the cache counts them until it ends.
        """
        removed = [entry for entry in self._entries() if used_before is None or entry.used_at < used_before]
        for entry in removed:
            entry.path.unlink(missing_ok=True)
        return _total(entry.bytes for entry in removed)

    def _place(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def _has(self, key: str) -> bool:
        """Return whether there is a file. It takes microseconds, a tenth of what a thread would cost."""
        try:
            return self._place(key).exists()
        except OSError:  # for example a folder of another user
            return False

    def _read(self, key: str) -> StoredReply | None:
        place = self._place(key)
        try:
            stored = parse_entry(place.read_bytes())
            if stored is not None:
                with suppress(OSError):  # the file belongs to another user, the disk is read-only, or it was evicted
                    os.utime(place)
            return stored
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError) as error:
            log.warning("stored llm reply unreadable", extra={"key": key, "error": type(error).__name__})
        return None

    def _write(self, key: str, reply: LLMReply) -> int:
        data = to_entry(reply).encode()
        write_atomic(self._place(key), data)
        return len(data)

    def _entries(self) -> Iterator[_Entry]:
        for path in self._folder.glob("??/*.json"):
            with suppress(FileNotFoundError):  # another process may be evicting, too
                facts = path.stat()
                yield _Entry(path, facts.st_size, facts.st_mtime)

    def _evict(self) -> int:
        """Remove the least recently used replies. Return the remaining bytes."""
        entries = sorted(self._entries(), key=lambda entry: entry.used_at)
        remaining = sum(entry.bytes for entry in entries)
        for entry in entries:
            if remaining <= self._max_bytes * EVICTION_TARGET:
                break
            entry.path.unlink(missing_ok=True)
            remaining -= entry.bytes
        return remaining


def _total(sizes: Iterable[int]) -> CacheSize:
    listed = list(sizes)
    return CacheSize(len(listed), sum(listed))


def to_entry(reply: LLMReply | StoredReply, *, at: str = "") -> str:
    """Serialize a reply as ASCII JSON with a digest. ``at``: key of the storage location, which the digest covers."""
    shorter = reply.shorter_page
    cut = None if shorter is None else {"refusal": shorter.refusal, "page_chars": shorter.page_chars}
    entry: dict[str, Any] = {
        "version": ENTRY_VERSION,
        "sha256": _digest(reply.model, reply.text, at, cut),
        "model": reply.model,
        "text": reply.text,
    }
    if reply.text_only:
        # Part of the digest, so that a version without this field does not use it as a reply to the images.
        entry |= {"text_only": True, "sha256": _digest(reply.model, reply.text, f"{at} text only", cut)}
    return json.dumps(entry if cut is None else {**entry, "shorter_page": cut})


def parse_entry(entry: str | bytes, *, at: str = "") -> StoredReply | None:
    """Parse an entry. Return None if its version, its digest or its location ``at`` does not match.

    Raises:
        ValueError, TypeError, LookupError: the value is not an entry.
    """
    content = json.loads(entry)
    if content["version"] != ENTRY_VERSION:
        return None
    cut, text_only = content.get("shorter_page"), content.get("text_only") is True
    if content["sha256"] != _digest(content["model"], content["text"], f"{at} text only" if text_only else at, cut):
        return None
    shorter = None if cut is None else ShorterPage(refusal=cut["refusal"], page_chars=cut["page_chars"])
    return StoredReply(text=content["text"], model=content["model"], shorter_page=shorter, text_only=text_only)


def _digest(model: str, text: str, at: str, cut: Mapping[str, Any] | None) -> str:
    bound = f"{at}\0{model}\0{text}" if at else f"{model}\0{text}"
    if cut is not None:
        # Part of the digest, so that a version without this field does not use it as a reply to the whole page.
        bound = f"{json.dumps(cut, sort_keys=True)}\0{bound}"
    return sha256(bound.encode("utf-8", "surrogatepass")).hexdigest()


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
            provider=self._inner.backend.provider,
            endpoint=self._inner.backend.endpoint,
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


def parse_stored(request: LLMRequest, paid: StoredReply | LLMReply) -> LLMReply | None:
    """Return a stored reply, parsed into the class of the request; None if it does not match the class.

    Equal requests may have different class objects, because each answer loads its task file again, and a class may
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


class JuryClient:
    """``LLMClient`` for the models of a jury. Each reply has the cache key that it has without a jury.

    ``clients`` are the clients by model, the first one also for all other models. They stay open.
    """

    def __init__(self, clients: Mapping[str, LLMClient]) -> None:
        self._clients = clients
        self._first = next(iter(clients.values()))

    def of(self, model: str) -> LLMClient:
        """Return the client for requests to ``model``."""
        return self._clients.get(model, self._first)

    async def complete(self, request: LLMRequest) -> LLMReply:
        return await self.of(request.model).complete(request)

    async def aclose(self) -> None:
        """Do nothing: the clients are shared."""

    def configuration_hash(self, request: LLMRequest) -> str:
        """Return a short hash of provider, address and parameters of each model. ``request`` has no messages."""
        parts = []
        for model, client in self._clients.items():
            known = client.configuration_hash(request) if isinstance(client, CachedLLM) else ""
            parts.append(f"{model} {known}")
        return sha256("\n".join(parts).encode()).hexdigest()[:CONFIGURATION_HASH_CHARS]
