from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.storage.captures import PostgresCaptureIndex
from app.storage.database import Database
from cache.capture import Blob, Capture, CaptureOutcome

pytestmark = pytest.mark.postgres

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEY = "https://a.com/é?q=1"


def capture(name: str, outcome: CaptureOutcome = CaptureOutcome.OK, minute: int = 0, **fields: Any) -> Capture:
    values: dict[str, Any] = {
        "id": name,
        "url": "http://a.com/é?q=1",
        "key": KEY,
        "outcome": outcome,
        "captured_at": NOON + timedelta(minutes=minute),
        "duration_s": 1.25,
        "backend": "test",
        "blobs": {"text": Blob(sha256="0" * 64, size=3, media_type="text/plain")},
    }
    return Capture(**(values | fields))


@pytest.fixture
def index(database: Database) -> PostgresCaptureIndex:
    return PostgresCaptureIndex(database)


async def test_newest_evidence_is_preferred_to_newer_failure(index: PostgresCaptureIndex):
    await index.record(capture("failed first", CaptureOutcome.TIMEOUT, minute=0))
    await index.record(capture("good", minute=1))
    await index.record(capture("better", minute=3))
    await index.record(capture("late but older", CaptureOutcome.PARTIAL, minute=2))
    await index.record(capture("failed last", CaptureOutcome.BLOCKED, minute=4))
    found = await index.find(KEY)
    assert found is not None and found.id == "better"


async def test_evidence_is_found_by_final_url_unless_it_has_its_own(index: PostgresCaptureIndex):
    ended_at = "https://b.com/long"
    await index.record(capture("good", final_url=ended_at, minute=1))
    await index.record(capture("wall", CaptureOutcome.LOGIN_WALL, final_url="https://b.com/login", minute=2))
    found = await index.find(ended_at)
    assert found is not None and (found.id, found.key) == ("good", KEY)
    assert await index.find("https://b.com/login") is None
    assert await index.newest(ended_at) is None
    await index.record(capture("failed", CaptureOutcome.TIMEOUT, key=ended_at, url=ended_at, minute=3))
    found, newest = await index.find(ended_at), await index.newest(ended_at)
    assert found is not None and newest is not None and (found.id, newest.id) == ("good", "failed")
    await index.record(capture("own", key=ended_at, url=ended_at, minute=0))
    found = await index.find(ended_at)
    assert found is not None and found.id == "own"
