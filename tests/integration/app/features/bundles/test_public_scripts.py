"""Replay and rerun of bundles of public judge scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.features.bundles.replaying import first_difference, replay
from app.features.bundles.rerunning import rerun
from tests.compat.fixed_pages import FixedPages
from tests.compat.script_cases import CASES, PAGES
from tests.compat.test_scripts import Hosted
from tests.fakes.bundled import InMemoryJudging

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")


async def test_public_scripts_are_replayed_and_rerun(tmp_path: Path):
    world = InMemoryJudging(
        tmp_path, Hosted(CASES[0]), capturer=FixedPages({url: f"What stands on {url}" for url in PAGES})
    )
    for case in CASES:
        world.llm = Hosted(case)
        await world.judge(case.path.read_text("utf-8"), task=case.name, answer=case.answer)
    bundle, made = await world.bundle()
    assert made.absent == ()
    found = replay(bundle)
    assert not any(each.differences for each in found)
    # One script builds its result without a tree, so its score can only be checked by running it.
    assert [each.task_id for each in found if each.unchecked] == ["pages"]
    again = await rerun(bundle, found, world.settings)
    assert first_difference(again) is None
