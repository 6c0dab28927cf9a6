"""Making what captures are found by again, out of what is stored: records beside the bodies, rows and files.

Everything in an index can be derived from the records, and the records are kept twice: beside the bodies, and in the
rows (or files) of the index. What either lost comes back from the other; what nobody has is counted, never invented.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import structlog

from cache.blobs import BlobStore
from cache.capture import Capture
from cache.errors import BlobCorrupt, BlobMissing, IndexFailed
from cache.record import capture_from_bytes, capture_to_bytes
from cache.urls import canonical_key

_log = structlog.get_logger(__name__)


class Rebuildable(Protocol):
    """An index that can be made again."""

    def all(self) -> AsyncIterator[Capture]: ...

    async def restore(self, capture: Capture) -> bool:
        """Make the row of a capture what it should be; whether it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was found and mended.

    ``captures`` in all; ``rows`` made or mended in the index; ``records`` written beside the bodies; ``unreadable``
    records. Of the bodies ``missing`` and ``corrupt`` ones are named by hash, with the captures that need them;
    ``unnamed`` are needed by none. ``drafts`` are half-written files that were removed.
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
    def sound(self) -> bool:
        return not (self.missing or self.corrupt or self.unreadable)

    def as_json(self) -> dict[str, Any]:
        return {"sound": self.sound, **asdict(self)}


async def rebuild(blobs: BlobStore, index: Rebuildable, *, check: bool) -> Rebuilt:
    """Rebuild an index and compare it with the stored bodies; ``check``: read every body and compare its hash.

    Raises:
        BlobStoreFailed, IndexFailed: the store or the index cannot be read or written.
    """
    captures, beside, unreadable = await _records(blobs)
    async for known in index.all():
        captures.setdefault(known.id, known)
    rows = 0
    records = 0
    for capture in captures.values():
        # The rules for keys may have changed since the record was written.
        rows += await index.restore(replace(capture, key=canonical_key(capture.url)))
        if capture.id not in beside:
            await blobs.put_record(capture.id, capture_to_bytes(capture))
            records += 1
    needed: dict[str, list[str]] = {}
    for capture in captures.values():
        for blob in capture.blobs.values():
            needed.setdefault(blob.sha256, []).append(capture.id)
    there = await blobs.hashes()
    corrupt = await _corrupt(blobs, needed.keys() & there) if check else set()
    rebuilt = Rebuilt(
        captures=len(captures),
        rows=rows,
        records=records,
        unreadable=unreadable,
        missing={sha256: needed[sha256] for sha256 in sorted(needed.keys() - there)},
        corrupt={sha256: needed[sha256] for sha256 in sorted(corrupt)},
        unnamed=len(there - needed.keys()),
        drafts=await blobs.remove_drafts(),
    )
    _log.info("captures_reindexed", captures=rebuilt.captures, rows=rows, records=records, sound=rebuilt.sound)
    return rebuilt


async def _records(blobs: BlobStore) -> tuple[dict[str, Capture], set[str], int]:
    """The captures whose records stand beside the bodies, their ids, and how many cannot be read."""
    captures: dict[str, Capture] = {}
    unreadable = 0
    async for name, data in blobs.records():
        try:
            captures[name] = capture_from_bytes(data)
        except IndexFailed as damage:
            _log.warning("capture_record_unreadable", record=name, error=str(damage))
            unreadable += 1
    return captures, set(captures), unreadable


async def _corrupt(blobs: BlobStore, hashes: set[str]) -> set[str]:
    """Those of the bodies that no longer have their hash; reading one puts it aside."""
    found: set[str] = set()
    for sha256 in sorted(hashes):
        try:
            await blobs.get(sha256)
        except (BlobCorrupt, BlobMissing):
            found.add(sha256)
    return found
