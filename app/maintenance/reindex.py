"""Rebuild of the capture index from the stored records.

The whole index can be derived from the capture records. Each record is stored twice: next to the page bodies, and in
the rows (or files) of the index. A record that is missing in one place is restored from the other. Missing and damaged
bodies are reported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import structlog

from cache.blobs import BlobStore
from cache.capture import Capture
from cache.capture_index import capture_from_bytes, capture_to_bytes
from cache.errors import BlobCorrupt, BlobMissing, IndexFailed
from cache.urls import canonical_key

_log = structlog.get_logger(__name__)


class Rebuildable(Protocol):
    """Capture index that can be rebuilt."""

    def captures(self) -> AsyncIterator[Capture]: ...

    async def restore(self, capture: Capture) -> bool:
        """Write the row of a capture if it is missing or different. Return whether it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildReport:
    """Report of a rebuild.

    Attributes:
        captures: Number of captures.
        rows: Number of index rows that were written.
        records: Number of records that were written next to the bodies.
        unreadable: Number of unreadable records.
        missing: Missing bodies by SHA-256, with the IDs of the captures that need them.
        corrupt: Damaged bodies by SHA-256, with the IDs of the captures that need them.
        unnamed: Number of bodies that no capture refers to.
        drafts: Number of partially written files that were removed.
    """

    captures: int
    rows: int
    records: int
    unreadable: int
    missing: dict[str, list[str]]
    corrupt: dict[str, list[str]]
    unnamed: int
    drafts: int

    @property
    def is_consistent(self) -> bool:
        return not (self.missing or self.corrupt or self.unreadable)

    def as_json(self) -> dict[str, Any]:
        return {"sound": self.is_consistent, **asdict(self)}


async def rebuild(blobs: BlobStore, index: Rebuildable, *, check: bool) -> RebuildReport:
    """Rebuild an index and compare it with the stored bodies. ``check`` also verifies the hash of every body.

    Raises:
        BlobStoreFailed, IndexFailed: The store or the index cannot be read or written.
    """
    captures, recorded_ids, unreadable = await _records(blobs)
    async for known in index.captures():
        captures.setdefault(known.id, known)
    rows = 0
    records = 0
    for capture in captures.values():
        # Compute the key again, because the rules for keys may have changed since the record was written.
        rows += await index.restore(replace(capture, key=canonical_key(capture.url)))
        if capture.id not in recorded_ids:
            await blobs.put_record(capture.id, capture_to_bytes(capture))
            records += 1
    needed: dict[str, list[str]] = {}
    for capture in captures.values():
        for blob in capture.blobs.values():
            needed.setdefault(blob.sha256, []).append(capture.id)
    stored = await blobs.hashes()
    corrupt = await _corrupt(blobs, needed.keys() & stored) if check else set()
    rebuilt = RebuildReport(
        captures=len(captures),
        rows=rows,
        records=records,
        unreadable=unreadable,
        missing={sha256: needed[sha256] for sha256 in sorted(needed.keys() - stored)},
        corrupt={sha256: needed[sha256] for sha256 in sorted(corrupt)},
        unnamed=len(stored - needed.keys()),
        drafts=await blobs.remove_drafts(),
    )
    _log.info("captures reindexed", captures=rebuilt.captures, rows=rows, records=records, sound=rebuilt.is_consistent)
    return rebuilt


async def _records(blobs: BlobStore) -> tuple[dict[str, Capture], set[str], int]:
    """Read the records next to the bodies. Return the captures, their IDs and the number of unreadable records."""
    captures: dict[str, Capture] = {}
    unreadable = 0
    async for name, data in blobs.records():
        try:
            captures[name] = capture_from_bytes(data)
        except IndexFailed as damage:
            _log.warning("capture record unreadable", record=name, error=str(damage))
            unreadable += 1
    return captures, set(captures), unreadable


async def _corrupt(blobs: BlobStore, hashes: set[str]) -> set[str]:
    """Return the hashes of damaged bodies. Reading a damaged body moves it to quarantine."""
    corrupt: set[str] = set()
    for sha256 in sorted(hashes):
        try:
            await blobs.get(sha256)
        except (BlobCorrupt, BlobMissing):
            corrupt.add(sha256)
    return corrupt
