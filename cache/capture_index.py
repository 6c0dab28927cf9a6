"""Capture index: finds stored captures by page key. Interface and implementations without a database.

Records are never overwritten; each attempt has its own record. A lookup by key returns the first of these that exists:
the newest evidence of this key; the newest evidence of another URL whose final URL has this key (an alias); the newest
attempt. Captures of an owner, such as uploads, are found only in lookups for this owner, and precede shared evidence:
what one owner causes to be captured must not replace the evidence of another.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import structlog
from pydantic import TypeAdapter, ValidationError

from cache.atomic_files import write_atomic
from cache.capture import Capture
from cache.errors import IndexFailed

_log = structlog.get_logger(__name__)


_Captures: TypeAlias = dict[tuple[str, str | None], Capture]
"""Captures by key and owner."""


class CaptureIndex(Protocol):
    """Index of capture records. All methods raise IndexFailed if the index is unavailable."""

    async def find(self, key: str, owner: str | None = None) -> Capture | None:
        """Return the newest evidence of this key, else an alias (its ``key`` differs), else the newest attempt."""

    async def newest(self, key: str, owner: str | None = None) -> Capture | None:
        """Return the newest attempt for this key, with any outcome."""

    async def get(self, capture_id: str) -> Capture | None: ...

    async def record(self, *captures: Capture, synced: bool = True) -> None:
        """Add records, which are durable on return. Without ``synced``, a crash of the machine may lose them."""


class MemoryIndex:
    """Capture index in memory."""

    def __init__(self) -> None:
        self._by_id: dict[str, Capture] = {}
        self._best: _Captures = {}
        self._newest: _Captures = {}
        self._by_final_key: _Captures = {}

    async def find(self, key: str, owner: str | None = None) -> Capture | None:
        return self.find_sync(key, owner)

    def find_sync(self, key: str, owner: str | None = None) -> Capture | None:
        """Synchronous version of ``find``."""
        exact = _max_for(self._best, key, owner, _precedence)
        if exact is not None and exact.is_evidence:
            return exact
        return _max_for(self._by_final_key, key, owner, _precedence) or exact

    async def captures(self) -> AsyncIterator[Capture]:
        """Iterate over all captures."""
        for capture in list(self._by_id.values()):
            yield capture

    async def newest(self, key: str, owner: str | None = None) -> Capture | None:
        return _max_for(self._newest, key, owner, _time)

    async def get(self, capture_id: str) -> Capture | None:
        return self._by_id.get(capture_id)

    async def record(self, *captures: Capture, synced: bool = True) -> None:
        for capture in captures:
            self.record_sync(capture)

    def record_sync(self, capture: Capture) -> None:
        """Synchronous version of ``record``."""
        self._by_id[capture.id] = capture
        _store_max(self._best, capture.key, capture, _rank)
        _store_max(self._newest, capture.key, capture, _time)
        if capture.final_key is not None:
            _store_max(self._by_final_key, capture.final_key, capture, _time)


class FolderIndex(MemoryIndex):
    """Capture index in a folder, with one JSON file per attempt. All files are read on opening.

    Only one process may write. Other processes see new records when they open the folder again.
    """

    def __init__(self, folder: Path) -> None:
        """Do not call this directly; use ``open``."""
        super().__init__()
        self._folder = folder

    @classmethod
    async def open(cls, folder: Path) -> FolderIndex:
        """Open a folder and read all its records. Create it if necessary. Damaged files are logged and skipped.

        Raises:
            IndexFailed: the folder cannot be used.
        """
        index = cls(folder)
        for capture in await asyncio.to_thread(_read_records, folder):
            index.record_sync(capture)
        return index

    async def restore(self, capture: Capture) -> bool:
        """Write the record of a capture if it is missing or different. Return whether it was written."""
        if await self.get(capture.id) == capture:
            return False
        await self.record(capture)
        return True

    async def record(self, *captures: Capture, synced: bool = True) -> None:
        await asyncio.to_thread(self._write, captures, synced=synced)
        await super().record(*captures)

    def _write(self, captures: Sequence[Capture], *, synced: bool) -> None:
        for capture in captures:
            try:
                write_atomic(self._folder / f"{capture.id}.json", capture_to_bytes(capture), synced=synced)
            except OSError as fault:
                raise IndexFailed(f"writing the record of {capture.url} failed: {fault}") from fault


class CombinedIndex:
    """Combination of two indexes. Lookups prefer evidence, then the first index; new records go to both."""

    def __init__(self, first: CaptureIndex, second: CaptureIndex) -> None:
        self._both = first, second

    async def find(self, key: str, owner: str | None = None) -> Capture | None:
        captures = [await index.find(key, owner) for index in self._both]
        return next((capture for capture in captures if capture is not None and capture.is_evidence), _newer(*captures))

    async def newest(self, key: str, owner: str | None = None) -> Capture | None:
        return _newer(*[await index.newest(key, owner) for index in self._both])

    async def get(self, capture_id: str) -> Capture | None:
        first, second = self._both
        return await first.get(capture_id) or await second.get(capture_id)

    async def record(self, *captures: Capture, synced: bool = True) -> None:
        for index in self._both:
            await index.record(*captures, synced=synced)


def _newer(one: Capture | None, other: Capture | None) -> Capture | None:
    return max((capture for capture in (one, other) if capture is not None), key=_time, default=None)


def _store_max(memory: _Captures, key: str, capture: Capture, rank: Callable[[Capture], Any]) -> None:
    stored = memory.get((key, capture.owner))
    if stored is None or rank(capture) >= rank(stored):
        memory[key, capture.owner] = capture


def _max_for(memory: _Captures, key: str, owner: str | None, rank: Callable[[Capture], Any]) -> Capture | None:
    found = (memory.get((key, each)) for each in {None, owner})
    return max((capture for capture in found if capture is not None), key=rank, default=None)


def _rank(capture: Capture) -> tuple[bool, datetime, bool]:
    """Of two captures of the same observation, the one with parts is the newer one."""
    return capture.is_evidence, capture.captured_at, bool(capture.part_names)


def _precedence(capture: Capture) -> tuple[bool, tuple[bool, datetime, bool]]:
    return capture.is_evidence and capture.owner is not None, _rank(capture)


def _time(capture: Capture) -> datetime:
    return capture.captured_at


def _read_records(folder: Path) -> list[Capture]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = sorted(folder.glob("*.json"))
    except OSError as fault:
        raise IndexFailed(f"reading capture records in {folder} failed: {fault}") from fault
    captures = []
    for file in files:
        try:
            captures.append(capture_from_bytes(file.read_bytes()))
        except (IndexFailed, OSError) as damage:
            _log.warning("capture record unreadable", file=file.name, error=str(damage))
    return captures


RECORD_VERSION = 1

_CAPTURES: TypeAdapter[Capture] = TypeAdapter(Capture)


def capture_to_json(capture: Capture) -> dict[str, Any]:
    """Return the capture as JSON values, with ``record_version``. ``captured_at`` is ISO 8601 with UTC offset."""
    fields: dict[str, Any] = _CAPTURES.dump_python(capture, mode="json")
    return {"record_version": RECORD_VERSION, **fields}


def capture_to_bytes(capture: Capture) -> bytes:
    """Return the capture as the bytes of a record file."""
    return json.dumps(capture_to_json(capture), ensure_ascii=False).encode("utf-8", "replace")


def capture_from_bytes(data: bytes) -> Capture:
    """Parse a record that ``capture_to_bytes`` wrote.

    Raises:
        IndexFailed: the record is damaged, or has another version or structure.
    """
    try:
        record = json.loads(data)
    except ValueError as damage:
        raise IndexFailed(f"damaged capture record: {damage}") from damage
    if not isinstance(record, dict):
        raise IndexFailed("damaged capture record: not a JSON object")
    return capture_from_json(record)


def capture_from_json(record: Mapping[str, Any]) -> Capture:
    """Parse a record that ``capture_to_json`` returned.

    Raises:
        IndexFailed: the record has another version or structure.
    """
    version = record.get("record_version")
    if version != RECORD_VERSION:
        raise IndexFailed(f"unsupported capture record version {version!r}: this program reads {RECORD_VERSION}")
    try:
        return _CAPTURES.validate_python({name: value for name, value in record.items() if name != "record_version"})
    except ValidationError as wrong:
        raise IndexFailed(f"damaged capture record: {wrong}") from wrong
