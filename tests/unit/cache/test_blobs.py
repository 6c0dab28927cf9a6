"""Storage of bodies by hash."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
from obstore.store import LocalStore

from cache.atomic_files import draft_name, sync_file
from cache.blobs import BlobStore
from cache.errors import BlobCorrupt, BlobMissing, BlobStoreFailed, BlobStoreFull


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    return BlobStore.open("memory://" if request.param == "memory" else (tmp_path / "a b").as_uri())


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 1_000_000])
async def test_stored_body_is_read_back(store: BlobStore, data: bytes) -> None:
    blob = await store.put(data, "text/plain")
    assert (blob.size, blob.media_type, len(blob.sha256)) == (len(data), "text/plain", 64)
    assert await store.get(blob.sha256) == data


def _file(folder: Path, sha256: str) -> Path:
    return folder / "sha256" / sha256[:2] / sha256


@pytest.mark.parametrize("damaged", [b"The evidence", b"the"])
async def test_damaged_body_is_detected_on_read_and_quarantined(tmp_path: Path, damaged: bytes) -> None:
    store = BlobStore.open(tmp_path.as_uri())
    blob = await store.put(b"the evidence", "text/plain")
    _file(tmp_path, blob.sha256).write_bytes(damaged)
    with pytest.raises(BlobCorrupt):
        await store.get(blob.sha256)
    assert (tmp_path / "quarantine" / blob.sha256).read_bytes() == damaged
    with pytest.raises(BlobMissing):
        await store.get(blob.sha256)


@pytest.mark.parametrize("sha256", ["../../outside", "/outside"])
async def test_hash_that_is_a_path_reads_and_moves_nothing_outside_the_store(tmp_path: Path, sha256: str) -> None:
    store, outside = BlobStore.open((tmp_path / "blobs").as_uri()), tmp_path / "outside"
    outside.write_bytes(b"not a body")
    with pytest.raises(BlobStoreFailed):
        await store.get(sha256)
    assert outside.read_bytes() == b"not a body"


class Disk:
    """Disk whose syncs can fail, and that records its files at each sync."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fails_with: int | None = None
        self.at_sync: list[list[str]] = []

    def store(self) -> BlobStore:
        return BlobStore(LocalStore(self.folder, mkdir=True), folder=self.folder, sync=self.sync)

    def sync(self, path: Path) -> None:
        self.at_sync.append(self.files())
        if self.fails_with is not None:
            raise OSError(self.fails_with, os.strerror(self.fails_with))
        sync_file(path)

    def files(self) -> list[str]:
        found = (path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file())
        return sorted(path.parts[0] for path in found)


async def test_body_is_synced_to_disk_before_it_gets_its_name(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    await disk.store().put(b"the evidence", "text/plain")
    assert disk.at_sync == [["drafts"]]
    assert disk.files() == ["sha256"]


async def test_import_is_stored_without_waiting_for_the_disk_and_its_loss_is_noticed(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    store = disk.store()
    body = {"text": (b"the evidence", "text/plain")}
    blobs = await store.put_all(body, lambda blobs: ("page_1", blobs["text"].sha256.encode()), synced=False)
    assert disk.at_sync == []
    assert disk.files() == ["records", "sha256"]
    assert await store.get(blobs["text"].sha256) == b"the evidence"
    assert store.has_all(blobs.values())
    _file(tmp_path, blobs["text"].sha256).write_bytes(b"")
    assert not store.has_all(blobs.values())
    _file(tmp_path, blobs["text"].sha256).unlink()
    assert not store.has_all(blobs.values())


async def test_store_is_read_only_after_a_failed_sync(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    store = disk.store()
    before = await store.put(b"written before", "text/plain")
    disk.fails_with = errno.EIO
    with pytest.raises(BlobStoreFailed):
        await store.put(b"the evidence", "text/plain")
    disk.fails_with = None
    with pytest.raises(BlobStoreFailed, match="the disk failed"):
        await store.put(b"the evidence", "text/plain")
    assert disk.files() == ["sha256"]
    assert await store.get(before.sha256) == b"written before"


async def test_full_disk_is_reported_and_works_again_once_it_has_space(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    store = disk.store()
    disk.fails_with = errno.ENOSPC
    with pytest.raises(BlobStoreFull):
        await store.put(b"the evidence", "text/plain")
    assert disk.files() == []
    disk.fails_with = None
    blob = await store.put(b"the evidence", "text/plain")
    assert await store.get(blob.sha256) == b"the evidence"


async def test_partially_written_draft_is_never_read_and_is_removed(tmp_path: Path) -> None:
    store = BlobStore.open(tmp_path.as_uri())
    blob = await store.put(b"the evidence", "text/plain")
    left, fresh = (tmp_path / "drafts" / draft_name() for _ in range(2))
    left.write_bytes(b"half of")
    fresh.write_bytes(b"being written")
    os.utime(left, (time.time() - 7200,) * 2)
    assert await store.hashes() == {blob.sha256}
    assert await store.remove_drafts() == 1
    assert [path.name for path in (tmp_path / "drafts").iterdir()] == [fresh.name]
