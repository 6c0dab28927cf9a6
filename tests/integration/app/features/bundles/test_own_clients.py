"""Model requests of clients that a public script creates are in the bundle, in and out of process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.bundled import LAMPS, InMemoryJudging, call_log, check_replay
from tests.fakes.judge_processes import open_process_pool, script
from tests.fakes.llm import RuleLLM
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")

ABOVE = """
from pydantic import BaseModel
from mind2web2.llm_client.base_client import LLMClient

class Lamp(BaseModel):
    colour: str
"""
ASKS = """
async def ask(words):
    asked = {"model": "gpt-6-luna", "messages": [{"role": "user", "content": words}]}
    awaited = await LLMClient("openai", is_async=True).async_response(response_format=Lamp, **asked)
    asked["messages"] = [{"role": "user", "content": f"blocking: {words}"}]
    # In a thread, because the model of this test runs in the event loop.
    return awaited.colour, await asyncio.to_thread(LLMClient("openai").response, **asked)
told = [await ask("which colour?"), await ask("and the other one?")]
evaluator.add_custom_info({"told": told}, info_name="told")
"""


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandInLLM]:
    async with StandInLLM(extractions={"Lamp": {"colour": "green"}}) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


@pytest.fixture(params=[True, False], ids=["confined", "here"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[InMemoryJudging]:
    world = InMemoryJudging(tmp_path, RuleLLM())
    if not request.param:
        yield world
        return
    async with open_process_pool() as world.process_pool:
        yield world


async def test_bundle_contains_requests_of_both_client_kinds(world: InMemoryJudging, model: StandInLLM, tmp_path: Path):
    source = script(tmp_path, ASKS, above=ABOVE).read_text("utf-8").replace("https://shop.example/one", LAMPS)
    await world.judge(source, task="t")
    bundle, _ = await world.bundle()
    own = [call for call in call_log(bundle).calls if call["purpose"] == "free"]
    assert sorted(call["messages"][0]["content"] for call in own) == sorted(call.text for call in model.calls)
    assert {call["messages"][0]["content"] for call in own} == {
        "which colour?",
        "and the other one?",
        "blocking: which colour?",
        "blocking: and the other one?",
    }
    assert all("reply" in call for call in own)
    await model.stop()
    await check_replay(bundle, world)
