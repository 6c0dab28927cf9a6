"""Repaired replies of a model over HTTP: the bundle contains both replies and can be replayed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.features.bundles.replaying import first_difference, replay
from app.features.bundles.rerunning import rerun
from app.features.bundles.verifying import verify
from judges.llm.provider_adapter import Access
from judges.llm.providers import make_client
from tests.fakes.bundled import LAMPS, InMemoryJudging, read_member
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


def calls_in(bundle: Path, world: InMemoryJudging) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_member(bundle, f"calls/{world.results[0].id}.jsonl").splitlines()]


async def test_bundle_contains_both_exchanges_of_a_repaired_call(world: InMemoryJudging, model: StandInLLM):
    result = await world.judge(judge())
    bundle, _ = await world.bundle()
    calls = calls_in(bundle, world)
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
    assert b"could not be used: {{problem}}" in read_member(bundle, "prompts/repair@1.md")


async def test_bundle_is_sound_and_replays_with_and_without_scripts(world: InMemoryJudging):
    result = await world.judge(judge())
    assert result["status"] == "incomplete"
    bundle, _ = await world.bundle()
    assert verify(bundle).valid
    found = replay(bundle)
    assert first_difference(found) is None
    assert first_difference(await rerun(bundle, found, world.settings)) is None


async def test_replies_are_shortened_without_content(world: InMemoryJudging):
    await world.judge(judge())
    bundle, _ = await world.bundle(content=False)
    replies = [each["reply"] for call in calls_in(bundle, world) for each in call["unusable"]]
    assert max(map(len, replies)) <= 300 < len(WORDS)
    assert verify(bundle).valid
