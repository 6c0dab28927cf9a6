"""Repaired replies of a model over HTTP: the bundle contains both replies and can be replayed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from judges.llm.provider_adapter import Access
from judges.llm.providers import make_client
from tests.fakes.bundled import LAMPS, InMemoryJudging, call_log, check_replay
from tests.standin.call import Call
from tests.standin.faults import MALFORMED, Fault
from tests.standin.llm import StandInLLM

WORDS = "The claim is true, I think. " * 20
LAMP, ALWAYS = "The lamp is green", "The shop is open"


@pytest.fixture
async def world(tmp_path: Path, model: StandInLLM) -> AsyncIterator[InMemoryJudging]:
    """In each vote, one claim gets an unusable first reply, and another one only unusable replies."""
    llm, _ = make_client(
        "openai/gpt-6-luna", semaphore=asyncio.Semaphore(4), access=Access(openai_base_url=model.base_url)
    )
    asked: dict[str, int] = {}

    def fault_for(call: Call) -> Fault | None:
        asked[call.claim] = asked.get(call.claim, 0) + 1
        if call.claim == LAMP and "could not be used" not in call.text:
            return Fault(content=WORDS)
        return MALFORMED if call.claim == ALWAYS else None

    model.fault_for = fault_for
    world = InMemoryJudging(tmp_path, llm)
    yield world
    await llm.aclose()


def judge() -> str:
    return "\n".join(
        [
            "from judges.registry import judge",
            "@judge(task='museum', description='Of lamps.')",
            "async def museum(ctx):",
            f"    ctx.verify('lamp', {LAMP!r}, sources=[{LAMPS!r}])",
            f"    ctx.verify('open', {ALWAYS!r}, sources=[{LAMPS!r}])",
        ]
    )


async def test_bundle_contains_both_exchanges_of_a_repaired_call(world: InMemoryJudging, model: StandInLLM):
    result = await world.judge(judge())
    bundle, _ = await world.bundle()
    calls = call_log(bundle).calls
    exchanges = sum(1 + len(call.get("unusable", ())) for call in calls if "reply" in call)
    exchanges += sum(len(call["unusable"]) for call in calls if "fault" in call)
    assert exchanges == len(model.calls) == result["usage"]["calls"]
    repaired = [call for call in calls if "reply" in call]
    assert repaired
    for call in repaired:
        [first] = call["unusable"]
        assert (first["kind"], first["reply"]) == ("malformed", WORDS)
        assert "could not be used" in first["then"][0]["content"]
        assert json.loads(call["reply"])["result"] is True
    lost = [call for call in calls if "fault" in call]
    assert lost
    assert {tuple(each["reply"] for each in call["unusable"]) for call in lost} == {(MALFORMED.content,) * 2}
    assert "could not be used: {{problem}}" in call_log(bundle).prompts["repair@1"]


async def test_bundle_is_valid_and_replays(world: InMemoryJudging):
    result = await world.judge(judge())
    assert result["status"] == "incomplete"
    bundle, _ = await world.bundle()
    await check_replay(bundle, world)
