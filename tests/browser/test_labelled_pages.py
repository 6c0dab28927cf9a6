"""Classification of the labelled pages, as rendered by a real browser."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cache.backends.patchright import BrowserCapturer
from cache.capture import Capturer
from cache.egress.proxy import EgressProxy
from tests.fakes.sandbox import is_sandbox_missing
from tests.labelled.captured import capture_labelled_pages
from tests.labelled.labels import compare_with_labels

pytestmark = pytest.mark.browser


async def test_labelled_pages_are_classified_with_high_precision_and_recall(browser_program: Path) -> None:
    def make(proxy: EgressProxy) -> Capturer:
        return BrowserCapturer(
            browser_program,
            proxy,
            semaphore=asyncio.Semaphore(6),
            deadline_s=180,
            allow_unsandboxed=is_sandbox_missing(),
        )

    seen = await capture_labelled_pages(make, every=5)  # `tests/unit/cache/test_labelled_pages.py` classifies all
    found = compare_with_labels({name: each.outcome for name, each in seen.items()})
    assert found.precision >= 0.98, found.false_alarms
    assert found.recall >= 0.90, found.missed
    assert "paywall" in seen["paywalled-story"].detail
