"""Forgets what is older than a day to be named: results, captures and stored bodies, but never what a result that
stays was judged by. A rehearsal says what would go and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog

from app.storage.database import Database
from app.storage.retention import Forgotten, bodies_named, forget
from cache.blobs import BlobStore, Shelf
from cache.capture import Capture
from cache.record import capture_from_bytes
from cache.store import FolderIndex

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What went, or in a rehearsal would go. ``bodies`` counts stored files that nothing names any more."""

    rows: Forgotten
    bodies: int


class _Rehearsed(Exception):
    """Ends the transaction of a rehearsal without its changes."""


async def prune(
    database: Database,
    blobs: BlobStore,
    *,
    before: datetime,
    now: datetime,
    rehearse: bool,
    folder: Path | None = None,
) -> Pruned:
    """Forget what is from before that moment.

    A capture without a row, made by a command that had no service, is nobody's here to forget: what its record names
    stays, be it beside the bodies or in ``folder``. Rows go first, records and bodies after them: an interruption in
    between leaves bodies that nobody names, which the next run removes, or records, of which ``assay capture reindex``
    makes rows again for it; never a row whose body is gone.

    Raises:
        DatabaseUnavailable, BlobStoreFailed: what was done until then stays done.
        IndexFailed: a record cannot be read, so that nobody knows what it names; nothing has been done.
    """
    stored = await blobs.hashes(older_than=now - before)
    own = await _in_folder(folder)
    named = {sha256 for capture in own.values() for sha256 in _bodies_of(capture)}
    named |= await _named_without_row(database, blobs, but=own.keys())
    rows: Forgotten | None = None
    try:
        async with database.begin() as connection:
            rows = await forget(connection, before=before)
            async for _, hashes in bodies_named(connection):
                named |= hashes
            if rehearse:
                raise _Rehearsed
    except _Rehearsed:
        pass
    assert rows is not None  # noqa: S101 - the transaction went through, or was given up on purpose
    unnamed = stored - named
    if not rehearse:
        for capture_id in set(rows.captures) - own.keys():
            await blobs.remove_record(capture_id)
        for sha256 in rows.calls:
            await blobs.remove_aside(Shelf.CALLS, sha256)
        # A body that was stored again meanwhile is young now: it may belong to a capture that is just being made.
        for sha256 in unnamed & await blobs.hashes(older_than=now - before):
            await blobs.remove(sha256)
        _log.info("pruned", before=before.isoformat(), jobs=rows.jobs, results=rows.results, bodies=len(unnamed))
    return Pruned(rows=rows, bodies=len(unnamed))


async def _in_folder(folder: Path | None) -> dict[str, Capture]:
    """The captures of which a folder holds the records, by id."""
    if folder is None or not await asyncio.to_thread(folder.is_dir):
        return {}
    return {capture.id: capture async for capture in (await FolderIndex.open(folder)).all()}


async def _named_without_row(database: Database, blobs: BlobStore, *, but: Iterable[str]) -> set[str]:
    """What the records beside the bodies name of captures that have no row. Takes its time, and holds nobody up."""
    known = set(but)
    async with database.begin() as connection:
        async for capture_id, _ in bodies_named(connection):
            known.add(capture_id)
    return {sha256 async for _, data in blobs.records(but=known) for sha256 in _bodies_of(capture_from_bytes(data))}


def _bodies_of(capture: Capture) -> set[str]:
    return {blob.sha256 for blob in capture.blobs.values()}


async def missing_bodies(database: Database, blobs: BlobStore) -> tuple[int, int]:
    """How many stored bodies the captures name, and how many of those the store does not have."""
    stored = await blobs.hashes()
    named: set[str] = set()
    async with database.begin() as connection:
        async for _, hashes in bodies_named(connection):
            named |= hashes
    return len(named), len(named - stored)
