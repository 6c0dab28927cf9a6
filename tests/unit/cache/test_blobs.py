"""Bodies by hash: what comes out is what went in, or an error that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from cache.blobs import BlobStore
from cache.errors import BlobCorrupt, BlobMissing, BlobStoreFailed


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    return BlobStore.open("memory://" if request.param == "memory" else (tmp_path / "a b").as_uri())


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 1_000_000])
async def test_what_was_put_is_got(store: BlobStore, data: bytes) -> None:
    blob = await store.put(data, "text/plain")
    assert (blob.size, blob.media_type, len(blob.sha256)) == (len(data), "text/plain", 64)
    assert await store.get(blob.sha256) == data


async def test_the_same_body_has_one_place(store: BlobStore) -> None:
    assert await store.put(b"same", "a/b") == await store.put(b"same", "a/b")


async def test_a_body_never_put_is_missing(store: BlobStore) -> None:
    with pytest.raises(BlobMissing):
        await store.get("0" * 64)


def _file(folder: Path, sha256: str) -> Path:
    return folder / "sha256" / sha256[:2] / sha256


@pytest.mark.parametrize("damage", ["flip", "truncate", "zero", "swap"])
async def test_a_damaged_body_is_found_on_read_and_never_served(tmp_path: Path, damage: str) -> None:
    store = BlobStore.open(tmp_path.as_uri())
    blob, other = await store.put(b"the evidence", "text/plain"), await store.put(b"another", "text/plain")
    data = b"the evidence"
    damaged = {
        "flip": b"The evidence",
        "truncate": data[:-1],
        "zero": bytes(len(data)),
        "swap": _file(tmp_path, other.sha256).read_bytes(),
    }[damage]
    _file(tmp_path, blob.sha256).write_bytes(damaged)
    with pytest.raises(BlobCorrupt):
        await store.get(blob.sha256)
    assert (tmp_path / "quarantine" / blob.sha256).read_bytes() == damaged
    with pytest.raises(BlobMissing):
        await store.get(blob.sha256)


async def test_putting_again_mends_a_damaged_body(tmp_path: Path) -> None:
    store = BlobStore.open(tmp_path.as_uri())
    blob = await store.put(b"the evidence", "text/plain")
    _file(tmp_path, blob.sha256).write_bytes(b"gone bad")
    await store.put(b"the evidence", "text/plain")
    assert await store.get(blob.sha256) == b"the evidence"


async def test_a_store_that_cannot_write_says_so(tmp_path: Path) -> None:
    store = BlobStore.open(tmp_path.as_uri())
    (tmp_path / "sha256").write_text("a file where the folder should be")
    with pytest.raises(BlobStoreFailed):
        await store.put(b"x", "text/plain")


@pytest.mark.parametrize("url", ["ftp://a/b", "blobs", "", "http://a"])
def test_an_unknown_kind_of_store_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="blob store"):
        BlobStore.open(url)
