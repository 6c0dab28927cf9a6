"""Replay and rerun of bundles of public judge scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.features.bundles.verification import verify
from tests.compat.fixed_pages import FixedPages
from tests.compat.script_cases import CASES, PAGES
from tests.compat.test_scripts import Hosted
from tests.fakes.bundled import InMemoryJudging, check_replay

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
    # One script builds its result without a tree, so its score can only be checked by running it.
    assert [each.task_id for each in verify(bundle).results if each.unchecked] == ["pages"]
    await check_replay(bundle, world)


async def test_script_that_names_neither_agent_nor_answer_is_replayed_and_rerun(tmp_path: Path):
    case = CASES[0]
    source = case.path.read_text("utf-8")
    unnamed = source.replace("agent_name=agent_name,", "").replace("answer_name=answer_name,", "")
    assert unnamed != source
    world = InMemoryJudging(
        tmp_path, Hosted(case), capturer=FixedPages({url: f"What stands on {url}" for url in PAGES})
    )
    judged = await world.judge(unnamed, task=case.name, answer=case.answer)
    assert (judged["agent_name"], judged["answer_name"]) == ("unknown_agent", "unknown_answer")
    bundle, _ = await world.bundle()
    await check_replay(bundle, world)
