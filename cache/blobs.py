"""Content-addressed blob store in a folder, an S3 bucket or memory.

A body is stored under its SHA-256 and verified against it on every read. ``put`` returns only after the bytes are
durable; records that refer to a blob are written after that. Only imports are written without waiting for the disk. A
body that does not match its hash is moved to ``quarantine/`` and never returned.

    sha256/<ab>/<hash>      bodies
    records/<id>/<hash>     capture records, to rebuild a lost index
    calls/<ab>/<hash>       call logs of results
    scripts/<ab>/<hash>     sources of the task files of results
    drafts/<random>         temporary files (folders only); left over after a crash
    quarantine/<hash>       bodies that do not match their hash
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

import obstore
import structlog
from obstore.exceptions import BaseError as ObstoreError
from obstore.store import LocalStore, MemoryStore, ObjectStore, S3Store

from cache.atomic_files import draft_name, sync_file, sync_folders, write_new_file
from cache.capture import Blob
from cache.errors import BlobCorrupt, BlobMissing, BlobStoreFailed, BlobStoreFull

_log = structlog.get_logger(__name__)
_HASH_INLINE_BYTES = 256 * 1024
_STORE_FAULTS = (ObstoreError, OSError, ValueError)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FULL_TEXT = re.compile(rf"\(os error ({'|'.join(map(str, sorted(_FULL)))})\)")
_S3_ERROR = re.compile(r"<Code>(.+?)</Code>(?:\s*<Message>(.+?)</Message>)?", re.DOTALL)
_OBSTORE_DEBUG = "\n\nDebug source:"
_RECORDS = "records"
_DRAFTS = "drafts"
_S3_RETRY = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=5), "base": 2},
}
_S3_TIMEOUT_S = 20
_WRITE_ATTEMPTS = 2


Bodies: TypeAlias = Mapping[str, tuple[bytes, str]]
"""Bodies by name, each with its media type."""
RecordOf: TypeAlias = Callable[[Mapping[str, Blob]], tuple[str, bytes]]
"""Returns the id of a capture and its record, from the references of its bodies."""


class BlobArea(StrEnum):
    """Kinds of stored data besides page bodies."""

    CALLS = "calls"
    SCRIPTS = "scripts"


class BlobStore:
    """Content-addressed store. Tasks can share one instance, and processes can share one location."""

    def __init__(
        self, store: ObjectStore, *, folder: Path | None = None, sync: Callable[[Path], None] = sync_file
    ) -> None:
        """``folder``: location of a local ``store``. ``sync``: syncs one of its files to disk."""
        self._store = store
        self._folder = folder
        self._sync = sync
        self._durable_folders: set[Path] = set()
        """Folders that are known to be durable, including their parents."""
        self._read_only_reason: str | None = None
        """Reason why the store is read-only: it stays so after the first failed sync."""

    @classmethod
    def open(cls, url: str, *, s3: Mapping[str, Any] | None = None) -> BlobStore:
        """Open the store at ``file:///folder``, ``s3://bucket/prefix`` or ``memory://``.

        ``s3``: S3 settings of obstore (endpoint, region, access_key_id, secret_access_key ...).

        Raises:
            ValueError: the scheme is unknown, or the location is not usable.
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
        """Store a body and return its reference. Storing the same bytes again also repairs a damaged copy.

        Raises:
            BlobStoreFull: no space left.
            BlobStoreFailed: the store is unreachable or denies access, or the disk has failed.
        """
        return Blob(sha256=await self._write(_blob_path, data), size=len(data), media_type=media_type)

    async def put_all(self, bodies: Bodies, record: RecordOf, *, synced: bool = True) -> dict[str, Blob]:
        """Store bodies, then a capture record. Return the references of the bodies by name.

        ``record`` may run in another thread. Without ``synced``, a crash of the machine in the next minute may lose
        what a store in a folder wrote: see ``has_all``. Raises the same errors as ``put``.
        """
        if (folder := self._folder) is not None:
            return await asyncio.to_thread(self._put_files, folder, bodies, record, synced=synced)
        blobs = {name: await self.put(*body) for name, body in bodies.items()}
        await self.put_record(*record(blobs))
        return blobs

    async def put_many(self, captures: Iterable[tuple[Bodies, RecordOf]], *, synced: bool = True) -> None:
        """Store the bodies and records of several captures, see ``put_all``.

        ``captures`` is iterated in another thread while they are stored, so that it can read one at a time.
        """
        if (folder := self._folder) is not None:

            def put_files() -> None:
                for bodies, record in captures:
                    self._put_files(folder, bodies, record, synced=synced)

            return await asyncio.to_thread(put_files)
        remaining = iter(captures)
        while (capture := await asyncio.to_thread(next, remaining, None)) is not None:
            await self.put_all(*capture)

    def has_all(self, blobs: Iterable[Blob]) -> bool:
        """Return whether a store in a folder has files of the right size for all bodies. Blocks.

        Other stores confirm each write: always True.
        """
        return self._folder is None or all(
            _is_file_of(self._folder / _blob_path(blob.sha256), blob.size) for blob in blobs
        )

    async def get(self, sha256: str) -> bytes:
        """Return the body with this hash.

        Raises:
            BlobMissing: no body is stored under this hash.
            BlobCorrupt: the stored bytes do not match the hash; they were moved to quarantine.
            BlobStoreFailed: the store is unreachable or failed.
        """
        return await self._read(_blob_path(sha256), sha256)

    async def get_all(self, hashes: Sequence[str]) -> list[bytes]:
        """Return several bodies; a store in a folder reads them in one thread. Raises the same errors as ``get``."""
        if (folder := self._folder) is not None:
            with suppress(*_STORE_FAULTS):
                files = [_file_path(folder, _blob_path(sha256)) for sha256 in hashes]
                read = await asyncio.to_thread(lambda: list(map(_read_file, files)))
                if all(found == sha256 for (_, found), sha256 in zip(read, hashes, strict=True)):
                    return [data for data, _ in read]
        return [await self.get(sha256) for sha256 in hashes]  # one by one: raises the error of the damaged one

    async def put_record(self, name: str, data: bytes) -> None:
        """Store a capture record. ``name`` is the id of the capture. Raises the same errors as ``put``."""
        await self._write(partial(_record_path, name), data)

    async def put_in_area(self, area: BlobArea, data: bytes) -> str:
        """Store data of a result (not of a page) and return its hash. Raises the same errors as ``put``."""
        return await self._write(partial(_area_path, area), data, unless_stored=True)

    async def get_from_area(self, area: BlobArea, sha256: str) -> bytes:
        """Return data stored with ``put_in_area``. Raises the same errors as ``get``."""
        return await self._read(_area_path(area, sha256), sha256)

    async def remove_from_area(self, area: BlobArea, sha256: str) -> None:
        """Remove data stored with ``put_in_area``. Call this when no result refers to it any more."""
        await self._delete(_area_path(area, sha256))

    async def records(self, *, exclude: Container[str] = ()) -> AsyncIterator[tuple[str, bytes]]:
        """Iterate over the name and bytes of all records except those in ``exclude``. Skip damaged records.

        Raises:
            BlobStoreFailed: the store cannot be listed or read.
        """
        for path in await self._list_paths(_RECORDS):
            _, name, sha256 = path.split("/", 2)
            if name in exclude:
                continue
            try:
                yield name, await self._read(path, sha256)
            except (BlobMissing, BlobCorrupt) as damage:
                _log.warning("capture record unreadable", record=name, error=damage.detail)

    async def hashes(self, *, older_than: timedelta = timedelta(0)) -> set[str]:
        """Return the hashes of all bodies older than ``older_than`` without reading them. Raises BlobStoreFailed."""
        return {path.rpartition("/")[2] for path in await self._list_paths("sha256", older_than=older_than)}

    async def remove(self, sha256: str) -> None:
        """Remove a body. Call this when nothing refers to it any more."""
        await self._delete(_blob_path(sha256))

    async def remove_record(self, name: str) -> None:
        """Remove the record of a capture. Raises BlobStoreFailed."""
        for path in await self._list_paths(f"{_RECORDS}/{name}"):
            await self._delete(path)

    async def remove_drafts(self) -> int:
        """Remove temporary files that a crash left behind. Return their number. Raises BlobStoreFailed."""
        stale = await self._list_paths(_DRAFTS, older_than=timedelta(hours=1))
        for path in stale:
            await self._delete(path)
        return len(stale)

    async def _write(self, place: Callable[[str], str], data: bytes, *, unless_stored: bool = False) -> str:
        """Write data at the path that ``place`` returns for its hash, and return the hash.

        ``unless_stored``: do nothing if the path has data of the same size.
        """
        if self._folder is not None:
            return await asyncio.to_thread(self._write_file, self._folder, place, data, unless_stored=unless_stored)
        sha256 = await _digest(data)
        with self._write_errors(sha256):
            if not unless_stored or not await self._has_size(place(sha256), len(data)):
                await self._write_confirmed(place(sha256), data)
        return sha256

    @contextmanager
    def _write_errors(self, sha256: str) -> Iterator[None]:
        try:
            yield
        except _STORE_FAULTS as fault:
            if _FULL_TEXT.search(str(fault)) or getattr(fault, "errno", None) in _FULL:
                where = self._folder or "the blob store"
                detail = f"no space left in {where}; free some, or set ASSAY_DATA_DIR or ASSAY_BLOBS to another place"
                raise BlobStoreFull(sha256, detail) from fault
            raise BlobStoreFailed(sha256, _reason(fault)) from fault

    def _put_files(self, folder: Path, bodies: Bodies, record: RecordOf, *, synced: bool) -> dict[str, Blob]:
        blobs = {}
        for name, (data, media_type) in bodies.items():
            sha256 = self._write_file(folder, _blob_path, data, synced=synced)
            blobs[name] = Blob(sha256=sha256, size=len(data), media_type=media_type)
        capture_id, data = record(blobs)
        self._write_file(folder, partial(_record_path, capture_id), data, synced=synced)
        return blobs

    def _write_file(
        self,
        folder: Path,
        place: Callable[[str], str],
        data: bytes,
        *,
        unless_stored: bool = False,
        synced: bool = True,
    ) -> str:
        """Hash data and write it atomically: temporary file, sync, rename, sync of the folders. Blocks.

        All steps run in one thread, because switching threads costs more than writing a small body. They do not use
        obstore, which writes a temporary file of its own and needs further threads.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        with self._write_errors(sha256):
            target = _file_path(folder, place(sha256))
            if unless_stored and _is_file_of(target, len(data)):
                return sha256
            if self._read_only_reason is not None:
                raise BlobStoreFailed(sha256, self._read_only_reason)
            parent, draft = target.parent, folder / _DRAFTS / draft_name()
            is_durable = synced and parent in self._durable_folders and parent.is_dir()
            try:
                write_new_file(draft, data)
                if synced:
                    self._sync_or_fail(self._sync, draft)
                try:
                    draft.replace(target)
                except FileNotFoundError:
                    parent.mkdir(parents=True, exist_ok=True)
                    draft.replace(target)
            except BaseException:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)
                raise
            if synced:
                self._sync_or_fail(sync_folders, parent, parent if is_durable else folder)
                self._durable_folders.add(parent)
        return sha256

    def _sync_or_fail(self, sync: Callable[..., None], *paths: Path) -> None:
        try:
            sync(*paths)
        except OSError as fault:
            # After a failed fsync, the kernel may have dropped the dirty pages. A later success proves nothing.
            if fault.errno not in _FULL:
                self._read_only_reason = f"the disk failed ({fault}); the store is read-only until the process restarts"
                _log.critical("blob store read only", error=str(fault))
            raise

    async def _write_confirmed(self, path: str, data: bytes) -> None:
        """Write in one request, which is atomic, and verify what the store has afterwards."""
        for _try in range(_WRITE_ATTEMPTS):
            response = await obstore.put_async(self._store, path, data, use_multipart=False)
            head = await obstore.head_async(self._store, path)
            if head["size"] == len(data) and head["e_tag"] == response["e_tag"]:
                return
            # A different ETag can mean that another writer stored the same body: compare the bytes.
            stored = await obstore.get_async(self._store, path)
            if bytes(await stored.bytes_async()) == data:
                return
        raise ValueError(f"wrote {len(data)} bytes, but the store has other content ({head['size']} bytes)")

    async def _read(self, path: str, sha256: str) -> bytes:
        try:
            if self._folder is not None:
                data, found = await asyncio.to_thread(_read_file, _file_path(self._folder, path))
            else:
                response = await obstore.get_async(self._store, path)
                data = bytes(await response.bytes_async())
                found = await _digest(data)
        except FileNotFoundError as absent:
            raise BlobMissing(sha256, "not stored") from absent
        except _STORE_FAULTS as fault:
            raise BlobStoreFailed(sha256, _reason(fault)) from fault
        if found != sha256:
            await self._quarantine(path, sha256)
            raise BlobCorrupt(sha256, "the stored bytes have changed")
        return data

    async def _quarantine(self, path: str, sha256: str) -> None:
        _log.error("blob damaged", sha256=sha256)
        try:
            await obstore.rename_async(self._store, path, f"quarantine/{sha256}")
        except _STORE_FAULTS as fault:
            _log.error("damaged blob not moved", sha256=sha256, error=_reason(fault))

    async def _has_size(self, path: str, size: int) -> bool:
        """Return whether an object of this size exists. False on errors, so that it is written again."""
        try:
            head = await obstore.head_async(self._store, path)
        except _STORE_FAULTS:
            return False
        return head["size"] == size

    async def _list_paths(self, folder: str, *, older_than: timedelta = timedelta(0)) -> list[str]:
        paths: list[str] = []
        try:
            async for batch in obstore.list(self._store, folder):
                for entry in batch:
                    age = datetime.now(UTC) - entry["last_modified"]
                    if age >= older_than:
                        paths.append(entry["path"])
        except _STORE_FAULTS as fault:
            raise BlobStoreFailed(folder, _reason(fault)) from fault
        return sorted(paths)

    async def _delete(self, path: str) -> None:
        try:
            await obstore.delete_async(self._store, path)
        except _STORE_FAULTS as fault:
            if not isinstance(fault, FileNotFoundError):
                _log.warning("blob not deleted", path=path, error=_reason(fault))


def _reason(fault: Exception) -> str:
    """Return the error of the S3 server, or the message without the debug representation that obstore appends."""
    found = _S3_ERROR.search(str(fault))
    if found is not None:
        return f"the S3 server returned {': '.join(filter(None, found.groups()))}"
    return str(fault).partition(_OBSTORE_DEBUG)[0]


def _s3_store(url: str, settings: dict[str, Any]) -> S3Store:
    is_plain_http = str(settings.get("endpoint", "")).startswith("http://")
    # The server rejects a body that does not match the checksum.
    settings.setdefault("checksum_algorithm", "SHA256")
    client = {"allow_http": is_plain_http, "timeout": timedelta(seconds=_S3_TIMEOUT_S)}
    return S3Store.from_url(url, client_options=client, retry_config=_S3_RETRY, **settings)  # type: ignore[arg-type]


async def _digest(data: bytes) -> str:
    """Return the SHA-256 (hex) of ``data``. Large data is hashed in a thread."""
    if len(data) <= _HASH_INLINE_BYTES:
        return hashlib.sha256(data).hexdigest()
    return await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())


def _read_file(file: Path) -> tuple[bytes, str]:
    """Return the content of a file and its SHA-256 (hex)."""
    data = file.read_bytes()
    return data, hashlib.sha256(data).hexdigest()


def _is_file_of(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _file_path(folder: Path, path: str) -> Path:
    """Return the file of a path in the store. Hashes can come from untrusted files: ``path`` must not leave the folder.

    Raises:
        ValueError: a part of the path is empty or refers to a parent folder.
    """
    if not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise ValueError(f"invalid path in the blob store: {path!r}")
    return folder / path


def _area_path(area: BlobArea, sha256: str) -> str:
    return f"{area.value}/{sha256[:2]}/{sha256}"


def _record_path(name: str, sha256: str) -> str:
    return f"{_RECORDS}/{name}/{sha256}"


def _blob_path(sha256: str) -> str:
    return f"sha256/{sha256[:2]}/{sha256}"
