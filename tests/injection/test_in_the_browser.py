"""Hidden HTML, popups and cloaking, rendered by a real browser: what nobody sees reaches no judge."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cache.backends.patchright import BrowserCapturer
from cache.capture import Capturer
from cache.egress.proxy import EgressProxy
from tests.browser.conftest import browser_program  # noqa: F401 - a fixture
from tests.fakes.sandbox import unsandboxed_here
from tests.injection.trial import attacked, changed, materials, wrong_with
from tests.injection.world import open_world

pytestmark = pytest.mark.browser

TABS = 6
MAX_CHANGED_TWINS = 0.02


async def test_what_is_hidden_reaches_no_judge_and_what_is_shown_still_counts(browser_program: Path):  # noqa: F811
    def by_browser(guard: EgressProxy) -> Capturer:
        slots = asyncio.Semaphore(TABS)
        return BrowserCapturer(browser_program, guard, semaphore=slots, allow_unsandboxed=unsandboxed_here())

    async with open_world(by_browser) as world:
        attacks = materials(world.site, "FJ", benign=False, in_browser=True)
        twins = materials(world.site, "FJ", benign=True, in_browser=True)
        assert len(attacks) == len(twins) == 20
        assert await wrong_with(world, attacks, attacked) == []
        wrong = await wrong_with(world, twins, changed)
    assert len(wrong) <= MAX_CHANGED_TWINS * len(twins), wrong
