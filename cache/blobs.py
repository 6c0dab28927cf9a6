"""Stored bodies, addressed by the SHA-256 of what they contain, in a folder, an S3 bucket or memory.

A body is put under its own hash and checked against it on every read, so that what is shown is what was
stored. ``put`` returns only when the bytes would survive a power cut; a record that names a blob is
written after that. A body that no longer has its hash is moved to ``quarantine/`` and never served.

    sha256/<ab>/<hash>      bodies
    records/<id>/<hash>     the record of each capture, so that an index that was lost can be made again
    calls/<ab>/<hash>       what models were asked for one result, and what they said
    scripts/<ab>/<hash>     the source of each judge file that results were made with
    drafts/<random>         being written (folders only); garbage after a crash
    quarantine/<hash>       what was stored under a hash that it does not have
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
from collections.abc import AsyncIterator, Callable, Container, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import obstore
import structlog
from obstore.exceptions import BaseError as ObstoreError
from obstore.store import LocalStore, MemoryStore, ObjectStore, S3Store

from cache.capture import Blob
from cache.errors import BlobCorrupt, BlobMissing, BlobStoreFailed, BlobStoreFull
from cache.fsync import sync_file, sync_folders

_log = structlog.get_logger(__name__)
_HASH_INLINE_BYTES = 256 * 1024
_STORE_FAULTS = (ObstoreError, OSError, ValueError)
_NO_ROOM = f"(os error {errno.ENOSPC})"
_RECORDS = "records"
_DRAFTS = "drafts"
_S3_TRIES = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=5), "base": 2},
}
_S3_TIMEOUT_S = 20
_CONFIRMED_TRIES = 2


class Shelf(StrEnum):
    """What is kept beside the bodies of pages."""

    CALLS = "calls"
    SCRIPTS = "scripts"


class BlobStore:
    """Puts and gets bodies by hash. Safe to share between tasks; processes may share one place."""

    def __init__(
        self, store: ObjectStore, *, folder: Path | None = None, sync: Callable[[Path], None] = sync_file
    ) -> None:
        """``folder``: where ``store`` writes, when that is a local one; ``sync`` brings one of its files to disk."""
        self._store = store
        self._folder = folder
        self._sync = sync
        self._lasting: set[Path] = set()
        """Folders whose names are on the disk, up to the top."""
        self._broken: str | None = None
        """Why nothing is written any more: a disk that failed once to keep what it was given is not believed again."""

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
                return cls(_s3_store(url, dict(s3 or {})))
        except (ObstoreError, OSError) as fault:
            raise ValueError(f"blob store {url}: {fault}") from fault
        raise ValueError(f"blob store {url}: use file:///folder, s3://bucket/prefix or memory://")

    async def put(self, data: bytes, media_type: str) -> Blob:
        """Store a body and say where it is. Putting the same bytes again is harmless and mends a damaged copy.

        Raises:
            BlobStoreFull: there is no room.
            BlobStoreFailed: the store refused (no permission, unreachable), or a disk has failed.
        """
        sha256 = await digest(data)
        await self._write(_place(sha256), data, sha256)
        return Blob(sha256=sha256, size=len(data), media_type=media_type)

    async def get(self, sha256: str) -> bytes:
        """The body with that hash.

        Raises:
            BlobMissing: there is none.
            BlobCorrupt: there is one, but its bytes have changed; it is now in quarantine.
            BlobStoreFailed: the store cannot say.
        """
        return await self._read(_place(sha256), sha256)

    async def put_record(self, name: str, data: bytes) -> None:
        """Store the record of a capture under the capture's id; raises as ``put`` does."""
        sha256 = await digest(data)
        await self._write(f"{_RECORDS}/{name}/{sha256}", data, sha256)

    async def put_aside(self, shelf: Shelf, data: bytes) -> str:
        """Store what belongs to results and to no page, and return its hash; raises as ``put`` does."""
        sha256 = await digest(data)
        if not await self._is_there(_aside(shelf, sha256), len(data)):
            await self._write(_aside(shelf, sha256), data, sha256)
        return sha256

    async def get_aside(self, shelf: Shelf, sha256: str) -> bytes:
        """What was put aside there; raises as ``get`` does."""
        return await self._read(_aside(shelf, sha256), sha256)

    async def remove_aside(self, shelf: Shelf, sha256: str) -> None:
        """Remove what the last result that named it is forgotten with."""
        await self._drop(_aside(shelf, sha256))

    async def records(self, *, but: Container[str] = ()) -> AsyncIterator[tuple[str, bytes]]:
        """Name and bytes of every record ``but`` those named. One that has changed is put aside and left out.

        Raises:
            BlobStoreFailed: the store cannot be listed or read.
        """
        for place in await self._listed(_RECORDS):
            _, name, sha256 = place.split("/", 2)
            if name in but:
                continue
            try:
                yield name, await self._read(place, sha256)
            except (BlobMissing, BlobCorrupt) as damage:
                _log.warning("capture_record_unreadable", record=name, error=damage.detail)

    async def hashes(self, *, older_than: timedelta = timedelta(0)) -> set[str]:
        """The hashes of all bodies stored so long ago; they are not read. Raises BlobStoreFailed."""
        return {place.rpartition("/")[2] for place in await self._listed("sha256", older_than=older_than)}

    async def remove(self, sha256: str) -> None:
        """Remove a body that nothing names any more."""
        await self._drop(_place(sha256))

    async def remove_record(self, name: str) -> None:
        """Remove the record of a capture that is forgotten. Raises BlobStoreFailed."""
        for place in await self._listed(f"{_RECORDS}/{name}"):
            await self._drop(place)

    async def remove_drafts(self, older_than: timedelta = timedelta(hours=1)) -> int:
        """Remove what a crash left half written; returns how many there were. Raises BlobStoreFailed."""
        left = await self._listed(_DRAFTS, older_than=older_than)
        for place in left:
            await self._drop(place)
        return len(left)

    async def _write(self, place: str, data: bytes, sha256: str) -> None:
        if self._broken is not None:
            raise BlobStoreFailed(sha256, self._broken)
        try:
            if self._folder is not None:
                await asyncio.to_thread(self._write_synced, self._folder, place, data)
            else:
                await self._write_confirmed(place, data)
        except _STORE_FAULTS as fault:
            if _NO_ROOM in str(fault) or getattr(fault, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
                raise BlobStoreFull(sha256, "there is no room left") from fault
            raise BlobStoreFailed(sha256, str(fault)) from fault

    def _write_synced(self, folder: Path, place: str, data: bytes) -> None:
        """Write aside, sync, rename, sync the folders: at its place a body is whole or not at all. Blocks.

        All in one thread: handed from one to the next, the four steps of a small body cost more than they do.
        """
        draft = f"{_DRAFTS}/{uuid4().hex}"
        try:
            obstore.put(self._store, draft, data)
            self._synced(self._sync, folder / draft)
            obstore.rename(self._store, draft, place)
        except BaseException:
            with suppress(*_STORE_FAULTS):
                obstore.delete(self._store, draft)
            raise
        around = (folder / place).parent
        self._synced(sync_folders, around, around if around in self._lasting else folder)
        self._lasting.add(around)

    def _synced(self, sync: Callable[..., None], *places: Path) -> None:
        try:
            sync(*places)
        except OSError as fault:
            # After a sync that failed the kernel may have dropped what it was to write: a second one proves nothing.
            if fault.errno not in (errno.ENOSPC, errno.EDQUOT):
                self._broken = f"the disk failed, nothing more is written until the program is started again: {fault}"
                _log.critical("blob_store_read_only", error=str(fault))
            raise

    async def _write_confirmed(self, place: str, data: bytes) -> None:
        """One request, so that nobody sees half of it; then ask whether what is there is what was sent."""
        for _try in range(_CONFIRMED_TRIES):
            sent = await obstore.put_async(self._store, place, data, use_multipart=False)
            there = await obstore.head_async(self._store, place)
            if there["size"] == len(data) and there["e_tag"] == sent["e_tag"]:
                return
            # Another tag may only mean that somebody else put the same body just now: the bytes decide.
            found = await obstore.get_async(self._store, place)
            if bytes(await found.bytes_async()) == data:
                return
        raise ValueError(f"the store holds {there['size']} bytes, and not the {len(data)} that were sent")

    async def _read(self, place: str, sha256: str) -> bytes:
        try:
            found = await obstore.get_async(self._store, place)
            data = bytes(await found.bytes_async())
        except FileNotFoundError as absent:
            raise BlobMissing(sha256, "not stored") from absent
        except _STORE_FAULTS as fault:
            raise BlobStoreFailed(sha256, str(fault)) from fault
        if await digest(data) != sha256:
            await self._quarantine(place, sha256)
            raise BlobCorrupt(sha256, "the stored bytes have changed")
        return data

    async def _quarantine(self, place: str, sha256: str) -> None:
        _log.error("blob_corrupt", sha256=sha256)
        try:
            await obstore.rename_async(self._store, place, f"quarantine/{sha256}")
        except _STORE_FAULTS as fault:
            _log.error("blob_quarantine_failed", sha256=sha256, error=str(fault))

    async def _is_there(self, place: str, size: int) -> bool:
        """Whether something of that size is stored already; what cannot be found out is written again."""
        try:
            there = await obstore.head_async(self._store, place)
        except _STORE_FAULTS:
            return False
        return there["size"] == size

    async def _listed(self, folder: str, *, older_than: timedelta = timedelta(0)) -> list[str]:
        found: list[str] = []
        try:
            async for batch in obstore.list(self._store, folder):
                for entry in batch:
                    age = datetime.now(UTC) - entry["last_modified"]
                    if age >= older_than:
                        found.append(entry["path"])
        except _STORE_FAULTS as fault:
            raise BlobStoreFailed(folder, str(fault)) from fault
        return sorted(found)

    async def _drop(self, place: str) -> None:
        try:
            await obstore.delete_async(self._store, place)
        except _STORE_FAULTS as fault:
            if not isinstance(fault, FileNotFoundError):
                _log.warning("draft_left", place=place, error=str(fault))


def _s3_store(url: str, settings: dict[str, Any]) -> S3Store:
    plain = str(settings.get("endpoint", "")).startswith("http://")
    # The checksum travels with the body: a server that got something else refuses it.
    settings.setdefault("checksum_algorithm", "SHA256")
    client = {"allow_http": plain, "timeout": timedelta(seconds=_S3_TIMEOUT_S)}
    return S3Store.from_url(url, client_options=client, retry_config=_S3_TRIES, **settings)  # type: ignore[arg-type]


async def digest(data: bytes) -> str:
    """The SHA-256 (hex) of ``data``, off the event loop when that takes longer than a moment."""
    if len(data) <= _HASH_INLINE_BYTES:
        return hashlib.sha256(data).hexdigest()
    return await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())


def _aside(shelf: Shelf, sha256: str) -> str:
    return f"{shelf.value}/{sha256[:2]}/{sha256}"


def _place(sha256: str) -> str:
    return f"sha256/{sha256[:2]}/{sha256}"
