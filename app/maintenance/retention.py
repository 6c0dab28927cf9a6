"""Removal of old results, captures and page bodies. Evidence of the remaining results is never removed.

A dry run counts what would be removed and changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog

from app.storage.database import Database
from app.storage.retention import RemovedRows, body_references, remove_old_rows
from cache.blobs import BlobArea, BlobStore
from cache.capture import Capture
from cache.capture_index import FolderIndex, capture_from_bytes

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport:
    """Removed data, or in a dry run the data that would be removed. ``bodies`` counts unreferenced page bodies."""

    rows: RemovedRows
    bodies: int


async def prune(
    database: Database,
    blobs: BlobStore,
    *,
    before: datetime,
    now: datetime,
    dry_run: bool,
    folder: Path | None = None,
) -> PruneReport:
    """Remove data that is older than ``before``.

    A capture has a row in the database and a record, which is stored next to the bodies or in ``folder``. Captures with
    a record but no row come from commands that ran without the service; they and their bodies are kept.

    Rows are removed before records and bodies, so no row ever refers to a removed body. After an interruption, the next
    run removes the remaining bodies. If records remained, run ``assay admin restore --index-only`` to create their rows
    again, then prune again.

    Args:
        dry_run: Count only; remove nothing.
        folder: Folder of a page cache whose captures are kept.

    Raises:
        DatabaseUnavailable, BlobStoreFailed: Data that was removed before the error stays removed.
        IndexFailed: A record is unreadable, so its bodies are unknown. Nothing was removed.
    """
    stored = await blobs.hashes(older_than=now - before)
    folder_captures = await _captures_in_folder(folder)
    referenced = {sha256 for capture in folder_captures.values() for sha256 in _bodies_of(capture)}
    referenced |= await _referenced_without_row(database, blobs, exclude=folder_captures.keys())
    async with database.begin() as connection:
        rows = await remove_old_rows(connection, before=before)
        async for _, hashes in body_references(connection):
            referenced |= hashes
        if dry_run:
            await connection.rollback()
    unreferenced = stored - referenced
    if not dry_run:
        for capture_id in set(rows.captures) - folder_captures.keys():
            await blobs.remove_record(capture_id)
        for sha256 in rows.calls:
            await blobs.remove_from_area(BlobArea.CALLS, sha256)
        # List old bodies again: a body stored again in the meantime may belong to a capture in progress.
        for sha256 in unreferenced & await blobs.hashes(older_than=now - before):
            await blobs.remove(sha256)
        _log.info("pruned", before=before.isoformat(), jobs=rows.jobs, results=rows.results, bodies=len(unreferenced))
    return PruneReport(rows=rows, bodies=len(unreferenced))


async def _captures_in_folder(folder: Path | None) -> dict[str, Capture]:
    """Return the captures that are recorded in a folder, by ID."""
    if folder is None or not await asyncio.to_thread(folder.is_dir):
        return {}
    return {capture.id: capture async for capture in (await FolderIndex.open(folder)).captures()}


async def _referenced_without_row(database: Database, blobs: BlobStore, *, exclude: Iterable[str]) -> set[str]:
    """Return the body hashes of captures that have a record but no row. Runs before the write transaction."""
    known = set(exclude)
    async with database.begin() as connection:
        async for capture_id, _ in body_references(connection):
            known.add(capture_id)
    return {sha256 async for _, data in blobs.records(exclude=known) for sha256 in _bodies_of(capture_from_bytes(data))}


def _bodies_of(capture: Capture) -> set[str]:
    return {blob.sha256 for blob in capture.blobs.values()}


async def missing_bodies(database: Database, blobs: BlobStore) -> tuple[int, int]:
    """Return the number of bodies that captures refer to, and how many of those are not stored."""
    stored = await blobs.hashes()
    referenced: set[str] = set()
    async with database.begin() as connection:
        async for _, hashes in body_references(connection):
            referenced |= hashes
    return len(referenced), len(referenced - stored)
