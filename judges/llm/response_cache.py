"""Model replies on disk, by the hash of the whole request: a rerun of an unchanged answer asks nothing.

One small file per reply, because several processes share the folder without a server between them and a file is
replaced as a whole or not at all. Only usable replies are stored. What cannot be read back, for whatever reason,
is a reply that was never stored. Least recently used files go first once the folder is full.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from judges.errors import ShorterPage
from judges.llm.client import LLMReply

log = logging.getLogger(__name__)

DEFAULT_MAX_BYTES = 1024**3
ENTRY_VERSION = 1
KEPT_SHARE = 0.9
"""How full the folder is left when it had to be emptied: not every further reply should have to make room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """What is needed to give a reply again: its text, the model that wrote it, and if it was shown less of the page."""

    text: str
    model: str
    shorter_page: ShorterPage | None = None
    text_only: bool = False


class Replies(Protocol):
    """Where replies are kept, by the hash of their request."""

    async def get(self, key: str) -> StoredReply | None: ...

    async def put(self, key: str, reply: LLMReply) -> None: ...


class StoreSize(NamedTuple):
    """How much is stored."""

    entries: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplies:
    """What is stored of one model. The times are those of last use, in seconds since the epoch.

    ``model`` is None for files that cannot be read as a reply.
    """

    model: str | None
    entries: int
    bytes: int
    oldest: float
    newest: float


class _Entry(NamedTuple):
    path: Path
    bytes: int
    used_at: float


class ReplyStore:
    """The folder. Every method does its file work in a thread. ``max_bytes`` bounds what is stored."""

    def __init__(self, folder: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._bytes: int | None = None
        self._accounting = asyncio.Lock()

    async def get(self, key: str) -> StoredReply | None:
        """The reply stored under ``key`` (hex), None where there is none that can be read."""
        return await asyncio.to_thread(self._read, key)

    async def put(self, key: str, reply: LLMReply | StoredReply) -> None:
        """Store a reply. A disk that is full or read-only costs the entry, not the verdict."""
        try:
            written = await asyncio.to_thread(self._write, key, reply)
        except OSError as error:
            log.warning("llm reply not stored", extra={"folder": str(self._folder), "error": str(error)})
            return
        async with self._accounting:
            if self._bytes is None:
                self._bytes = (await self.size()).bytes
            else:
                self._bytes += written
            if self._bytes > self._max_bytes:
                self._bytes = await asyncio.to_thread(self._evict)

    async def size(self) -> StoreSize:
        return await asyncio.to_thread(self._size)

    async def by_model(self) -> tuple[ModelReplies, ...]:
        """What is stored, by the name of the model that wrote it; unreadable files last. Reads every file."""
        return await asyncio.to_thread(self._by_model)

    async def clear(self, *, model: str | None = None, used_before: float | None = None) -> StoreSize:
        """Remove what was written by ``model`` and not used since ``used_before`` (seconds since the epoch).

        None: whatever it is. Returns what was removed.
        """
        async with self._accounting:
            self._bytes = None  # measured anew by the next reply
            return await asyncio.to_thread(self._clear, model, used_before)

    def _place(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def _read(self, key: str) -> StoredReply | None:
        place = self._place(key)
        try:
            found = read_entry(place.read_bytes())
            if found is not None:
                os.utime(place)
            return found
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError) as error:
            log.warning("stored llm reply unreadable", extra={"key": key, "error": type(error).__name__})
        return None

    def _write(self, key: str, reply: LLMReply | StoredReply) -> int:
        data = entry_of(reply).encode()
        place = self._place(key)
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".", delete=False) as file:
            file.write(data)
        try:
            Path(file.name).replace(place)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise
        return len(data)

    def _entries(self) -> Iterator[_Entry]:
        for path in self._folder.glob("??/*.json"):
            with suppress(FileNotFoundError):  # another process may be making room too
                facts = path.stat()
                yield _Entry(path, facts.st_size, facts.st_mtime)

    def _size(self) -> StoreSize:
        sizes = [entry.bytes for entry in self._entries()]
        return StoreSize(len(sizes), sum(sizes))

    def _evict(self) -> int:
        """Remove the least recently used; returns the bytes that are left."""
        entries = sorted(self._entries(), key=lambda entry: entry.used_at)
        left = sum(entry.bytes for entry in entries)
        for entry in entries:
            if left <= self._max_bytes * KEPT_SHARE:
                break
            entry.path.unlink(missing_ok=True)
            left -= entry.bytes
        return left

    def _by_model(self) -> tuple[ModelReplies, ...]:
        found: dict[str | None, list[_Entry]] = {}
        for entry in self._entries():
            found.setdefault(_model_of(entry.path), []).append(entry)
        return tuple(
            ModelReplies(
                model=model,
                entries=len(entries),
                bytes=sum(entry.bytes for entry in entries),
                oldest=min(entry.used_at for entry in entries),
                newest=max(entry.used_at for entry in entries),
            )
            for model, entries in sorted(found.items(), key=lambda item: (item[0] is None, item[0]))
        )

    def _clear(self, model: str | None, used_before: float | None) -> StoreSize:
        removed = []
        for entry in self._entries():
            if used_before is not None and entry.used_at >= used_before:
                continue
            if model is not None and _model_of(entry.path) != model:
                continue
            entry.path.unlink(missing_ok=True)
            removed.append(entry.bytes)
        return StoreSize(len(removed), sum(removed))


def _model_of(path: Path) -> str | None:
    """The model that wrote a stored reply; None where the file tells no such thing."""
    try:
        return str(json.loads(path.read_bytes())["model"])
    except (OSError, ValueError, TypeError, LookupError):
        return None


def entry_of(reply: LLMReply | StoredReply, *, at: str = "") -> str:
    """A reply as it is stored: JSON in ASCII with a digest of its own. ``at``: the place to which it belongs."""
    shorter = reply.shorter_page
    cut = None if shorter is None else {"refusal": shorter.refusal, "page_chars": shorter.page_chars}
    entry: dict[str, Any] = {
        "version": ENTRY_VERSION,
        "sha256": _digest(reply.model, reply.text, at, cut),
        "model": reply.model,
        "text": reply.text,
    }
    if reply.text_only:
        # Bound into the digest, so that a program that knows no such replies does not take it for one to the pictures.
        entry |= {"text_only": True, "sha256": _digest(reply.model, reply.text, f"{at} text only", cut)}
    return json.dumps(entry if cut is None else {**entry, "shorter_page": cut})


def read_entry(entry: str | bytes, *, at: str = "") -> StoredReply | None:
    """The reply in an entry; None for one of another version, that was changed, or that belongs to another place.

    Raises:
        ValueError, TypeError, LookupError: it is no entry at all.
    """
    found = json.loads(entry)
    if found["version"] != ENTRY_VERSION:
        return None
    cut, text_only = found.get("shorter_page"), found.get("text_only") is True
    if found["sha256"] != _digest(found["model"], found["text"], f"{at} text only" if text_only else at, cut):
        return None
    shorter = None if cut is None else ShorterPage(refusal=cut["refusal"], page_chars=cut["page_chars"])
    return StoredReply(text=found["text"], model=found["model"], shorter_page=shorter, text_only=text_only)


def _digest(model: str, text: str, at: str, cut: Mapping[str, Any] | None) -> str:
    bound = f"{at}\0{model}\0{text}" if at else f"{model}\0{text}"
    if cut is not None:
        # A reply to a shortened page must not come back as one to the whole, so a program that knows no such replies
        # finds the digest wrong.
        bound = f"{json.dumps(cut, sort_keys=True)}\0{bound}"
    return hashlib.sha256(bound.encode("utf-8", "surrogatepass")).hexdigest()
