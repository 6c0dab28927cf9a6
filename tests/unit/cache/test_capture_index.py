"""Index of captures: lookup by key and id, serialization."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from cache.capture import Blob, Capture, CaptureOutcome, PageKind
from cache.capture_index import (
    CaptureIndex,
    FolderIndex,
    MemoryIndex,
    capture_from_json,
    capture_to_json,
)
from cache.errors import IndexFailed
from cache.urls import canonical_key
from tests.unit.cache.scripted import NOON


def _capture(name: str, outcome: CaptureOutcome = CaptureOutcome.OK, minute: int = 0) -> Capture:
    return Capture(
        id=name,
        url="http://a.com/é?q=1",
        key="https://a.com/é?q=1",
        outcome=outcome,
        captured_at=NOON + timedelta(minutes=minute),
        duration_s=1.25,
        backend="test",
        final_url="https://a.com/é",
        http_status=200,
        kind=PageKind.PDF,
        title="Ünïcode 页",
        chain=("http://a.com/", "https://a.com/"),
        headers={"content-type": "application/pdf"},
        versions={"browser": "156"},
        blobs={"text": Blob(sha256="0" * 64, size=3, media_type="text/plain")},
    )


@pytest.fixture(params=["memory", "folder"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> CaptureIndex:
    return MemoryIndex() if request.param == "memory" else await FolderIndex.open(tmp_path / "index")


async def test_newest_evidence_is_preferred_to_a_newer_failure(index: CaptureIndex) -> None:
    await index.record(_capture("failed first", CaptureOutcome.TIMEOUT, minute=0))
    await index.record(_capture("good", minute=1))
    await index.record(_capture("better", minute=3))
    await index.record(_capture("late but older", minute=2))
    await index.record(_capture("failed last", CaptureOutcome.BLOCKED, minute=4))
    found = await index.find("https://a.com/é?q=1")
    assert found is not None
    assert found.id == "better"


async def test_capture_is_also_found_by_its_final_url(index: CaptureIndex) -> None:
    ended_at = canonical_key("https://a.com/é")
    await index.record(_capture("good", minute=1))
    await index.record(_capture("blocked", CaptureOutcome.BLOCKED, minute=2))
    found = await index.find(ended_at)
    assert found is not None
    assert (found.id, found.key == ended_at) == ("good", False)
    assert await index.newest(ended_at) is None


@pytest.mark.parametrize("damage", [{"record_version": 99}, {"outcome": "splendid"}])
def test_invalid_record_is_rejected(damage: dict[str, object]) -> None:
    with pytest.raises(IndexFailed):
        capture_from_json({**capture_to_json(_capture("one")), **damage})


async def test_folder_index_is_rebuilt_from_its_files_without_a_truncated_one(tmp_path: Path) -> None:
    first = await FolderIndex.open(tmp_path)
    await first.record(_capture("one"))
    await first.record(_capture("two", minute=1))
    whole = (tmp_path / "two.json").read_text()
    (tmp_path / "two.json").write_text(whole[: len(whole) // 2])
    again = await FolderIndex.open(tmp_path)
    found = await again.find("https://a.com/é?q=1")
    assert found is not None
    assert found.id == "one"
