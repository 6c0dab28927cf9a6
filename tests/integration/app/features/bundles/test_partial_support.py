"""Claims judged for partial support by a model over HTTP: repair of wrong words, cache, child processes and bundles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from judges.llm.providers import Access, make_client
from tests.fakes.bundled import LAMPS, MUSEUM, InMemoryJudging, call_log, check_replay
from tests.fakes.judge_processes import open_process_pool
from tests.standin.call import Call
from tests.standin.llm import StandInLLM

LAMP, HOURS, WRONG = "The lamp is green and heavy", "The museum opens at nine", "The lamp is red"
JUDGE = f"""
from judges.registry import judge
@judge(task="museum", description="Of lamps.")
async def museum(ctx):
    ctx.verify("lamp", {LAMP!r}, sources=[{LAMPS!r}], partial=True)
    ctx.verify("hours", {HOURS!r}, sources=[{MUSEUM!r}], partial=True)
    ctx.verify("wrong", {WRONG!r}, sources=[{LAMPS!r}], partial=True)
    ctx.verify("plain", {HOURS!r}, sources=[{MUSEUM!r}])
"""


def verdict(call: Call) -> dict[str, Any]:
    """Mark words of the lamp that are not in the claim at first, and those of another claim always."""
    is_repair = "could not be used: wrong unsupported words" in call.text
    if call.claim == HOURS:
        return {"verdict": "supported", "reasoning": "r", "unsupported": [], "quotes": ["The museum opens at nine"]}
    marked = {LAMP: "and heavy" if is_repair else "and bright", WRONG: "green"}[call.claim]
    return {"verdict": "partly_supported", "reasoning": "r", "unsupported": [marked], "quotes": []}


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(extractions={"PartialEvalResult": verdict}) as server:
        yield server


@pytest.fixture
async def world(tmp_path: Path, model: StandInLLM) -> AsyncIterator[InMemoryJudging]:
    llm, _ = make_client(
        "openai/gpt-6-luna", semaphore=asyncio.Semaphore(4), access=Access(openai_base_url=model.base_url)
    )
    world = InMemoryJudging(tmp_path, llm)
    yield world
    await llm.aclose()


def leaves(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {leaf["id"]: leaf for leaf in result["eval_breakdown"][0]["verification_tree"]["children"]}


def support(leaf: dict[str, Any]) -> tuple[str, str | None, list[str]]:
    return leaf["outcome"], leaf["support"], [span["text"] for span in leaf["unsupported"]]


def check(result: dict[str, Any]) -> None:
    found = leaves(result)
    assert support(found["lamp"]) == ("failed", "partly_supported", ["and heavy"])
    assert support(found["hours"]) == ("passed", "supported", [])
    assert support(found["wrong"]) == ("not_judged", None, [])
    assert found["wrong"]["reason"] == "llm_output_unusable"
    assert "support" not in found["plain"]
    assert result["prompts"] == ["verify_page@1", "verify_page_partial@1"]


async def test_wrong_words_are_repaired_once_and_else_not_judged(world: InMemoryJudging, model: StandInLLM) -> None:
    check(await world.judge(JUDGE))
    # Two votes with one repair each: words that stay wrong cost both votes.
    for claim, calls in ((LAMP, 4), (WRONG, 4)):
        assert sum(call.claim == claim for call in model.calls) == calls
    asked = [call for call in model.calls if call.claim == HOURS]
    assert sorted(call.schema_name for call in asked) == ["BinaryEvalResult"] * 2 + ["PartialEvalResult"] * 2


async def test_bundle_is_valid_and_replays(world: InMemoryJudging) -> None:
    await world.judge(JUDGE)
    bundle, _ = await world.bundle()
    kinds = {each["kind"] for call in call_log(bundle).calls for each in call.get("unusable", ())}
    assert kinds == {"wrong_unsupported_words"}
    await check_replay(bundle, world)


async def test_judge_in_a_child_process_has_the_same_support(world: InMemoryJudging) -> None:
    async with open_process_pool() as process_pool:
        world.process_pool = process_pool
        check(await world.judge(JUDGE))
