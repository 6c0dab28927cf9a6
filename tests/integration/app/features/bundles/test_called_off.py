"""A question that was called off, because another page had supported its claim, is in the bundle as what it was."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from app.features.bundles.replaying import first_difference, replay
from app.features.bundles.rerunning import rerun
from app.features.bundles.verifying import verify
from judges.errors import ReplyNotCached
from judges.llm.client import LLMRequest
from tests.fakes.bundled import LAMPS, MUSEUM, JudgedWorld, member
from tests.fakes.llm import RuleLLM

JUDGE = f"""
from judges.registry import judge

@judge(task="museum", description="Of lamps.")
async def museum(ctx):
    ctx.verify("lamp", "The lamp is green", sources=["{MUSEUM}", "{LAMPS}"])
"""


async def test_what_was_asked_and_called_off_is_in_it_and_is_not_missed(tmp_path: Path):
    never = asyncio.Event()

    async def pause(request: LLMRequest) -> None:
        if request.cache_only:
            raise ReplyNotCached  # as a client does that keeps replies: nobody is asked
        await (never.wait() if "museum opens" in request.parts.get("page", "") else asyncio.sleep(0.05))

    llm = RuleLLM(pause=pause)
    world = JudgedWorld(tmp_path, llm)
    result = await world.judge(JUDGE)
    assert result["status"] == "complete"
    assert llm.cancelled
    bundle, _ = await world.bundle()
    assert verify(bundle).sound
    calls = [json.loads(line) for line in member(bundle, f"calls/{world.judged[0].id}.jsonl").splitlines()]
    assert len(calls) == sum(not request.cache_only for request in llm.requests)
    off = [call for call in calls if call.get("called_off")]
    assert len(off) == len(llm.cancelled)
    assert all("reply" not in call and "fault" not in call and call["messages"] for call in off)
    found = replay(bundle)
    assert first_difference(await rerun(bundle, found, world.settings, patience_s=0.2)) is None
