"""Native judge against a model server over a real socket: requests, votes, and reuse of replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import takewhile

import pytest
from pydantic import BaseModel, Field

from answers.submission import Answer
from judges.context import JudgeContext
from judges.extractor import Extractor
from judges.llm.cached import FolderReplyCache
from judges.llm.provider_adapter import Access
from judges.llm.providers import make_client
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style
from judges.registry import Judge
from judges.runner import Judgement, JudgeTools, run_judge
from judges.verifier import Verifier
from tests.fakes.pages import FixedEvidence, jpeg, page
from tests.standin.call import Call
from tests.standin.llm import StandInLLM

URL = "https://velm.example/ida"
TEXT = "Ida Norrstad was director of the Velm Institute until 2004.\n" + "".join(
    f"In {1900 + year} the institute had {3 * year} members.\n" for year in range(60)
)
ANSWER = Answer(name="answer_1.md", text=f"Ida Norrstad, see {URL}")
VALUES = {"Found": {"name": "Ida Norrstad", "urls": [URL, "https://made.up/"]}}


class Found(BaseModel):
    name: str = ""
    urls: list[str] = Field(default_factory=list)


async def directors(ctx: JudgeContext) -> None:
    found = await ctx.extract(Found, "The name and its pages")
    ctx.check("given", found.name, critical=True)
    for n in range(4):
        ctx.verify(f"page{n}", f"Claim {n} about {found.name}", found.urls)
    ctx.verify("plain", "The answer names a person")


@asynccontextmanager
async def tools(
    server: StandInLLM,
    store: FolderReplyCache | None = None,
    style: Style = Style.NATIVE,
    model: str = "openai/gpt-6-luna",
) -> AsyncIterator[JudgeTools]:
    llm, bare = make_client(
        model,
        semaphore=asyncio.Semaphore(30),
        access=Access(openai_api_key="sk-test", openai_base_url=server.base_url),
        store=store,
    )
    block_builder = BlockBuilder(b"0123456789abcdef")
    pages = PagePreparer(block_builder)
    shelf = FixedEvidence({URL: page(URL, TEXT, screenshots=(jpeg(20, 2000), jpeg(20, 1500)))})
    try:
        yield JudgeTools(
            verifier=Verifier(llm, bare, block_builder=block_builder, pages=pages, style=style),
            extractor=Extractor(llm, bare, block_builder=block_builder, pages=pages, style=style),
            evidence_for=shelf,
        )
    finally:
        await llm.aclose()


async def judged(
    server: StandInLLM, store: FolderReplyCache | None = None, coroutine=directors, style: Style = Style.NATIVE
) -> Judgement:
    async with tools(server, store, style) as given:
        return await run_judge(Judge(task="t", description="Who?", coroutine=coroutine), ANSWER, given)


def page_calls(server: StandInLLM) -> list[Call]:
    return [call for call in server.calls if call.page]


async def test_judge_costs_one_extraction_and_two_votes_per_claim():
    async with StandInLLM(extractions=VALUES) as server:
        judgement = await judged(server)
    assert len(server.calls) == 1 + 5 * 2
    assert judgement.usage.calls == len(server.calls)
    assert judgement.score.value == 1.0
    assert judgement.extractions[0].dropped == ("https://made.up/",)
    assert judgement.usage.usd is not None and judgement.usage.usd > 0


@pytest.mark.parametrize("style", Style)
async def test_requests_for_one_page_share_a_prefix_up_to_the_claim(style: Style):
    async with StandInLLM(extractions=VALUES) as server:
        await judged(server, style=style)
    calls = page_calls(server)
    assert len(calls) == 8
    assert len({tuple(call.images) for call in calls}) == 1
    first = json.dumps(calls[0].messages)
    for call in calls[1:]:
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(first, json.dumps(call.messages), strict=False))
        assert sum(1 for _ in alike) >= first.index("<claim ")
