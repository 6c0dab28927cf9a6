"""Changed pages cause a new judgement; a rebuilt index does not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.engine.page_freshness import CurrentPages
from app.engine.public_cache import PublicCache
from app.engine.runtime import open_runtime
from cache.capture import CaptureOutcome, Observation
from cache.urls import canonical_key
from tests.integration.app.judged_folder import AnswerFolder


@pytest.fixture
def folder(tmp_path: Path) -> AnswerFolder:
    created = AnswerFolder(tmp_path)
    created.cache_page("https://towns.example/vellmar", "The old bridge of Vellmar was built in 1764.")
    created.cache_page("https://towns.example/arches", "This page is about the town hall and its clock.")
    return created


async def test_recaptured_page_with_new_text_is_judged_again(folder: AnswerFolder) -> None:
    settings = folder.settings()
    await folder.evaluate()
    url = "https://towns.example/arches"
    folder.public = PublicCache(folder.root / "no such cache")

    async def planned_after(text: str) -> str:
        async with open_runtime(settings) as runtime:
            known = await runtime.index.find(canonical_key(url))
            assert known is not None
            seen = Observation(
                url=url,
                outcome=CaptureOutcome.OK,
                captured_at=datetime.now(UTC),
                duration_s=0.0,
                backend="test",
                text=text,
            )
            await runtime.pages.add(url, seen)
        pages = await CurrentPages.open(settings.data_dir / "captures", None)
        (planned,) = await folder.plan(settings, pages=pages)
        return planned.reason

    assert await planned_after("This page is about the town hall and its clock.") == "its last result is still valid"
    assert await planned_after("The old bridge of Vellmar has nine arches.") == f"a page changed: {url}"
