"""Hidden HTML, popups and cloaking, rendered by a real browser."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cache.backends.patchright import BrowserCapturer
from cache.capture import Capturer
from cache.egress.proxy import EgressProxy
from tests.browser.conftest import browser_program, patient_capturer  # noqa: F401 - fixtures
from tests.fakes.sandbox import is_sandbox_missing
from tests.injection.trial import attack_problems, benign_problems, find_problems, materials
from tests.injection.world import open_world

pytestmark = pytest.mark.browser

TABS = 6
MAX_CHANGED_TWINS = 0.02


async def test_hidden_text_reaches_no_judge_and_visible_evidence_still_counts(browser_program: Path):  # noqa: F811
    def by_browser(proxy: EgressProxy) -> Capturer:
        slots = asyncio.Semaphore(TABS)
        return BrowserCapturer(
            browser_program, proxy, semaphore=slots, deadline_s=180, allow_unsandboxed=is_sandbox_missing()
        )

    async with open_world(by_browser) as world:
        attacks = materials(world.site, "FJ", benign=False, in_browser=True)
        twins = materials(world.site, "FJ", benign=True, in_browser=True)
        assert len(attacks) == len(twins) == 20
        assert await find_problems(world, attacks, attack_problems) == []
        wrong = await find_problems(world, twins, benign_problems)
    assert len(wrong) <= MAX_CHANGED_TWINS * len(twins), wrong
