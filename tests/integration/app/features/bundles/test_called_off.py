"""Requests that were cancelled because another page supported the claim are marked as such in the bundle."""

from __future__ import annotations

import asyncio
from pathlib import Path

from judges.errors import ReplyNotCached
from judges.llm.client import LLMRequest
from tests.fakes.bundled import LAMPS, MUSEUM, InMemoryJudging, call_log, check_replay
from tests.fakes.llm import RuleLLM

JUDGE = f"""
from judges.registry import judge

@judge(task="museum", description="Of lamps.")
async def museum(ctx):
    ctx.verify("lamp", "The lamp is green", sources=["{MUSEUM}", "{LAMPS}"])
"""


async def test_cancelled_requests_are_recorded_and_not_needed_for_replay(tmp_path: Path):
    never, both = asyncio.Event(), asyncio.Event()

    async def pause(request: LLMRequest) -> None:
        if request.cache_only:
            raise ReplyNotCached  # like a client with a reply cache: no request is sent
        if "museum opens" in request.parts.get("page", ""):
            both.set()
            await never.wait()
        await both.wait()

    llm = RuleLLM(pause=pause, quotes=lambda request: ["Every lamp in this catalogue is green."])
    world = InMemoryJudging(tmp_path, llm)
    result = await world.judge(JUDGE)
    assert result["status"] == "complete"
    assert llm.cancelled
    bundle, _ = await world.bundle()
    calls = call_log(bundle).calls
    assert len(calls) == sum(not request.cache_only for request in llm.requests)
    cancelled = [call for call in calls if call.get("called_off")]
    assert len(cancelled) == len(llm.cancelled)
    assert all("reply" not in call and "fault" not in call and call["messages"] for call in cancelled)
    await check_replay(bundle, world)
