"""An answer is judged again when a page that it was judged by has changed, and not when only its index was lost."""

from __future__ import annotations

import hashlib
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.engine.evaluation import AnswerEvaluation
from app.engine.page_freshness import CurrentPages
from app.engine.public_cache import PublicCache
from app.engine.runtime import open_runtime
from app.maintenance.reindex import rebuild
from cache.blobs import BlobStore
from cache.capture import CaptureOutcome, Observation
from cache.capture_index import FolderIndex
from cache.urls import canonical_key
from tests.integration.app.judged_folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.page("https://towns.example/vellmar", "The old bridge of Vellmar was built in 1764.")
    made.page("https://towns.example/arches", "This page is about the town hall and its clock.")
    return made


async def test_a_page_that_was_mended_in_the_public_cache_is_judged_as_it_is_now(folder: Folder) -> None:
    await folder.evaluate()
    folder.page("https://towns.example/arches", "The old bridge of Vellmar has nine arches.")

    (judged,) = await folder.evaluate()

    assert judged.planned.why == "a page changed: https://towns.example/arches"
    assert judged.outcome.result is not None
    assert judged.outcome.result["score"]["value"] == 1.0
    (again,) = await folder.evaluate()
    assert again.reused


async def test_a_page_captured_anew_with_other_words_is_judged_again(folder: Folder) -> None:
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
        (planned,) = folder.plan(settings, pages=pages)
        return planned.why

    assert await planned_after("This page is about the town hall and its clock.") == "its last result is still valid"
    assert await planned_after("The old bridge of Vellmar has nine arches.") == f"a page changed: {url}"


async def test_an_index_that_was_lost_and_made_again_leads_to_the_same_result(folder: Folder) -> None:
    def lasting(judged: AnswerEvaluation) -> str:
        """A result without what every run has of its own: its name, what it took, and how it came by each verdict."""

        def without(value: object) -> object:
            if isinstance(value, dict):
                return {name: without(each) for name, each in value.items() if name != "rejudged"}
            return [without(each) for each in value] if isinstance(value, list) else value

        assert judged.outcome.result is not None
        own = ("id", "timing", "usage", "calls")
        kept = {name: value for name, value in judged.outcome.result.items() if name not in own}
        tree = json.dumps(without(kept), sort_keys=True)
        return hashlib.sha256(tree.encode()).hexdigest()

    settings = folder.settings()
    (first,) = await folder.evaluate()
    captures = settings.data_dir / "captures"
    shutil.rmtree(captures)
    blobs = BlobStore.open((settings.data_dir / "blobs").absolute().as_uri())
    assert (await rebuild(blobs, await FolderIndex.open(captures), check=True)).sound
    (second,) = await folder.evaluate(overwrite=True)
    assert not second.reused
    assert lasting(second) == lasting(first)
