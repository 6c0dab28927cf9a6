"""Records of captures: kept whole, found by key, read back as they were."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from cache.capture import Blob, Capture, CaptureOutcome, PageKind
from cache.errors import IndexFailed
from cache.record import capture_from_json, capture_to_json
from cache.store import CaptureIndex, FolderIndex, MemoryIndex
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


async def test_a_record_is_found_by_key_and_by_id(index: CaptureIndex) -> None:
    await index.record(_capture("one"))
    assert await index.find("https://a.com/é?q=1") == _capture("one")
    assert await index.get("one") == _capture("one")
    assert await index.find("https://a.com/") is None
    assert await index.get("two") is None


async def test_the_newest_evidence_is_preferred_to_a_newer_failure(index: CaptureIndex) -> None:
    await index.record(_capture("failed first", CaptureOutcome.TIMEOUT, minute=0))
    await index.record(_capture("good", minute=1))
    await index.record(_capture("better", minute=3))
    await index.record(_capture("late but older", minute=2))
    await index.record(_capture("failed last", CaptureOutcome.BLOCKED, minute=4))
    found = await index.find("https://a.com/é?q=1")
    assert found is not None
    assert found.id == "better"


def test_a_record_survives_json() -> None:
    capture = _capture("one", CaptureOutcome.PARTIAL)
    assert capture_from_json(json.loads(json.dumps(capture_to_json(capture)))) == capture


@pytest.mark.parametrize(
    "damage", [{"record_version": 99}, {"outcome": "splendid"}, {"blobs": 1}, {"captured_at": None}]
)
def test_a_record_of_another_shape_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(IndexFailed):
        capture_from_json({**capture_to_json(_capture("one")), **damage})


async def test_a_folder_is_rebuilt_from_its_files_and_a_torn_one_is_left_out(tmp_path: Path) -> None:
    first = await FolderIndex.open(tmp_path)
    await first.record(_capture("one"))
    await first.record(_capture("two", minute=1))
    whole = (tmp_path / "two.json").read_text()
    (tmp_path / "two.json").write_text(whole[: len(whole) // 2])
    again = await FolderIndex.open(tmp_path)
    found = await again.find("https://a.com/é?q=1")
    assert found is not None
    assert found.id == "one"


async def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexFailed):
        await FolderIndex.open(tmp_path / "file" / "index")
