"""Rebuilding a torn, lost or stale index from stored bodies and records."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from app.maintenance.reindex import rebuild
from app.storage.captures import PostgresCaptureIndex
from app.storage.database import Database
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, Observation
from cache.capture_index import FolderIndex
from cache.pages import PageCache

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
URL = "https://towns.example/benches"


class StaticCapturer:
    """Capturer that returns a page for every URL."""

    async def capture(self, url: str) -> Observation:
        return Observation(
            url=url,
            outcome=CaptureOutcome.OK,
            captured_at=NOON,
            duration_s=0.0,
            backend="test",
            final_url=f"{url}/",
            text=f"Benches of {url}",
            screenshots=(b"a picture",),
        )

    async def aclose(self) -> None:
        """Do nothing: no resources are open."""


class Store:
    """Folder with bodies and an index of files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs = BlobStore.open((folder / "blobs").as_uri())

    async def index(self) -> FolderIndex:
        return await FolderIndex.open(self.folder / "captures")

    async def captured(self, *urls: str) -> list[Capture]:
        pages = PageCache(StaticCapturer(), self.blobs, await self.index())
        return [await pages.get(url) for url in urls]

    def body(self, capture: Capture, role: str = "text") -> Path:
        sha256 = capture.blobs[role].sha256
        return self.folder / "blobs" / "sha256" / sha256[:2] / sha256


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.mark.parametrize("damage", ["deleted", "torn", "stale"])
async def test_damaged_file_index_is_rebuilt(store: Store, damage: str) -> None:
    captures = await store.captured(URL, f"{URL}/2")
    file = store.folder / "captures" / f"{captures[0].id}.json"
    if damage == "deleted":
        shutil.rmtree(store.folder / "captures")
    elif damage == "torn":
        file.write_bytes(file.read_bytes()[:50])
    elif damage == "stale":
        file.write_bytes(file.read_bytes().replace(b'"key": "https', b'"key": "hppts'))
    found = await rebuild(store.blobs, await store.index(), check=True)
    assert (found.captures, found.is_consistent, found.unnamed) == (2, True, 0)
    assert found.rows == {"deleted": 2, "torn": 1, "stale": 1}[damage]
    index = await store.index()
    assert [await index.find(capture.key) for capture in captures] == captures
    assert (await rebuild(store.blobs, index, check=True)).rows == 0


@pytest.mark.postgres
async def test_missing_and_stale_database_rows_are_rebuilt(store: Store, database: Database, database_url: str) -> None:
    index = PostgresCaptureIndex(database)
    pages = PageCache(StaticCapturer(), store.blobs, index)
    captures = [await pages.get(url) for url in (URL, f"{URL}/2", f"{URL}/3")]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM captures WHERE id = %s", [captures[0].id])
        connection.execute("UPDATE captures SET key_sha256 = 'x', outcome = 'blocked' WHERE id = %s", [captures[1].id])
    assert await index.find(captures[0].key) is None
    found = await rebuild(store.blobs, index, check=True)
    assert (found.captures, found.rows, found.is_consistent) == (3, 2, True)
    assert [await index.find(capture.key) for capture in captures] == captures
    assert {capture.id async for capture in index.captures()} == {capture.id for capture in captures}
    assert (await rebuild(store.blobs, index, check=False)).rows == 0
