from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, HttpUrl

from judges.errors import ExtractionFailed, LLMCircuitOpen, LLMError, LLMOutputUnusable, LLMUnavailable, UnusableKind
from judges.extractor import Extractor
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style
from rubrics.verdict import Reason, Usage
from tests.fakes.llm import RuleLLM
from tests.fakes.pages import page

SEPARATOR = BlockBuilder(b"0123456789abcdef")
ANSWER = "Ida, see https://velm.example/ida"


class Found(BaseModel):
    name: str = ""
    urls: list[str] = Field(default_factory=list)


class Needed(BaseModel):
    page: HttpUrl


def extractor(llm: RuleLLM, style: Style = Style.NATIVE) -> Extractor:
    return Extractor(llm, "gpt-6-luna", separator=SEPARATOR, pages=PagePreparer(SEPARATOR), style=style)


async def test_values_are_read_out_of_the_answer():
    llm = RuleLLM(values={"Found": Found(name="Ida", urls=["https://velm.example/ida"])})
    found = await extractor(llm).extract(Found, "The name", task="t", answer=ANSWER, instruction="exactly")
    assert found == Found(name="Ida", urls=["https://velm.example/ida"])
    (request,) = llm.requests
    assert (request.purpose, request.schema) == ("extract", Found)
    assert (request.parts["prompt"], request.parts["instruction"]) == ("The name", "exactly")


async def test_invented_addresses_are_dropped_and_named():
    llm = RuleLLM(values={"Found": Found(urls=["https://made.up/", "https://velm.example/ida"])})
    extraction = await extractor(llm).extract_in_full(Found, "x", task="t", answer=ANSWER)
    assert extraction.value.urls == ["https://velm.example/ida"]
    assert extraction.dropped == ("https://made.up/",)


async def test_public_scripts_get_what_the_model_said():
    llm = RuleLLM(values={"Found": Found(urls=["https://made.up/"])})
    found = await extractor(llm, Style.COMPAT).extract(Found, "x", task="t", answer=ANSWER)
    assert found.urls == ["https://made.up/"]


async def test_addresses_from_a_page_may_be_links_or_the_page_itself():
    evidence = page("https://a.example/p", "See https://b.example/x.", links=(("C", "https://c.example/y"),))
    urls = ["https://a.example/p", "https://b.example/x", "https://c.example/y", "https://velm.example/ida"]
    llm = RuleLLM(values={"Found": Found(urls=urls)})
    extraction = await extractor(llm).extract_in_full(Found, "x", task="t", answer=ANSWER, evidence=evidence)
    assert extraction.value.urls == urls[:3]
    assert extraction.evidence == evidence.digests


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (LLMUnavailable("503"), Reason.LLM_UNAVAILABLE),
        (LLMCircuitOpen("no"), Reason.LLM_REJECTED),
        (LLMOutputUnusable(UnusableKind.REFUSED, "no", usage=Usage(calls=2)), Reason.LLM_OUTPUT_UNUSABLE),
    ],
)
async def test_a_failed_extraction_raises_and_says_what_lay_behind_it(fault: LLMError, reason: Reason):
    llm = RuleLLM(values={"Found": fault})
    with pytest.raises(ExtractionFailed) as caught:
        await extractor(llm).extract(Found, "x", task="t", answer=ANSWER)
    assert caught.value.cause_reason is reason
    assert caught.value.usage == fault.usage


async def test_a_reply_that_is_nothing_without_its_invented_address_is_a_failed_extraction():
    llm = RuleLLM(values={"Needed": Needed(page=HttpUrl("https://made.up/"))})
    with pytest.raises(ExtractionFailed, match="invented"):
        await extractor(llm).extract(Needed, "x", task="t", answer=ANSWER)


async def test_a_client_that_parses_nothing_is_a_failed_extraction():
    llm = RuleLLM(values={"Found": Needed(page=HttpUrl("https://velm.example/ida"))})
    with pytest.raises(ExtractionFailed, match="parsed"):
        await extractor(llm).extract(Found, "x", task="t", answer=ANSWER)
