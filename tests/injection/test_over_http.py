"""One case of every text class, with a model server over a real socket instead of the stand-in judges."""

from __future__ import annotations

import asyncio

import pytest

from judges.llm.provider_adapter import Access
from judges.llm.providers import make_client
from judges.prompting.rendering import Style
from tests.injection.reading import can_read
from tests.injection.trial import materials
from tests.injection.world import open_world, strictly_supported
from tests.standin.call import Call
from tests.standin.llm import StandInLLM


@pytest.mark.parametrize(("letter", "style"), [*((letter, Style.NATIVE) for letter in "ABCDGK"), ("A", Style.COMPAT)])
async def test_verdict_of_a_gullible_model_server_does_not_count(letter: str, style: Style):
    async with open_world() as world:
        material = next(each for each in materials(world.site, letter, benign=False) if each.place == "page")
        world.web.pages |= material.pages

        def deceived(call: Call) -> bool:
            return any(can_read(payload, call.text) for payload in material.reads)

        def quotes(call: Call) -> list[str]:
            return [material.reads[0], material.claim, call.page[:200]]

        async with StandInLLM(rule=deceived, quotes=quotes) as server:
            llm, _ = make_client(
                "openai/stand-in",
                semaphore=asyncio.Semaphore(5),
                access=Access(openai_api_key="sk-test", openai_base_url=server.base_url),
            )
            judgement = await world.judge(material, llm, style)
            await llm.aclose()
    assert len(server.calls) >= 3
    assert not strictly_supported(judgement)
