"""Stored bodies, addressed by the SHA-256 of what they contain, in a folder, an S3 bucket or memory.

A body is put under its own hash and checked against it on every read, so that what is shown is what was
stored. ``put`` returns only when the bytes would survive a power cut; a record that names a blob is
written after that. A body that no longer has its hash is moved to ``quarantine/`` and never served.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
import structlog
from obstore.exceptions import BaseError as ObstoreError
from obstore.store import LocalStore, MemoryStore, ObjectStore, S3Store

from cache.capture import Blob
from cache.errors import BlobCorrupt, BlobMissing, BlobStoreFailed

_log = structlog.get_logger(__name__)
_HASH_INLINE_BYTES = 256 * 1024
_STORE_FAULTS = (ObstoreError, OSError, ValueError)


class BlobStore:
    """Puts and gets bodies by hash. Safe to share between tasks; processes may share one place."""

    def __init__(self, store: ObjectStore, *, folder: Path | None = None) -> None:
        """``folder`` is where ``store`` writes, when that is a local folder: it is what gets synced to disk."""
        self._store = store
        self._folder = folder

    @classmethod
    def open(cls, url: str, *, s3: Mapping[str, Any] | None = None) -> BlobStore:
        """The store at ``file:///folder``, ``s3://bucket/prefix`` or ``memory://``.

        ``s3`` takes obstore's S3 settings (endpoint, region, access_key_id, secret_access_key ...).

        Raises:
            ValueError: the scheme is none of these, or the place cannot be used.
        """
        scheme = urlsplit(url).scheme
        if scheme == "memory":
            return cls(MemoryStore())
        try:
            if scheme == "file":
                folder = Path(unquote(urlsplit(url).path))
                return cls(LocalStore(folder, mkdir=True), folder=folder)
            if scheme == "s3":
                settings: dict[str, Any] = dict(s3 or {})
                plain = str(settings.get("endpoint", "")).startswith("http://")
                return cls(S3Store.from_url(url, client_options={"allow_http": plain}, **settings))
        except (ObstoreError, OSError) as fault:
            raise ValueError(f"blob store {url}: {fault}") from fault
        raise ValueError(f"blob store {url}: use file:///folder, s3://bucket/prefix or memory://")

    async def put(self, data: bytes, media_type: str) -> Blob:
        """Store a body and say where it is. Putting the same bytes again is harmless and mends a damaged copy.

        Raises:
            BlobStoreFailed: the store refused (disk full, no permission, unreachable).
        """
        sha256 = await digest(data)
        try:
            await obstore.put_async(self._store, _place(sha256), data)
            if self._folder is not None:
                await asyncio.to_thread(_sync_to_disk, self._folder / _place(sha256))
        except _STORE_FAULTS as fault:
            raise BlobStoreFailed(sha256, str(fault)) from fault
        return Blob(sha256=sha256, size=len(data), media_type=media_type)

    async def get(self, sha256: str) -> bytes:
        """The body with that hash.

        Raises:
            BlobMissing: there is none.
            BlobCorrupt: there is one, but its bytes have changed; it is now in quarantine.
            BlobStoreFailed: the store cannot say.
        """
        try:
            found = await obstore.get_async(self._store, _place(sha256))
            data = bytes(await found.bytes_async())
        except FileNotFoundError as absent:
            raise BlobMissing(sha256, "not stored") from absent
        except _STORE_FAULTS as fault:
            raise BlobStoreFailed(sha256, str(fault)) from fault
        if await digest(data) != sha256:
            await self._quarantine(sha256)
            raise BlobCorrupt(sha256, "the stored bytes have changed")
        return data

    async def _quarantine(self, sha256: str) -> None:
        _log.error("blob_corrupt", sha256=sha256)
        try:
            await obstore.rename_async(self._store, _place(sha256), f"quarantine/{sha256}")
        except _STORE_FAULTS as fault:
            _log.error("blob_quarantine_failed", sha256=sha256, error=str(fault))


async def digest(data: bytes) -> str:
    """The SHA-256 (hex) of ``data``, off the event loop when that takes longer than a moment."""
    if len(data) <= _HASH_INLINE_BYTES:
        return hashlib.sha256(data).hexdigest()
    return await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())


def _place(sha256: str) -> str:
    return f"sha256/{sha256[:2]}/{sha256}"


def _sync_to_disk(path: Path) -> None:
    for place in (path, path.parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
